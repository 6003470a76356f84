"""Units: pieces joined into words, and the weights of pieces joined into those of words.

A word is what stands between blanks. Chinese, Japanese, Thai, Lao, Khmer, Burmese and Tibetan are written without
them, so there every piece is a word of its own. Nobody has to say the language: the characters tell.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seq2seq.corpus.subwords import show

WORD_START = "▁"
UNKNOWN = "<unk>"
_BYTE = re.compile("<0x([0-9A-F]{2})>")
# Scripts without blanks, and the punctuation and wide forms that are used with them.
_NO_BLANKS = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3000-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)


@dataclass(frozen=True)
class Unit:
    """A word, or a piece: its text, and the pieces [first, end) that it is made of."""

    text: str
    first: int
    end: int


def surfaces(pieces: Sequence[str]) -> list[str]:
    """What each piece adds to the text, U+2581 for a blank: a character spelt in bytes stands at its first byte."""
    texts = ["⁇" if piece == UNKNOWN else piece for piece in pieces]
    position = 0
    while position < len(pieces):
        end = position
        while end < len(pieces) and _BYTE.fullmatch(pieces[end]):
            end += 1
        if end > position:
            data = bytes(int(piece[3:5], 16) for piece in pieces[position:end])
            texts[position:end] = _characters(data)
        position = max(end, position + 1)
    return texts


def _characters(data: bytes) -> list[str]:
    """For each byte its character if it begins one, else nothing; a byte that is no UTF-8 reads as U+FFFD."""
    texts, position = [""] * len(data), 0
    while position < len(data):
        for length in (1, 2, 3, 4):
            try:
                texts[position] = data[position : position + length].decode("utf-8")
                break
            except UnicodeDecodeError:
                continue
        else:
            texts[position], length = "\ufffd", 1
        position += length
    return texts


def words_of(pieces: Sequence[str]) -> list[Unit]:
    """The words that pieces make, each with its text without the blank before it; every piece belongs to one."""
    texts = surfaces(pieces)
    starts = [0]
    before = texts[0] if texts else ""
    for position in range(1, len(texts)):
        text = texts[position]
        if not text:
            continue
        # A blank alone waits for what follows it.
        if before.strip(WORD_START) and _begins(before, text):
            starts.append(position)
        before = text
    units = [_unit(texts, first, end) for first, end in zip(starts, [*starts[1:], len(texts)], strict=True) if texts]
    if len(units) > 1 and not units[-1].text:  # blanks at the end belong to the last word
        units[-2:] = [_unit(texts, units[-2].first, units[-1].end)]
    return units


def _begins(before: str, text: str) -> bool:
    """Whether a text begins a word after another."""
    if text.startswith(WORD_START):
        return True
    if unicodedata.category(text[0]).startswith("M"):  # a mark belongs to the letter before
        return False
    return bool(_NO_BLANKS.match(text[0]) or _NO_BLANKS.match(before[-1]))


def _unit(texts: Sequence[str], first: int, end: int) -> Unit:
    # A character such as < that means something to SentencePiece stands for itself only in `show`; spelt in bytes, as
    # an unseen one is, it is still hidden here.
    return Unit(show("".join(texts[first:end]).replace(WORD_START, " ").strip()), first, end)


def pieces_of(pieces: Sequence[str]) -> list[Unit]:
    """Every piece by itself, as the vocabulary writes it."""
    return [Unit(piece, position, position + 1) for position, piece in enumerate(pieces)]


def merged(weights: Tensor, targets: Sequence[Unit], sources: Sequence[Unit]) -> Tensor:
    """Weights (...,T,S) of pieces as those of units: the sum over the pieces looked at, the mean over those written.

    So the weights of a written word still sum to one.
    """
    by_source = torch.stack([weights[..., unit.first : unit.end].sum(dim=-1) for unit in sources], dim=-1)
    return torch.stack([by_source[..., unit.first : unit.end, :].mean(dim=-2) for unit in targets], dim=-2)


def direction(text: str) -> str:
    """`rtl` where the first letter with a direction runs from right to left, as in Arabic and Hebrew; else `ltr`."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("R", "AL"):
            return "rtl"
        if kind == "L":
            break
    return "ltr"
