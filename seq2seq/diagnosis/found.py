"""What the checks work on and what they give back: scanned texts, and the lines of a text that show something.

Lines are counted from 0 here, as arrays are; a person is told of them from 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from seq2seq.corpus.lines import read_lines
from seq2seq.diagnosis.findings import KINDS, Finding, Level, Place, level_of
from seq2seq.diagnosis.scan import Side, cells_of
from seq2seq.diagnosis.signs import Sign
from seq2seq.errors import CorpusError

if TYPE_CHECKING:
    from seq2seq.config.schema import PairFiles

SideName = Literal["source", "target", "pair"]

LONGEST_EXAMPLE = 100  # characters shown of a line


@dataclass(frozen=True)
class Text:
    """One pair of files (or a table) that was scanned. `part` is train, validation or test."""

    part: str
    files: PairFiles
    source: Side
    target: Side

    def __len__(self) -> int:
        """How many pairs it has: the lines of the shorter side."""
        return min(len(self.source), len(self.target))

    @property
    def sides(self) -> tuple[tuple[SideName, Side], tuple[SideName, Side]]:
        return ("source", self.source), ("target", self.target)

    @property
    def is_unread(self) -> bool:
        """Whether nothing could be read of a side, which says all: without it the sides cannot be compared."""
        return any(side.failure is not None and not len(side) for _, side in self.sides)

    @cached_property
    def filled(self) -> NDArray[np.bool_]:
        """Which pairs have something on both sides."""
        blank = np.uint32(Sign.BLANK)
        both: NDArray[np.bool_] = ((self.source.signs[: len(self)] | self.target.signs[: len(self)]) & blank) == 0
        return both

    @cached_property
    def pair_hashes(self) -> NDArray[np.int64]:
        """A number for each pair, the same for two pairs (but for one chance in 2**64) only if they are the same."""
        sources = self.source.hashes[: len(self)].view(np.uint64)
        targets = self.target.hashes[: len(self)].view(np.uint64)
        return (sources * np.uint64(0x9E3779B97F4A7C15) ^ targets).view(np.int64)


@dataclass(frozen=True)
class Found:
    """Lines of a text that show something. `notes` says a little more of some of them.

    `count` stands for the number of lines where they are only examples, `removes` for the lines that a clean copy
    leaves out, where they are others; `level` for the level where the kind of finding does not decide it.
    """

    kind: str
    text: Text
    side: SideName
    lines: NDArray[np.int64]
    detail: str = ""
    notes: Mapping[int, str] = field(default_factory=dict)
    level: Level | None = None
    count: int | None = None
    removes: NDArray[np.int64] | None = None

    @property
    def dirt(self) -> NDArray[np.int64]:
        if self.removes is not None:
            return self.removes
        return self.lines if KINDS[self.kind].dirt else self.lines[:0]

    @property
    def file(self) -> str:
        if self.text.files.tsv is not None or self.side == "source":
            return self.text.source.file
        return self.text.target.file if self.side == "target" else f"{self.text.source.file}, {self.text.target.file}"


NO_LINES = np.empty(0, dtype=np.int64)


def as_findings(found: Sequence[Found], shown: int) -> list[Finding]:
    """Counts, levels and the first lines with what they say; reads those lines, each text once."""
    wanted: dict[int, tuple[Text, set[int]]] = {}
    for one in found:
        _, lines = wanted.setdefault(id(one.text), (one.text, set()))
        lines.update(one.lines[:shown].tolist())
    texts = {key: lines_at(text.files, lines, lines) for key, (text, lines) in wanted.items()}
    findings = []
    for one in found:
        sources, targets = texts[id(one.text)]
        count = len(one.lines) if one.count is None else one.count
        places = []
        for line in one.lines[:shown].tolist():
            sides = {"source": [sources], "target": [targets], "pair": [sources, targets]}[one.side]
            said = "  |  ".join(_shown(side.get(line, "")) for side in sides)
            places.append(Place(line + 1, f"{said}  ({one.notes[line]})" if line in one.notes else said))
        level = one.level or level_of(one.kind, count, len(one.text))
        findings.append(Finding(one.kind, level, one.text.part, one.side, one.file, count, one.detail, tuple(places)))
    return findings


def _shown(text: str) -> str:
    """A line for a person: what cannot be seen as its code, and not too much of it."""
    text = text if len(text) <= LONGEST_EXAMPLE else f"{text[:LONGEST_EXAMPLE]}…"
    return "".join(
        letter if letter.isprintable() or letter == "\u3000" else f"[U+{ord(letter):04X}]" for letter in text
    )


def lines_at(
    files: PairFiles, sources: Collection[int], targets: Collection[int]
) -> tuple[dict[int, str], dict[int, str]]:
    """What some lines of either side say."""
    if files.tsv is not None:
        rows = {line: cells_of(row, files.columns) or (row, "") for line, row in _pick(files.tsv, {*sources, *targets})}
        return {line: row[0] for line, row in rows.items()}, {line: row[1] for line, row in rows.items()}
    assert files.source is not None
    assert files.target is not None
    return dict(_pick(files.source, sources)), dict(_pick(files.target, targets))


def _pick(path: str, wanted: Collection[int]) -> Iterator[tuple[int, str]]:
    """The wanted lines of a file, as far as it can be read."""
    if not wanted:
        return
    last = max(wanted)
    with closing(read_lines(path, bad_lines="repair")) as lines:
        try:
            for line in lines:
                if lines.number - 1 in wanted:
                    yield lines.number - 1, line or ""
                if lines.number > last:
                    return
        except CorpusError:
            return
