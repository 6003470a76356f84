"""A test set as it lies on the disk: raw lines, so that a score equals the sacrebleu command's on the same files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seq2seq.corpus.lines import BadLines, read_lines
from seq2seq.corpus.pairs import PairReport, file_keys
from seq2seq.errors import CacheError, ConfigError, ScoringError
from seq2seq.evaluation.scores import refuse_pieces

if TYPE_CHECKING:
    from seq2seq.config.schema import Config
    from seq2seq.corpus.splits import Corpora


@dataclass(frozen=True)
class TestSet:
    """Sources and one or more references for each; `names` are the files, the source's first.

    `messages` say how many lines were repaired or left out, and where.
    """

    __test__ = False  # no test class, whatever its name says to pytest

    sources: list[str]
    references: list[list[str]]
    names: list[str]
    messages: list[str] = field(default_factory=list)


def test_set_from_files(
    source: str, references: Sequence[str], *, repair: bool = False, key: str = "data.test"
) -> TestSet:
    """Read the files of one test set; bad lines refuse, or are repaired and counted for the setting `key`.

    ScoringError where lines do not pair up.
    """
    names, report = [source, *references], PairReport()
    places = [f"{key}.source", *[f"{key}.target"] * len(references)]
    sources, *sides = (_lines(path, repair, place, report) for path, place in zip(names, places, strict=True))
    for path, side in zip(references, sides, strict=True):
        if len(side) != len(sources):
            raise ScoringError(
                f"{source} has {len(sources):,} lines and {path} has {len(side):,}; a score compares line with line."
            )
        refuse_pieces(side, path)
    return TestSet(sources, sides, names, report.messages())


test_set_from_files.__test__ = False  # type: ignore[attr-defined]


def configured_test_set(config: Config, opened: Corpora | None = None) -> TestSet:
    """The test set that the settings name, of corpora that may have been `opened`. ConfigError where they name none."""
    from seq2seq.config.schema import Fraction
    from seq2seq.corpus.cache import open_cache
    from seq2seq.corpus.splits import open_corpora

    test = config.data.test
    if test is None:
        raise ConfigError("The settings of this run name no test set (data.test); give --source and --reference files.")
    if not isinstance(test, Fraction):
        entries = test if isinstance(test, tuple) else (test,)
        if all(entry.tsv is None for entry in entries):
            # A line that a training drops is kept here: a test set is scored line by line, whatever is in it.
            repair = config.data.bad_lines != "refuse"
            sets = [
                test_set_from_files(str(entry.source), [str(entry.target)], repair=repair, key=key)
                for entry, key in zip(entries, file_keys("data.test", entries), strict=True)
            ]
            return TestSet(
                [line for one in sets for line in one.sources],
                [[line for one in sets for line in one.references[0]]],
                [" + ".join(one.names[side] for one in sets) for side in (0, 1)],
                [f"data.test: {message}" for one in sets for message in one.messages],
            )
    if opened is None:
        cache = open_cache(config.data, config.seed) if isinstance(test, Fraction) else None
        try:
            opened = open_corpora(config.data, config.seed, cache)
        except CacheError:  # what could not be kept is found again by reading the text
            opened = open_corpora(config.data, config.seed)
    corpus = opened.test
    assert corpus is not None, "a test set that the settings name is opened"
    pairs = list(corpus)
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    messages = [f"data.test: {message}" for message in corpus.report.messages()]
    return TestSet(sources, [targets], ["data.test", "data.test"], messages)


def _lines(path: str, repair: bool, place: str, report: PairReport) -> list[str]:
    bad_lines: BadLines = "repair" if repair else "refuse"
    lines = read_lines(path, bad_lines=bad_lines, advice="Convert the text to UTF-8.")
    texts: list[str] = []
    before = 0
    for line in lines:
        if lines.repaired > before:
            report.add("repaired", place, lines.number)
        before = lines.repaired
        texts.append(line or "")
    return texts
