"""Duplicates: pairs that occur again in a text, sources with several targets, and test pairs that training has seen.

All of it on the cleaned text, as training reads it, and on hashes: nothing is kept but numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seq2seq.diagnosis.findings import Level
from seq2seq.diagnosis.found import NO_LINES, Found, Text

LEAKS_TOO_MUCH = 0.1  # of a test set, from which on its score says little

Ints = NDArray[np.int64]


def duplicates(texts: Sequence[Text]) -> list[Found]:
    """What occurs again in the texts of one part, and the sources and targets that occur with several partners."""
    joined = _Joined(texts)
    later, first = _repeats(joined.pairs)
    found = joined.found("duplicate", later, first)
    for kind, ours in (("many-targets", joined.sources), ("many-sources", joined.targets)):
        single = np.setdiff1d(np.arange(len(ours)), later, assume_unique=True)
        again, before = _repeats(ours[single])
        if len(again):
            several, counts = np.unique(before, return_counts=True)
            one_side, other = ("sources", "targets") if kind == "many-targets" else ("targets", "sources")
            detail = f"{len(several):,} {one_side}, one of them with {counts.max() + 1} {other}"
            for one in joined.found(kind, single[again], single[before]):
                found.append(Found(kind, one.text, "pair", one.lines, detail, one.notes))
    return found


def leaks(train: Sequence[Text], texts: Sequence[Text], *, name: str = "training") -> list[Found]:
    """Pairs of a validation or test set that training has, and sources that it has with another target."""
    known, asked = _Joined(train), _Joined(texts)
    found = []
    same = np.isin(asked.pairs, known.pairs)
    for kind, here, theirs, ours in (
        ("leak", same, known.pairs, asked.pairs),
        ("leak-source", ~same & np.isin(asked.sources, known.sources), known.sources, asked.sources),
    ):
        rows = np.flatnonzero(here)
        if not len(rows):
            continue
        level: Level | None = "error" if kind == "leak" and len(rows) >= LEAKS_TOO_MUCH * len(here) else None
        order = np.argsort(theirs, kind="stable")
        partner = order[np.searchsorted(theirs[order], ours[rows])]
        found += asked.found(kind, rows, partner, level=level, of=known, name=f"{name} ")
    return found


def seen_in_tests(train: Sequence[Text], tests: Sequence[Text]) -> list[Found]:
    """The same from the other end, for a clean copy: the training pairs whose source a test has."""
    known, asked = _Joined(train), _Joined(tests)
    return known.found("leak", np.flatnonzero(np.isin(known.sources, asked.sources)), None)


class _Joined:
    """The filled pairs of several texts, one after the other."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self._texts = texts
        filled = [np.flatnonzero(text.filled) for text in texts]
        self._lines = np.concatenate([*filled, NO_LINES])
        self._text = np.repeat(np.arange(len(texts)), [len(lines) for lines in filled])

        def join(arrays: list[Ints]) -> Ints:
            return np.concatenate([*(array[lines] for array, lines in zip(arrays, filled, strict=True)), NO_LINES])

        self.pairs = join([text.pair_hashes for text in texts])
        self.sources = join([text.source.hashes for text in texts])
        self.targets = join([text.target.hashes for text in texts])

    def found(
        self,
        kind: str,
        rows: Ints,
        partners: Ints | None,
        *,
        level: Level | None = None,
        of: _Joined | None = None,
        name: str = "",
    ) -> list[Found]:
        """The rows by their texts and lines; `partners` are the rows (of another) that they are like."""
        partner_of = dict(zip(rows[:1000].tolist(), [] if partners is None else partners[:1000].tolist(), strict=False))
        order = np.argsort(rows, kind="stable")
        found = []
        for number, text in enumerate(self._texts):
            ours = rows[order][self._text[rows[order]] == number]
            if len(ours):
                notes = {}
                for row in ours[:100].tolist():
                    if row in partner_of:
                        notes[int(self._lines[row])] = f"as {name}{(of or self).place(partner_of[row], text)}"
                found.append(Found(kind, text, "pair", self._lines[ours], notes=notes, level=level))
        return found

    def place(self, row: int, seen_from: Text) -> str:
        text = self._texts[self._text[row]]
        where = "" if text is seen_from or len(self._texts) == 1 else f" of {text.source.file}"
        return f"line {self._lines[row] + 1:,}{where}"


def _repeats(hashes: Ints) -> tuple[Ints, Ints]:
    """The rows that have occurred before, in order, and for each the row where it occurred first."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    is_new = np.ones(len(ordered), dtype=bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    first = order[np.flatnonzero(is_new)[np.cumsum(is_new) - 1]] if len(order) else order
    later, before = order[~is_new], first[~is_new]
    by_line = np.argsort(later)
    return later[by_line], before[by_line]
