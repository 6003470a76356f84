"""Links: each target word and the source word that it looked at most, in Pharaoh's form, and how wrong they are.

Pharaoh's form (Koehn 2004): `0-0 1-2` links source word 0 with target word 0 and source word 1 with target word 2.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from torch import Tensor

from seq2seq.evaluation.attention_report.sentences import Part, Sentence
from seq2seq.evaluation.attention_report.units import WORD_START, surfaces, words_of

Link = tuple[int, int]  # source, target, from 0


def strongest_links(weights_TS: Tensor) -> list[Link]:
    """The strongest link of each target unit; the last row and column are the end marks.

    One that looks most at the end mark has none: it has no source word.
    """
    end = weights_TS.shape[1] - 1
    found = weights_TS[:-1].argmax(dim=1).tolist()
    return [(source, target) for target, source in enumerate(found) if source != end]


def links_of(part: Part, kind: str = "words") -> list[Link]:
    """The strongest links of a part, by the mean of the heads."""
    return strongest_links(part.weights(kind).mean(dim=0))


def pharaoh(sentence: Sentence, kind: str = "words") -> str:
    """The links of a whole line; the words of its second part are numbered on from the first part's."""
    links: list[Link] = []
    sources = targets = 0
    for part in sentence.parts:
        if kind == "words" and sources and _goes_on(sentence, part):
            sources -= 1
        links += [(source + sources, target + targets) for source, target in links_of(part, kind)]
        source_units, target_units = part.units(kind)
        sources, targets = sources + len(source_units) - 1, targets + len(target_units) - 1
    return written(links)


def _goes_on(sentence: Sentence, part: Part) -> bool:
    """Whether a part begins within a word, where a very long one had to be cut."""
    last = sentence.parts[sentence.parts.index(part) - 1]
    joined = [*last.source_pieces[:-1], *part.source_pieces[:-1]]
    cut = len(last.source_pieces) - 1
    starts_with_blank = surfaces(part.source_pieces[:1])[0].startswith(WORD_START)
    return not starts_with_blank and all(unit.first != cut for unit in words_of(joined))


def written(links: Iterable[Link]) -> str:
    """Links in Pharaoh's form."""
    return " ".join(f"{source}-{target}" for source, target in links)


def read(text: str) -> set[Link]:
    """Links from Pharaoh's form. ValueError, naming the word, where something is no link."""
    links = set()
    for word in text.split():
        found = re.fullmatch(r"(\d+)-(\d+)", word)
        if found is None:
            raise ValueError(f"{word!r} is no link such as 0-0")
        links.add((int(found[1]), int(found[2])))
    return links


@dataclass
class AlignmentError:
    """Counts over any number of sentences, and what follows from them (Och & Ney 2003, section 5.1).

    A person has marked sure links and possible ones. Precision: how many of the found links are at least possible.
    Recall: how many of the sure ones were found. The error rate puts both together; 0 is perfect.
    """

    found: int = 0
    sure: int = 0
    found_possible: int = 0
    found_sure: int = 0

    def add(self, found: Collection[Link], sure: Collection[Link], possible: Collection[Link]) -> None:
        """Count one sentence; sure links are possible ones whether `possible` repeats them or not."""
        links, certain = set(found), set(sure)
        self.found += len(links)
        self.sure += len(certain)
        self.found_sure += len(links & certain)
        self.found_possible += len(links & (certain | set(possible)))

    @property
    def precision(self) -> float:
        return self.found_possible / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.found_sure / self.sure if self.sure else 0.0

    @property
    def rate(self) -> float:
        total = self.found + self.sure
        return 1 - (self.found_sure + self.found_possible) / total if total else 0.0
