"""Sentences: lines with their translations and the weights of every piece, ready to be shown in any form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from seq2seq.evaluation.attention_report.forcing import Look, force
from seq2seq.evaluation.attention_report.units import Unit, merged, pieces_of, words_of
from seq2seq.translation.translator import Translation, Translator

END = "</s>"  # the end mark, the last piece on both sides


@dataclass(frozen=True)
class Part:
    """What the model read at once, a line or a part of a long one, and what it wrote; pieces include the end marks."""

    source_pieces: list[str]
    target_pieces: list[str]
    look: Look

    def units(self, kind: str) -> tuple[list[Unit], list[Unit]]:
        """Source and target in `words` or in `pieces`; the end mark is the last unit of each."""
        return _with_end(self.source_pieces, kind), _with_end(self.target_pieces, kind)

    def weights(self, kind: str) -> Tensor:
        """The weights per head between the units, (N,T,S)."""
        source, target = self.units(kind)
        return merged(self.look.weights_NTS, target, source)


def _with_end(pieces: Sequence[str], kind: str) -> list[Unit]:
    if kind == "pieces":
        return pieces_of(pieces)
    return [*words_of(pieces[:-1]), Unit(END, len(pieces) - 1, len(pieces))]


@dataclass(frozen=True)
class Sentence:
    """A line of the input, its number from 1, its translation, and its parts: usually one, none for a blank line."""

    number: int
    source: str
    translation: str
    parts: list[Part]

    def as_dict(self) -> dict[str, Any]:
        """Pieces, words (each with the range of its pieces) and weights as plain numbers."""
        return {
            "line": self.number,
            "source": self.source,
            "translation": self.translation,
            "parts": [_part_as_dict(part) for part in self.parts],
        }


def _part_as_dict(part: Part) -> dict[str, Any]:
    source, target = part.units("words")
    heads = part.look.weights_NTS
    return {
        "source_pieces": part.source_pieces,
        "target_pieces": part.target_pieces,
        "source_words": [{"text": unit.text, "pieces": [unit.first, unit.end]} for unit in source],
        "target_words": [{"text": unit.text, "pieces": [unit.first, unit.end]} for unit in target],
        "weights": _rounded(heads.mean(dim=0)),
        "heads": [_rounded(head_TS) for head_TS in heads],
        "word_weights": _rounded(part.weights("words").mean(dim=0)),
    }


def _rounded(weights_TS: Tensor) -> list[list[float]]:
    return [[round(weight, 6) for weight in row] for row in weights_TS.tolist()]


def attended(
    translator: Translator,
    lines: Sequence[str],
    *,
    beam_size: int | None = None,
    batch_size: int | None = None,
    first: int = 1,
) -> Iterator[tuple[Translation, Sentence]]:
    """Translate the lines and look at each; `first` is the number of the first of them."""
    translations = translator.translate(lines, beam_size=beam_size, batch_size=batch_size)
    for number, translation in enumerate(translations, start=first):
        parts = [look_at(translator, source, target) for source, target in translation.ids]
        yield translation, Sentence(number, translation.source, translation.text, parts)


def look_at(translator: Translator, source: Sequence[int], target: Sequence[int]) -> Part:
    """Where the model looks while it is made to write a given target; ids without end marks."""
    tokenizer = translator.tokenizer
    look = force(translator.model, source, target, translator.device)
    return Part([*tokenizer.source_pieces(source), END], [*tokenizer.target_pieces(target), END], look)
