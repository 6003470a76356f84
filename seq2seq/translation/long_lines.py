"""A long line: cut into parts that a model can read, and put together again.

A part ends after a sentence where it can, else between words; nothing is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

# Languages written without blanks: parts of a split line are joined as they are.
_NO_BLANKS = ("zh", "cmn", "yue", "ja", "th", "lo", "km", "my", "bo")
_SENTENCE_END = (".", "!", "?", "…", "؟", "۔", "।", ";")
_WIDE_END = ("。", "！", "？", "；")
_INNER_BYTE = re.compile("<0x[89AB][0-9A-F]>")
# Characters that are cut into pieces at a time; a line of text may be as long as a book.
_LONGEST_PASSAGE = 20_000
_WORD_START = "▁"


def passages(text: str) -> Iterator[str]:
    """A text whole, or a very long one in passages that end between words where it has any: a line may be a book."""
    start = 0
    while len(text) - start > _LONGEST_PASSAGE:
        end = text.rfind(" ", start + 1, start + _LONGEST_PASSAGE)
        end = start + _LONGEST_PASSAGE if end < 0 else end
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def split_long(ids: Sequence[int], pieces: Sequence[str], longest: int) -> list[list[int]]:
    """Cut a long line into parts of at most `longest` pieces, as late as possible after the end of a sentence in the
    second half of a part, else before a word, else between two characters, else where it must be."""
    parts, start = [], 0
    while len(ids) - start > longest:
        window = range(start + longest, start + longest // 2, -1)
        words = [cut for cut in window if pieces[cut].startswith(_WORD_START)]
        ends = (cut for cut in window if _ends_sentence(pieces[cut - 1], pieces[cut]))
        # A character that has no piece is spelt in UTF-8, such as <0xE2><0x82><0xAC>.
        characters = (cut for cut in window if not _INNER_BYTE.fullmatch(pieces[cut]))
        cut = next(ends, None) or next(iter(words), None) or next(characters, None) or start + longest
        parts.append(list(ids[start:cut]))
        start = cut
    return [*parts, list(ids[start:])]


def _ends_sentence(piece: str, following: str) -> bool:
    """A point within a number or a name ends nothing; the ends of sentences of Chinese need no blank."""
    return piece.endswith(_WIDE_END) or (piece.endswith(_SENTENCE_END) and following.startswith(_WORD_START))


def joined(texts: Iterable[str], language: str) -> str:
    """The translations of a line's parts as one text of a language, given by its code."""
    joint = "" if language.lower().replace("_", "-").split("-")[0] in _NO_BLANKS else " "
    return joint.join(text for text in texts if text)
