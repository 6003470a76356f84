"""A test set as it lies on the disk: raw lines, so that a score equals the sacrebleu command's on the same files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seq2seq.corpus.lines import read_lines
from seq2seq.errors import ConfigError, ScoringError
from seq2seq.evaluation.scores import refuse_pieces

if TYPE_CHECKING:
    from seq2seq.config.schema import Config


@dataclass(frozen=True)
class TestSet:
    """Sources and one or more references for each; `names` are the files, the source's first."""

    __test__ = False  # no test class, whatever its name says to pytest

    sources: list[str]
    references: list[list[str]]
    names: list[str]


def test_set_from_files(source: str, references: Sequence[str]) -> TestSet:
    """Read the files of one test set. ScoringError where their lines do not pair up."""
    names = [source, *references]
    sources, *sides = (_lines(path) for path in names)
    for path, side in zip(references, sides, strict=True):
        if len(side) != len(sources):
            raise ScoringError(
                f"{source} has {len(sources):,} lines and {path} has {len(side):,}; a score compares line with line."
            )
        refuse_pieces(side, path)
    return TestSet(sources, sides, names)


test_set_from_files.__test__ = False  # type: ignore[attr-defined]


def configured_test_set(config: Config) -> TestSet:
    """The test set that the settings name. ConfigError where they name none."""
    from seq2seq.config.schema import Fraction
    from seq2seq.corpus.splits import open_corpora

    test = config.data.test
    if test is None:
        raise ConfigError("The settings of this run name no test set (data.test); give --source and --reference files.")
    if not isinstance(test, Fraction):
        entries = test if isinstance(test, tuple) else (test,)
        if all(entry.tsv is None for entry in entries):
            sets = [test_set_from_files(str(entry.source), [str(entry.target)]) for entry in entries]
            return TestSet(
                [line for one in sets for line in one.sources],
                [[line for one in sets for line in one.references[0]]],
                [" + ".join(one.names[side] for one in sets) for side in (0, 1)],
            )
    corpus = open_corpora(config.data, config.seed).test
    assert corpus is not None, "a test set that the settings name is opened"
    pairs = list(corpus)
    return TestSet([source for source, _ in pairs], [[target for _, target in pairs]], ["data.test", "data.test"])


def _lines(path: str) -> list[str]:
    return [line or "" for line in read_lines(path, advice="Convert the text to UTF-8.")]
