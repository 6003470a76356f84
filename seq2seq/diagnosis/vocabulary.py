"""Vocabulary: what one of a given size does to the text: pieces a word, pairs that become too long, lost letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from seq2seq.corpus.lines import clean
from seq2seq.corpus.tokenizer import Tokenizer
from seq2seq.diagnosis.found import Text
from seq2seq.diagnosis.scan import read_pairs
from seq2seq.errors import TokenizerError

if TYPE_CHECKING:
    from seq2seq.config.schema import TokenizerConfig

SAMPLE = 20_000  # pairs from which the vocabulary is learnt
HELD_OUT = 2_000  # pairs on which it is measured
_LONGEST = 2_000  # characters of a line of the sample; longer ones take long and say nothing


@dataclass(frozen=True)
class SideUse:
    """What became of one side: a word is what stands between blanks; `unknown` counts characters without a piece."""

    pieces_per_word: float
    characters_per_piece: float
    mean_pieces: float
    longest_percent: float  # the length in pieces that 99 % of the lines do not exceed
    unknown: int
    characters: int


@dataclass(frozen=True)
class VocabularyUse:
    """A vocabulary of `size` pieces, learnt from `sample` pairs and measured on `measured` others.

    `failure` says why it could not be learnt; then there is nothing else.
    """

    size: int
    sample: int = 0
    measured: int = 0
    too_long: int = 0
    source: SideUse | None = None
    target: SideUse | None = None
    failure: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def sample(train: Sequence[Text], held_out: Sequence[Text]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Pairs to learn from, taken evenly from the training text, and pairs to measure on: of the validation and test
    sets, or training pairs that are not in the sample."""
    total = sum(len(text) for text in train)
    step = max(2 if not held_out else 1, -(-total // SAMPLE))
    learnt = _filled(train, step, 0, SAMPLE)
    if held_out:
        size = sum(len(text) for text in held_out)
        return learnt, _filled(held_out, max(1, -(-size // HELD_OUT)), 0, HELD_OUT)
    return learnt, _filled(train, max(step, -(-total // HELD_OUT) // step * step), 1, HELD_OUT)


def _filled(texts: Sequence[Text], step: int, first: int, most: int) -> list[tuple[str, str]]:
    """Every step-th pair, cleaned, without the blank ones."""
    pairs = (pair for text in texts for pair in read_pairs(text.files))
    short = ((clean(s), clean(t)) for s, t in islice(pairs, first, None, step) if max(len(s), len(t)) <= _LONGEST)
    return list(islice(((s, t) for s, t in short if s and t), most))


def try_vocabulary(
    settings: TokenizerConfig,
    size: int,
    learnt: Sequence[tuple[str, str]],
    measured: Sequence[tuple[str, str]],
    max_length: int,
) -> VocabularyUse:
    """Learn a vocabulary and use it."""
    try:
        tokenizer = Tokenizer.train(list(learnt), settings.model_copy(update={"vocab_size": size}))
    except TokenizerError as error:
        return VocabularyUse(size, len(learnt), failure=str(error))
    sources, targets = [source for source, _ in measured], [target for _, target in measured]
    source_ids, target_ids = tokenizer.encode_source(sources), tokenizer.encode_target(targets)
    too_long = sum(max(len(s), len(t)) > max_length for s, t in zip(source_ids, target_ids, strict=True))
    known = [
        {piece for piece in pieces(range(count)) if len(piece) == 1}
        for pieces, count in (
            (tokenizer.source_pieces, tokenizer.source_size),
            (tokenizer.target_pieces, tokenizer.target_size),
        )
    ]
    return VocabularyUse(
        size,
        len(learnt),
        len(measured),
        too_long,
        _use(sources, source_ids, known[0]),
        _use(targets, target_ids, known[1]),
    )


def _use(texts: Sequence[str], ids: Sequence[Sequence[int]], known: set[str]) -> SideUse:
    lengths = np.asarray([len(row) for row in ids] or [0])
    letters = [character for text in texts for character in text if character != " "]
    pieces = max(1, int(lengths.sum()))
    words = max(1, sum(len(text.split()) for text in texts))
    return SideUse(
        pieces_per_word=round(pieces / words, 2),
        characters_per_piece=round(sum(map(len, texts)) / pieces, 2),
        mean_pieces=round(float(lengths.mean()), 1),
        longest_percent=float(np.percentile(lengths, 99)),
        unknown=sum(letter not in known for letter in letters),
        characters=len(letters),
    )
