"""Survey: what a corpus is like, in the few numbers that a config depends on.

Words are what stands between blanks; where a script has no blanks between words, two letters count as one, so that
corpora of any two languages can be compared.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from seq2seq.corpus.pairs import ParallelCorpus
from seq2seq.diagnosis.characters import scripts_of

if TYPE_CHECKING:
    from seq2seq.config.schema import PairFiles

# By the first word of a letter's Unicode name.
_WITHOUT_BLANKS = {"CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"}
LETTERS_A_WORD = 2
# How diagnosis/characters.py calls them.
_TITLES = {"CJK": "Han", "Hiragana": "Kana", "Katakana": "Kana"}


@dataclass(frozen=True)
class Side:
    """One language: words and characters in all, the longest sentence in words, and the scripts by their share."""

    words: int
    characters: int
    longest: int
    different_characters: int
    scripts: tuple[tuple[str, float], ...]  # the most frequent first; of letters alone

    @property
    def script(self) -> str:
        return self.scripts[0][0] if self.scripts else "no letters"


@dataclass(frozen=True)
class Survey:
    """A corpus: pairs, both sides, how many pairs are there twice or more, sources with another translation, losses."""

    pairs: int
    source: Side
    target: Side
    repeated: int
    retranslated: int
    bad: int
    messages: tuple[str, ...]

    @property
    def different_sources(self) -> int:
        return self.pairs - self.repeated - self.retranslated

    @property
    def words(self) -> int:
        """Of the longer side: what there is to learn from."""
        return max(self.source.words, self.target.words)

    def is_exchanged(self, source_language: str, target_language: str) -> bool:
        """Whether each side is written as the other's language is, and not as its own."""
        wanted = [{kind.title for kind in scripts_of(one) or ()} for one in (source_language, target_language)]
        found = [_TITLES.get(side.script, side.script) for side in (self.source, self.target)]
        own = found[0] in wanted[0] or found[1] in wanted[1]
        return not own and found[0] in wanted[1] and found[1] in wanted[0]

    @property
    def one_script(self) -> bool:
        """Whether both languages are written in the same letters, so that they can share pieces."""
        return self.source.script == self.target.script


def survey(files: Sequence[PairFiles]) -> Survey:
    """Read a corpus once. Lines that cannot be used are left out and counted; CorpusError where none can."""
    corpus = ParallelCorpus(files, key="", bad_lines="drop")
    source, target = _Counting(), _Counting()
    sources, pairs = array("Q"), array("Q")
    for one, other in corpus:
        source.add(one)
        target.add(other)
        sources.append(_digest(one))
        pairs.append(_digest(f"{one}\t{other}"))
    count = len(pairs)
    different_pairs, different_sources = _different(pairs), _different(sources)
    return Survey(
        count,
        source.finish(),
        target.finish(),
        repeated=count - different_pairs,
        retranslated=different_pairs - different_sources,
        bad=corpus.report.bad,
        messages=tuple(corpus.report.messages()),
    )


class _Counting:
    def __init__(self) -> None:
        self._characters: Counter[str] = Counter()
        self._words = self._longest = self._longest_letters = 0

    def add(self, text: str) -> None:
        words = text.count(" ") + 1
        self._words += words
        self._longest = max(self._longest, words)
        self._longest_letters = max(self._longest_letters, len(text))
        self._characters.update(text)

    def finish(self) -> Side:
        scripts: Counter[str] = Counter()
        for character, count in self._characters.items():
            if character.isalpha():
                scripts[unicodedata.name(character, "UNNAMED").partition(" ")[0].partition("-")[0]] += count
        letters = scripts.total()
        without_blanks = sum(count for script, count in scripts.items() if script in _WITHOUT_BLANKS)
        words, longest = self._words, self._longest
        if without_blanks * 2 > letters:
            words = max(words, letters // LETTERS_A_WORD)
            longest = max(longest, self._longest_letters // LETTERS_A_WORD)
        # Equally frequent scripts in the order of their names: the same text gives the same config.
        ranked = sorted(scripts.items(), key=lambda item: (-item[1], item[0]))
        shares = tuple((script.capitalize() if script != "CJK" else script, n / letters) for script, n in ranked)
        return Side(words, self._characters.total(), longest, len(self._characters), shares)


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _different(hashes: array[int]) -> int:
    import numpy as np

    return len(np.unique(np.frombuffer(hashes, dtype=np.uint64)))
