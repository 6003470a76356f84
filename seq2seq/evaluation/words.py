"""What counts as a word where a sentence is measured and not scored: what stands between blanks, or a character.

Scores never use this: they cut words as sacreBLEU does.
"""

from __future__ import annotations

from collections.abc import Iterable


def is_unspaced(lines: Iterable[str]) -> bool:
    """Whether most of a text is written without blanks between its words."""
    text = "".join(lines)
    # Thai to Khmer, kana, Han (the planes beyond the first included); Hangul is written with blanks.
    unspaced = sum(1 for c in text if "\u0e00" <= c <= "\u109f" or "\u3040" <= c <= "\u9fff" or c >= "\U00020000")
    return unspaced * 2 > len(text)


def cut(line: str, unspaced: bool) -> list[str]:
    """The words of a line, or its characters but for blanks."""
    return [letter for letter in line if not letter.isspace()] if unspaced else line.split()


def spoken(line: str, unspaced: bool) -> list[str]:
    """The words of a line as they are said: without capitals and punctuation."""
    bare = ("".join(letter for letter in word if letter.isalnum()) for word in cut(line.casefold(), unspaced))
    return [word for word in bare if word]
