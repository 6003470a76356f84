"""Rare characters: those that training meets too seldom to learn, and those of a test that it never meets."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seq2seq.diagnosis.characters import Kind, table
from seq2seq.diagnosis.found import Found, Text
from seq2seq.diagnosis.scan import CODE_POINTS, Side

RARE = 3  # occurrences; fewer are rare
_NAMED = 12  # characters that are shown

# Damage of its own kind, or blanks, which cleaning makes one.
_NOT_TEXT = (
    Kind.SPACE,
    Kind.CONTROL,
    Kind.LINE_BREAK,
    Kind.CARRIAGE_RETURN,
    Kind.BYTE_ORDER_MARK,
    Kind.REPLACEMENT,
    Kind.PRIVATE,
    Kind.INVISIBLE,
)


def rare(texts: Sequence[Text]) -> list[Found]:
    """The characters of each training side that occur fewer than RARE times in all of its texts."""
    found = []
    for number in (0, 1):
        sides = [text.sides[number][1] for text in texts]
        counts = _text_only(_total(sides))
        codes = np.flatnonzero((counts > 0) & (counts < RARE))
        codes = codes[np.argsort(counts[codes], kind="stable")]
        if len(codes):
            # In the text where each occurs first.
            text = next(text for text in texts if text.sides[number][1].first_line[codes[0]] >= 0)
            found.append(_found("rare", text, number, codes, f"of {np.count_nonzero(counts):,} different ones"))
    return found


def unseen(train: Sequence[Text], texts: Sequence[Text]) -> list[Found]:
    """The characters of a validation or test set that its side of the training text lacks."""
    found = []
    for number in (0, 1):
        known = _total([text.sides[number][1] for text in train])
        for text in texts:
            codes = np.flatnonzero((_text_only(text.sides[number][1].characters) > 0) & (known == 0))
            if len(codes):
                found.append(_found("unseen", text, number, codes, ""))
    return found


def _total(sides: Sequence[Side]) -> NDArray[np.int64]:
    total = np.zeros(CODE_POINTS, dtype=np.int64)
    for side in sides:
        total[side.codes] += side.counts
    return total


def _text_only(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    counts = counts.copy()
    codes = np.flatnonzero(counts)
    counts[codes[np.isin(table()[codes], _NOT_TEXT)]] = 0
    counts[0x09] = 0
    return counts


def _found(kind: str, text: Text, number: int, codes: NDArray[np.int64], detail: str) -> Found:
    name, side = text.sides[number]
    first_line = side.first_line
    here = codes[first_line[codes] >= 0]
    lines = first_line[here].astype(np.int64)
    notes: dict[int, str] = {}
    for code, line in zip(here[:100].tolist(), lines[:100].tolist(), strict=True):
        notes[line] = f"{notes[line]}, {chr(code)}" if line in notes else _named(code)
    shown = " ".join(map(chr, codes[:_NAMED].tolist())) + (" ..." if len(codes) > _NAMED else "")
    _, first = np.unique(lines, return_index=True)
    return Found(
        kind, text, name, lines[np.sort(first)], "; ".join(filter(None, (shown, detail))), notes, count=len(codes)
    )


def _named(code: int) -> str:
    letter = f"{chr(code)} " if chr(code).isprintable() else ""
    return f"{letter}U+{code:04X} {unicodedata.name(chr(code), '')}".rstrip()
