"""Encoded text: a corpus as two flat arrays of ids, small enough that millions of pairs fit in memory.

A list of lists of Python numbers takes some thirty times the memory of the ids themselves.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

# Pairs encoded at a time, or as many characters; the latter for lines as long as books.
CHUNK = 4096
MOST_TEXT = 8_000_000
# A side of more characters than this, for each piece that it may have, is too long without being cut into pieces.
CHARACTERS_A_PIECE = 200


class Encoder(Protocol):
    """What is asked of a tokenizer here."""

    @property
    def source_size(self) -> int: ...

    @property
    def target_size(self) -> int: ...

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]: ...

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]: ...


@dataclass(frozen=True)
class EncodedSide:
    """The sentences of one language: sentence i is ids[offsets[i]:offsets[i + 1]], without begin and end marks.

    `ids` is uint16 where the vocabulary fits, else int32; `offsets` is int64, one longer than there are sentences.
    """

    ids: NDArray[Any]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[Any]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        index %= len(self)
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def lengths_of(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """The lengths of some sentences."""
        lengths: NDArray[np.int64] = self.offsets[indices + 1] - self.offsets[indices]
        return lengths

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)


@dataclass(frozen=True)
class EncodedCorpus:
    """Aligned sentences of both languages, and how many pairs were left out as too long."""

    source: EncodedSide
    target: EncodedSide
    too_long: int = 0

    def __len__(self) -> int:
        return len(self.source)


def encode_corpus(
    corpus: Iterable[tuple[str, str]],
    tokenizer: Encoder,
    max_length: int,
    progress: Callable[[int], None] | None = None,
) -> EncodedCorpus:
    """Encode all pairs; one with a side of more than `max_length` pieces is dropped and counted.

    `progress` is told after each chunk how many pairs have been read.
    """
    source, target = _Growing(tokenizer.source_size), _Growing(tokenizer.target_size)
    read = too_long = 0
    pairs = iter(corpus)
    while met := _chunk(pairs):
        read += len(met)
        chunk = [pair for pair in met if max(map(len, pair)) <= CHARACTERS_A_PIECE * max_length]
        too_long += len(met) - len(chunk)
        source_rows = tokenizer.encode_source([pair[0] for pair in chunk])
        target_rows = tokenizer.encode_target([pair[1] for pair in chunk])
        fits = [max(len(s), len(t)) <= max_length for s, t in zip(source_rows, target_rows, strict=True)]
        too_long += fits.count(False)
        source.extend([row for row, fit in zip(source_rows, fits, strict=True) if fit])
        target.extend([row for row, fit in zip(target_rows, fits, strict=True) if fit])
        if progress is not None:
            progress(read)
    return EncodedCorpus(source.finish(), target.finish(), too_long)


def _chunk(pairs: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    """The next pairs to encode together; none at the end."""
    chunk: list[tuple[str, str]] = []
    room = MOST_TEXT
    for pair in islice(pairs, CHUNK):
        chunk.append(pair)
        room -= len(pair[0]) + len(pair[1])
        if room <= 0:
            break
    return chunk


def growing_side(vocabulary: int) -> _Growing:
    """An empty side, to be filled with rows of ids below `vocabulary`."""
    return _Growing(vocabulary)


class _Growing:
    """A side in the making. `array` grows in place, where joining numpy arrays would hold everything twice."""

    def __init__(self, vocabulary: int) -> None:
        self._ids = array("H" if vocabulary <= 1 << 16 else "i")
        self._lengths = array("i")

    def extend(self, rows: list[list[int]]) -> None:
        self._ids.extend(chain.from_iterable(rows))
        self._lengths.extend(map(len, rows))

    def finish(self) -> EncodedSide:
        offsets = np.zeros(len(self._lengths) + 1, dtype=np.int64)
        np.cumsum(self._lengths, out=offsets[1:])
        return EncodedSide(np.asarray(self._ids), offsets)
