"""Signs: what is wrong with a line by itself, as bits. Most lines are acquitted by numpy; the rest is looked at.

Letters: N lines, K kinds of characters, X characters of all lines with a line feed after each.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from enum import IntFlag

import numpy as np
from numpy.typing import NDArray

from seq2seq.diagnosis.characters import ALL_HAN, FIRST_SCRIPT, Kind, table


class Sign(IntFlag):
    """A bit for each thing that a line can show; the name of a finding is the sign's in small letters."""

    BLANK = 1 << 0
    COLUMN = 1 << 1
    NOT_UTF8 = 1 << 2
    NUL = 1 << 3
    BYTE_ORDER_MARK = 1 << 4
    REPLACEMENT = 1 << 5
    MOJIBAKE = 1 << 6
    CONTROL = 1 << 7
    CARRIAGE_RETURN = 1 << 8
    LINE_BREAK = 1 << 9
    PRIVATE = 1 << 10
    INVISIBLE = 1 << 11
    COMPATIBLE = 1 << 12
    NOT_COMPOSED = 1 << 13
    MARKUP = 1 << 14
    ENTITY = 1 << 15
    TOKENISED = 1 << 16
    PIECES = 1 << 17
    SPACED = 1 << 18
    SCRIPT = 1 << 19
    LANGUAGE = 1 << 20
    SIMPLIFIED = 1 << 21
    TRADITIONAL = 1 << 22

    @property
    def kind(self) -> str:
        return str(self.name).lower().replace("_", "-")


_SINGLE_KINDS = {
    Kind.BYTE_ORDER_MARK: Sign.BYTE_ORDER_MARK,
    Kind.REPLACEMENT: Sign.REPLACEMENT,
    Kind.CONTROL: Sign.CONTROL,
    Kind.CARRIAGE_RETURN: Sign.CARRIAGE_RETURN,
    Kind.LINE_BREAK: Sign.LINE_BREAK,
    Kind.PRIVATE: Sign.PRIVATE,
    Kind.INVISIBLE: Sign.INVISIBLE,
    Kind.COMPATIBLE: Sign.COMPATIBLE,
    Kind.PIECE_MARK: Sign.PIECES,
    Kind.SIMPLIFIED_HAN: Sign.SIMPLIFIED,
    Kind.TRADITIONAL_HAN: Sign.TRADITIONAL,
}

# A tag begins with a letter, so "a < b and c > d" and "<3" are none.
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9:_-]*(\s[^<>]*)?/?>|<!--|\{\\\w+[^{}]*\}")
_ENTITY = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_PIECES = re.compile(r"(?:^|(?<=\s))@[-/.,]@(?=\s|$)|@@(?=\s|$)")
_UNSPACED = ALL_HAN | {Kind.KANA, Kind.THAI, Kind.LAO, Kind.KHMER, Kind.MYANMAR}

# Of the letters that are of a script, how many must be of an unexpected one for the line to be odd.
_MOSTLY = 0.5
_FEWEST_LETTERS = 4  # a line with fewer letters may be a name or a formula

# What a byte from 0x80 to 0xBF looks like when it is read as Windows-1252 or Latin-1.
_CONTINUATION = {*range(0x80, 0xC0), *map(ord, bytes(range(0x80, 0xA0)).decode("cp1252", "ignore"))}
_FOLLOWS = "[" + "".join(f"\\u{code:04x}" for code in sorted(_CONTINUATION)) + "]"
_SEQUENCE = re.compile(f"[\xc2-\xdf]{_FOLLOWS}|[\xe0-\xef]{_FOLLOWS}{{2}}|[\xf0-\xf4]{_FOLLOWS}{{3}}")
_TYPOGRAPHIC = re.compile("[\u2013-\u2026]")  # what may honestly follow a capital: dashes, quotes, dots
_LOST_IN_GBK = "锟斤拷"  # what U+FFFD, written twice in UTF-8, looks like when it is read as GBK


def signs_of(
    texts: Sequence[str],
    joined: str,
    code_X: NDArray[np.uint32],
    line_X: NDArray[np.int64],
    counts_NK: NDArray[np.int64],
    expected: frozenset[Kind] | None,
) -> NDArray[np.uint32]:
    """The signs of N lines. `joined` are the lines, a line feed after each; `expected` the scripts of the language."""
    signs_N = np.zeros(len(texts), dtype=np.uint32)
    for kind, sign in _SINGLE_KINDS.items():
        signs_N[counts_NK[:, kind] > 0] |= np.uint32(sign)
    _mark(signs_N, Sign.MARKUP, texts, counts_NK[:, Kind.LESS] > 0, _TAG)
    _mark(signs_N, Sign.ENTITY, texts, (counts_NK[:, Kind.AMPERSAND] > 0) & (counts_NK[:, Kind.SEMICOLON] > 0), _ENTITY)
    _mark(signs_N, Sign.PIECES, texts, counts_NK[:, Kind.AT] > 1, _PIECES)
    if not joined.isascii():
        for line in _mojibake_suspects(code_X, line_X):
            if is_mojibake(texts[line], expected):
                signs_N[line] |= np.uint32(Sign.MOJIBAKE)
        # One look at all lines is fast; line by line only where it fails.
        if not unicodedata.is_normalized("NFC", joined):
            for line, text in enumerate(texts):
                if not text.isascii() and not unicodedata.is_normalized("NFC", text):
                    signs_N[line] |= np.uint32(Sign.NOT_COMPOSED)
    signs_N[_lines_with_detached_marks(code_X, line_X)] |= np.uint32(Sign.TOKENISED)
    if expected is not None:
        signs_N[_in_another_script(counts_NK, expected)] |= np.uint32(Sign.SCRIPT)
    if counts_NK[:, sorted(_UNSPACED)].any():
        signs_N[_lines_with_words_apart(code_X, line_X, counts_NK)] |= np.uint32(Sign.SPACED)
    return signs_N


def _mark(
    signs_N: NDArray[np.uint32],
    sign: Sign,
    texts: Sequence[str],
    suspect_N: NDArray[np.bool_],
    pattern: re.Pattern[str],
) -> None:
    for line in np.flatnonzero(suspect_N).tolist():
        if pattern.search(texts[line]):
            signs_N[line] |= np.uint32(sign)


def _in_another_script(counts_NK: NDArray[np.int64], expected: frozenset[Kind]) -> NDArray[np.bool_]:
    letters_N = counts_NK[:, FIRST_SCRIPT:].sum(axis=1)
    expected_N = counts_NK[:, sorted(expected)].sum(axis=1)
    strange_N = letters_N - expected_N
    # A Latin name in a Chinese sentence may have more letters than the rest of it; so an ideograph counts for five.
    if expected & _UNSPACED:
        expected_N = expected_N * 5
    odd_N: NDArray[np.bool_] = (letters_N >= _FEWEST_LETTERS) & (strange_N > _MOSTLY * (strange_N + expected_N))
    return odd_N


def _lines_with_detached_marks(code_X: NDArray[np.uint32], line_X: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lines with a word, a blank, one closing mark and then a blank or the end, as a tokenizer writes them."""
    blanks = np.flatnonzero(code_X[1:-2] == 0x20) + 1
    blanks = blanks[table()[code_X[blanks + 1]] == Kind.CLOSING]
    after = code_X[blanks + 2]
    blanks = blanks[(after == 0x20) | (after == 0x0A)]
    lines: NDArray[np.int64] = line_X[blanks]
    return lines


def _lines_with_words_apart(
    code_X: NDArray[np.uint32], line_X: NDArray[np.int64], counts_NK: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Lines with at least two blanks between letters of a script without blanks, a blank to every five letters."""
    unspaced = np.zeros(len(Kind), dtype=bool)
    unspaced[list(_UNSPACED)] = True
    blanks = np.flatnonzero(code_X[1:-1] == 0x20) + 1
    kinds = table()
    blanks = blanks[unspaced[kinds[code_X[blanks - 1]]] & unspaced[kinds[code_X[blanks + 1]]]]
    blanks_N = np.bincount(line_X[blanks], minlength=len(counts_NK))
    spaced_N: NDArray[np.bool_] = (blanks_N >= 2) & (blanks_N * 5 >= counts_NK[:, sorted(_UNSPACED)].sum(axis=1))
    return spaced_N


def _mojibake_suspects(code_X: NDArray[np.uint32], line_X: NDArray[np.int64]) -> list[int]:
    """Lines in which a letter that can begin a UTF-8 sequence is followed by what can go on with it."""
    follows = np.zeros(0x10000, dtype=bool)
    follows[sorted(_CONTINUATION)] = True
    leads = np.flatnonzero((code_X >= 0xC2) & (code_X <= 0xF4))
    leads = leads[follows[np.minimum(code_X[leads + 1], 0xFFFF)]]  # the last character is a line feed, never a lead
    lost = np.flatnonzero(code_X == ord(_LOST_IN_GBK[0]))
    return np.unique(line_X[np.concatenate([leads, lost])]).tolist()  # type: ignore[no-any-return]


def is_mojibake(text: str, expected: frozenset[Kind] | None = None) -> bool:
    """Whether the text holds UTF-8 that somebody has read as Windows-1252 or Latin-1.

    What looks like the bytes of one character is taken back to bytes and read as UTF-8. It is garbled if that succeeds
    and gives a letter of the expected scripts or a Latin one, or a common mark: an honest "é…”" would become an
    ideograph, and is let go in a text that is not Chinese. A capital before a dash or a quote counts from two on.
    """
    if _LOST_IN_GBK[:2] in text:
        return True
    wanted = (expected or frozenset()) | {Kind.LATIN}
    doubtful = 0
    for found in _SEQUENCE.findall(text):
        decoded = _read_again(found)
        if decoded is None or not (table()[ord(decoded)] in wanted or _is_common_mark(decoded)):
            continue
        doubtful += 1
        if found[0] in "ÂÃâ" or not _TYPOGRAPHIC.search(found) or doubtful > 1:
            return True
    return False


def _read_again(garbled: str) -> str | None:
    """The one character that the letters were, or None."""
    data = bytearray()
    for character in garbled:
        try:
            data += character.encode("cp1252")
        except UnicodeEncodeError:  # five bytes have no character there; programs write a C1 control in its place
            data.append(ord(character))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _is_common_mark(character: str) -> bool:
    return character in "¡¢£¥§©«®°±²³´·»¿×÷€™\xa0" or 0x2010 <= ord(character) <= 0x203A
