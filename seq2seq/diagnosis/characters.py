"""Characters: which script a letter belongs to, and which characters are traces of damage, as a table of classes.

Python does not know the scripts of Unicode (UAX #24), so the ranges stand here: whole blocks, of which only letters
count. The table has a byte for each code point, so that a million sentences are classified in seconds.

Letters: N lines, K classes, X characters of a text one after the other.
"""

from __future__ import annotations

import sys
import unicodedata
from enum import IntEnum
from functools import cache

import numpy as np
from numpy.typing import NDArray

from seq2seq.diagnosis.chinese import SIMPLIFIED, TRADITIONAL


class Kind(IntEnum):
    """What a character is. From LATIN on they are letters of a script."""

    OTHER = 0
    SPACE = 1
    DIGIT = 2
    CLOSING = 3  # a mark that follows a word without a blank: , . ! and the like
    LESS = 4
    GREATER = 5
    AMPERSAND = 6
    AT = 7
    PIECE_MARK = 8  # the blank of SentencePiece, U+2581
    CARRIAGE_RETURN = 9
    LINE_BREAK = 10  # what some programs end a line at, and this one does not
    CONTROL = 11
    BYTE_ORDER_MARK = 12
    REPLACEMENT = 13
    PRIVATE = 14  # private use, noncharacters, half surrogates
    INVISIBLE = 15
    COMPATIBLE = 16  # full-width letters, ligatures: forms that NFKC writes otherwise
    SEMICOLON = 17
    LATIN = 18
    GREEK = 19
    CYRILLIC = 20
    ARMENIAN = 21
    HEBREW = 22
    ARABIC = 23
    DEVANAGARI = 24
    BENGALI = 25
    GURMUKHI = 26
    GUJARATI = 27
    ORIYA = 28
    TAMIL = 29
    TELUGU = 30
    KANNADA = 31
    MALAYALAM = 32
    SINHALA = 33
    THAI = 34
    LAO = 35
    TIBETAN = 36
    MYANMAR = 37
    GEORGIAN = 38
    ETHIOPIC = 39
    KHMER = 40
    MONGOLIAN = 41
    HANGUL = 42
    KANA = 43
    HAN = 44
    SIMPLIFIED_HAN = 45
    TRADITIONAL_HAN = 46

    @property
    def title(self) -> str:
        return {"SIMPLIFIED_HAN": "Han", "TRADITIONAL_HAN": "Han"}.get(self.name, self.name.title())


KINDS = len(Kind)
FIRST_SCRIPT = Kind.LATIN
ALL_HAN = frozenset({Kind.HAN, Kind.SIMPLIFIED_HAN, Kind.TRADITIONAL_HAN})

_SCRIPT_RANGES = {
    Kind.LATIN: ((0x41, 0x24F), (0x250, 0x2AF), (0x1E00, 0x1EFF), (0x2C60, 0x2C7F), (0xA720, 0xA7FF)),
    Kind.GREEK: ((0x370, 0x3FF), (0x1F00, 0x1FFF)),
    Kind.CYRILLIC: ((0x400, 0x52F), (0x1C80, 0x1C8F), (0x2DE0, 0x2DFF), (0xA640, 0xA69F)),
    Kind.ARMENIAN: ((0x530, 0x58F), (0xFB13, 0xFB17)),
    Kind.HEBREW: ((0x590, 0x5FF), (0xFB1D, 0xFB4F)),
    Kind.ARABIC: ((0x600, 0x6FF), (0x750, 0x77F), (0x8A0, 0x8FF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFE)),
    Kind.DEVANAGARI: ((0x900, 0x97F), (0xA8E0, 0xA8FF)),
    Kind.BENGALI: ((0x980, 0x9FF),),
    Kind.GURMUKHI: ((0xA00, 0xA7F),),
    Kind.GUJARATI: ((0xA80, 0xAFF),),
    Kind.ORIYA: ((0xB00, 0xB7F),),
    Kind.TAMIL: ((0xB80, 0xBFF),),
    Kind.TELUGU: ((0xC00, 0xC7F),),
    Kind.KANNADA: ((0xC80, 0xCFF),),
    Kind.MALAYALAM: ((0xD00, 0xD7F),),
    Kind.SINHALA: ((0xD80, 0xDFF),),
    Kind.THAI: ((0xE00, 0xE7F),),
    Kind.LAO: ((0xE80, 0xEFF),),
    Kind.TIBETAN: ((0xF00, 0xFFF),),
    Kind.MYANMAR: ((0x1000, 0x109F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F)),
    Kind.GEORGIAN: ((0x10A0, 0x10FF), (0x1C90, 0x1CBF), (0x2D00, 0x2D2F)),
    Kind.ETHIOPIC: ((0x1200, 0x139F), (0x2D80, 0x2DDF), (0xAB00, 0xAB2F)),
    Kind.KHMER: ((0x1780, 0x17FF),),
    Kind.MONGOLIAN: ((0x1800, 0x18AF),),
    Kind.HANGUL: ((0x1100, 0x11FF), (0x3130, 0x318F), (0xAC00, 0xD7FF)),
    Kind.KANA: ((0x3041, 0x30FF), (0x31F0, 0x31FF)),
    Kind.HAN: ((0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF)),
}

_SINGLE = {
    Kind.SPACE: " ",
    Kind.CLOSING: ",.!?:)]}。，！？；：、）】」》",
    Kind.LESS: "<",
    Kind.GREATER: ">",
    Kind.AMPERSAND: "&",
    Kind.SEMICOLON: ";",
    Kind.AT: "@",
    Kind.PIECE_MARK: "\u2581",
    Kind.CARRIAGE_RETURN: "\r",
    Kind.LINE_BREAK: "\v\f\x1c\x1d\x1e\x85\u2028\u2029",
    Kind.BYTE_ORDER_MARK: "\ufeff",
    Kind.REPLACEMENT: "\ufffd",
    # Joiners and non-joiners (U+200C, U+200D) are part of Persian, of Indic scripts and of emoji.
    Kind.INVISIBLE: "\xad\u200b\u2060\u180e" + "".join(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))),
}

_BLOCKS = {
    Kind.PRIVATE: ((0xD800, 0xF8FF), (0xFDD0, 0xFDEF), (0xF0000, 0x10FFFF)),
    Kind.COMPATIBLE: ((0xFB00, 0xFB06), (0xFF10, 0xFF19), (0xFF21, 0xFF3A), (0xFF41, 0xFF5A), (0xFF66, 0xFF9F)),
}

# Which scripts a language is written in; for the codes that are not here the text itself decides.
_LATIN_LANGUAGES = (
    "af bs ca cs cy da de en eo es et eu fi fr fy ga gd gl ha hr hu id ig is it jv la lb lt lv mg mi ms mt nb nl nn "
    "no oc pl pt ro rw sk sl so sq su sv sw tl tr vi xh yo zu"
)
_OTHER_LANGUAGES = {
    "el": (Kind.GREEK,),
    "hy": (Kind.ARMENIAN,),
    "am": (Kind.ETHIOPIC,),
    "ka": (Kind.GEORGIAN,),
    "bn": (Kind.BENGALI,),
    "gu": (Kind.GUJARATI,),
    "pa": (Kind.GURMUKHI, Kind.ARABIC),
    "ta": (Kind.TAMIL,),
    "te": (Kind.TELUGU,),
    "kn": (Kind.KANNADA,),
    "ml": (Kind.MALAYALAM,),
    "si": (Kind.SINHALA,),
    "th": (Kind.THAI,),
    "lo": (Kind.LAO,),
    "km": (Kind.KHMER,),
    "my": (Kind.MYANMAR,),
    "bo": (Kind.TIBETAN,),
    "ko": (Kind.HANGUL, *ALL_HAN),
    "zh": tuple(ALL_HAN),
    "ja": (Kind.KANA, *ALL_HAN),
}
_SHARED = {
    "ru uk be bg mk kk ky tg": (Kind.CYRILLIC,),
    "sr mn": (Kind.CYRILLIC, Kind.LATIN, Kind.MONGOLIAN),
    "az uz": (Kind.LATIN, Kind.CYRILLIC),
    "he yi": (Kind.HEBREW,),
    "ar fa ur ps ug sd": (Kind.ARABIC,),
    "hi mr ne sa": (Kind.DEVANAGARI,),
}


def scripts_of(language: str | None) -> frozenset[Kind] | None:
    """The scripts that a language is written in, by its code (`pt_BR` counts as `pt`); None where it is not known."""
    code = (language or "").lower().replace("-", "_").split("_")[0]
    for codes, scripts in (*_OTHER_LANGUAGES.items(), *_SHARED.items()):
        if code and code in codes.split():
            return frozenset(scripts)
    return frozenset({Kind.LATIN}) if code in _LATIN_LANGUAGES.split() else None


@cache
def table() -> NDArray[np.uint8]:
    """The kind of every code point."""
    kinds = np.zeros(sys.maxunicode + 1, dtype=np.uint8)
    for script, ranges in _SCRIPT_RANGES.items():
        for first, last in ranges:
            kinds[first : last + 1] = script
    # Digits and marks inside the blocks are no letters; beyond the first plane there are only ideographs here.
    for code in range(0x10000):
        category = unicodedata.category(chr(code))
        if category == "Nd":
            kinds[code] = Kind.DIGIT
        elif kinds[code] and category[0] not in "LM" and not (kinds[code] == Kind.HAN and category == "Nl"):
            kinds[code] = Kind.OTHER
        if category == "Cc" and code != 0x09 and code != 0x0A:
            kinds[code] = Kind.CONTROL
    for kind, blocks in _BLOCKS.items():
        for first, last in blocks:
            kinds[first : last + 1] = kind
    for kind, characters in _SINGLE.items():
        kinds[[ord(character) for character in characters]] = kind
    kinds[[ord(character) for character in SIMPLIFIED]] = Kind.SIMPLIFIED_HAN
    kinds[[ord(character) for character in TRADITIONAL]] = Kind.TRADITIONAL_HAN
    kinds.flags.writeable = False
    return kinds


def code_points(text: str) -> NDArray[np.uint32]:
    """The characters of a text as numbers, X of them; half surrogates stay what they are."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def count_kinds(kinds_X: NDArray[np.uint8], line_X: NDArray[np.int64], lines: int) -> NDArray[np.int64]:
    """How many characters of each kind every line has, as counts_NK; `line_X` says which line a character is in."""
    counts: NDArray[np.int64] = np.bincount(line_X * KINDS + kinds_X, minlength=lines * KINDS)
    return counts.reshape(lines, KINDS)


def names(scripts: frozenset[Kind]) -> str:
    """Scripts in words: "Latin", "Han and Kana"."""
    return " and ".join(sorted({script.title for script in scripts}))
