"""What a test set has in common with the text that its model was trained on, as long as that text is still there."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from seq2seq.corpus.lines import clean
from seq2seq.errors import CorpusError
from seq2seq.evaluation.words import is_unspaced, spoken

if TYPE_CHECKING:
    from seq2seq.config.schema import Config

# Pairs read at the most: it takes seconds, and what the first so many do not hold is rare.
MOST_PAIRS = 500_000
_CHUNK = 10_000


class Pieces(Protocol):
    """What is asked of a tokenizer here."""

    @property
    def source_size(self) -> int: ...

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]: ...


@dataclass(frozen=True)
class TrainingText:
    """Shares of a test set's sources, 0 to 1, and how many training pairs have been looked at."""

    pairs: int
    complete: bool  # whether that is all of them
    seen: float  # sentences that training has seen word for word, capitals aside
    unknown_words: float  # words (or characters) that stand nowhere in the training sources
    unknown_pieces: float  # pieces that no training source is cut into
    untranslated: float  # training pairs whose sides are the same


def compare_with_training(sources: Sequence[str], config: Config, tokenizer: Pieces) -> TrainingText | None:
    """Read the training corpus of a run once more. None where it is gone, or not as it was."""
    from seq2seq.corpus.splits import open_corpora

    try:
        return compare_texts(sources, open_corpora(config.data, config.seed).train, tokenizer)
    except (CorpusError, OSError):
        return None


def compare_texts(sources: Sequence[str], pairs: Iterable[tuple[str, str]], tokenizer: Pieces) -> TrainingText:
    """Look up the sentences, words and pieces of a test set in the training pairs, which stream past."""
    tests = [clean(line) for line in sources if line.strip()]
    unspaced = is_unspaced(tests)
    missing = {line.casefold() for line in tests}
    wanted = {word for line in tests for word in spoken(line, unspaced)}
    met_words: set[str] = set()
    met_pieces = bytearray(tokenizer.source_size)
    met_lines: set[str] = set()
    read = same = 0
    stream = iter(pairs)
    while chunk := list(islice(stream, min(_CHUNK, MOST_PAIRS - read))):
        read += len(chunk)
        for source, target in chunk:
            line = source.casefold()
            same += source == target
            if line in missing:
                met_lines.add(line)
            met_words.update(wanted.intersection(spoken(line, unspaced)))
        for row in tokenizer.encode_source([source for source, _ in chunk]):
            for piece in row:
                met_pieces[piece] = 1
    words = [word for line in tests for word in spoken(line, unspaced)]
    pieces = array("i", (piece for row in tokenizer.encode_source(tests) for piece in row))
    return TrainingText(
        pairs=read,
        complete=next(stream, None) is None,
        seen=_share(line.casefold() in met_lines for line in tests),
        unknown_words=_share(word not in met_words for word in words),
        unknown_pieces=_share(not met_pieces[piece] for piece in pieces),
        untranslated=same / max(1, read),
    )


def _share(signs: Iterable[bool]) -> float:
    found = list(signs)
    return sum(found) / max(1, len(found))
