"""Vocabulary: what one of a given size does to the text: pieces a word, pairs that become too long, lost letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    sets, or every tenth training pair (fewer of a large text), which is then not learnt from."""
    total, held = (sum(map(len, texts)) for texts in (train, held_out))
    step, every = max(1, -(-total // SAMPLE)), max(10, -(-total // HELD_OUT))
    measured = list(_filled(held_out, range(0, held, max(1, -(-held // HELD_OUT)))))
    apart = range(0) if measured else range(every - 1, total, every)
    learnt = (number for number in range(0, total, step) if number not in apart)
    return list(_filled(train, learnt)), measured or list(_filled(train, apart))


def _filled(texts: Sequence[Text], numbers: Iterable[int]) -> Iterator[tuple[str, str]]:
    """The pairs of these numbers (in order), cleaned, without the blank and the very long ones."""
    pairs = (pair for text in texts for pair in read_pairs(text.files))
    position = 0
    for number in numbers:
        for source, target in islice(pairs, number - position, number - position + 1):
            if max(len(source), len(target)) <= _LONGEST and (source := clean(source)) and (target := clean(target)):
                yield source, target
        position = number + 1


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
