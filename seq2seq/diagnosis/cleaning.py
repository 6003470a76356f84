"""Cleaning: a copy of the training text without the lines that are damage, and a list of what was left out and why.

Only lines go; no line is changed but for the blanks and the composition of letters, which training would do itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seq2seq.corpus.lines import clean
from seq2seq.diagnosis.duplicates import seen_in_tests
from seq2seq.diagnosis.examination import Examined
from seq2seq.diagnosis.findings import KINDS
from seq2seq.diagnosis.found import Found, Text
from seq2seq.diagnosis.scan import read_pairs
from seq2seq.files import whole_file

TOO_MANY = 0.1  # of the pairs: what so many show is a property of the text and no dirt
_ALWAYS = {"blank", "column", "not-utf8", "nul", "slip"}  # these go however many they are
LOG = "removed.tsv"


@dataclass(frozen=True)
class Cleaned:
    """What a clean copy holds: files, pairs, removed pairs by kind, and the kinds that were left as too common."""

    source: Path
    target: Path
    log: Path
    kept: int
    removed: dict[str, int]
    left: list[str]


def clean_files(folder: Path, languages: tuple[str | None, str | None]) -> tuple[Path, Path, Path]:
    """The files that a clean copy consists of: source, target, log."""
    source, target = languages
    if source is None or target is None or source == target:
        source, target = "source", "target"
    return folder / f"train.{source}", folder / f"train.{target}", folder / LOG


def write_clean(examined: Examined, folder: Path, languages: tuple[str | None, str | None]) -> Cleaned:
    """Write the training pairs that are sound. The folder must exist. A pair is counted under its first fault."""
    train = examined.texts["train"]
    tests = [text for part, texts in examined.texts.items() if part != "train" for text in texts]
    found = [one for one in examined.found if one.text.part == "train"] + seen_in_tests(train, tests)
    left = sorted({one.kind for one in found if _is_too_common(one)})
    source_file, target_file, log_file = clean_files(folder, languages)
    kept, removed = 0, dict.fromkeys(KINDS, 0)
    with whole_file(source_file) as sources, whole_file(target_file) as targets, whole_file(log_file) as log:
        log.write("file\tline\tkind\twhy\tsource\ttarget\n")
        for text in train:
            reasons = _reasons(text, [one for one in found if one.text is text and one.kind not in left])
            kinds = list(KINDS)
            for line, (source, target) in enumerate(_pairs(text)):
                source, target = clean(source), clean(target)
                reason = int(reasons[line])
                if reason < 0:
                    kept += 1
                    sources.write(source + "\n")
                    targets.write(target + "\n")
                    continue
                kind = kinds[reason]
                removed[kind] += 1
                log.write(f"{text.source.file}\t{line + 1}\t{kind}\t{KINDS[kind].title}\t{source}\t{target}\n")
    return Cleaned(
        source_file, target_file, log_file, kept, {kind: count for kind, count in removed.items() if count}, left
    )


def _pairs(text: Text) -> Iterable[tuple[str, str]]:
    return (pair for pair, _ in zip(read_pairs(text.files), range(len(text)), strict=False))


def _is_too_common(one: Found) -> bool:
    return one.kind not in _ALWAYS and len(one.dirt) > TOO_MANY * len(one.text)


def _reasons(text: Text, found: Sequence[Found]) -> NDArray[np.int16]:
    """For every line the number of the kind for which it is left out, or -1."""
    order = {kind: number for number, kind in enumerate(KINDS)}
    reasons = np.full(len(text), -1, dtype=np.int16)
    # The gravest last, so that it stays.
    for one in sorted(found, key=lambda one: -order[one.kind]):
        lines = one.dirt if one.kind != "leak" else one.lines
        reasons[lines[lines < len(text)]] = order[one.kind]
    return reasons
