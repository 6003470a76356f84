"""Encoded text: a corpus as two flat arrays of ids, small enough that millions of pairs fit in memory.

Larger ones lie in files of the same form (mapped.py).

A list of lists of Python numbers takes some thirty times the memory of the ids themselves.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

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
    def lengths(self) -> NDArray[np.int32]:
        lengths = np.empty(len(self), dtype=np.int32)
        # A ufunc that converts does so a little at a time, where a difference in int64 would be held whole.
        np.subtract(self.offsets[1:], self.offsets[:-1], out=lengths, casting="same_kind")
        return lengths


@dataclass(frozen=True)
class EncodedCorpus:
    """Aligned sentences of both languages, and how many pairs were left out as too long.

    `folder` is where the arrays lie as files, if they are pages of files and not of this process's own memory; then the
    fingerprint is `known` as well.
    """

    source: EncodedSide
    target: EncodedSide
    too_long: int = 0
    folder: Path | None = None
    known: str | None = None

    def __len__(self) -> int:
        return len(self.source)

    def fingerprint(self) -> str:
        """The same for two corpora only if their pairs are the same, in the same order (SHA-256)."""
        return self.known or self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        for side in (self.source, self.target):
            for numbers in (side.offsets, side.ids):
                digest.update(np.ascontiguousarray(numbers).view(np.uint8).data)
        return digest.hexdigest()


class EncodedChunk(NamedTuple):
    """Some pairs encoded: the ids of a side in a row and the length of each sentence; pairs read and left out."""

    source_ids: NDArray[Any]
    source_lengths: NDArray[np.int32]
    target_ids: NDArray[Any]
    target_lengths: NDArray[np.int32]
    read: int
    too_long: int


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
    for met in chunks(corpus):
        chunk = encode_chunk(met, tokenizer, max_length)
        source.extend(chunk.source_ids, chunk.source_lengths)
        target.extend(chunk.target_ids, chunk.target_lengths)
        read, too_long = read + chunk.read, too_long + chunk.too_long
        if progress is not None:
            progress(read)
    return EncodedCorpus(source.finish(), target.finish(), too_long)


def encode_chunk(met: list[tuple[str, str]], tokenizer: Encoder, max_length: int) -> EncodedChunk:
    """Encode some pairs, without those that have a side of more than `max_length` pieces."""
    chunk = [pair for pair in met if max(map(len, pair)) <= CHARACTERS_A_PIECE * max_length]
    source_rows = tokenizer.encode_source([pair[0] for pair in chunk])
    target_rows = tokenizer.encode_target([pair[1] for pair in chunk])
    rows = [pair for pair in zip(source_rows, target_rows, strict=True) if max(map(len, pair)) <= max_length]
    source = _flat([row for row, _ in rows], tokenizer.source_size)
    target = _flat([row for _, row in rows], tokenizer.target_size)
    return EncodedChunk(*source, *target, len(met), len(met) - len(rows))


def _flat(rows: list[list[int]], vocabulary: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The ids of all rows in a row, and the length of each."""
    lengths = np.fromiter(map(len, rows), dtype=np.int32, count=len(rows))
    ids = np.fromiter(chain.from_iterable(rows), dtype=type_of_ids(vocabulary), count=int(lengths.sum()))
    return ids, lengths


def type_of_ids(vocabulary: int) -> np.dtype[Any]:
    """Two bytes an id where the vocabulary allows it, else four."""
    return np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.int32)


def chunks(corpus: Iterable[tuple[str, str]], size: int = CHUNK) -> Iterator[list[tuple[str, str]]]:
    """The pairs, so many at a time as are encoded together."""
    pairs = iter(corpus)
    while chunk := _chunk(pairs, size):
        yield chunk


def _chunk(pairs: Iterator[tuple[str, str]], size: int) -> list[tuple[str, str]]:
    """The next pairs to encode together; none at the end."""
    chunk: list[tuple[str, str]] = []
    room = MOST_TEXT
    for pair in islice(pairs, size):
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
        self._ids = array("H" if type_of_ids(vocabulary).itemsize == 2 else "i")
        self._lengths = array("i")

    def extend(self, ids: NDArray[Any], lengths: NDArray[np.int32]) -> None:
        self._ids.frombytes(ids.tobytes())
        self._lengths.frombytes(lengths.tobytes())

    def finish(self) -> EncodedSide:
        offsets = np.zeros(len(self._lengths) + 1, dtype=np.int64)
        np.cumsum(self._lengths, out=offsets[1:])
        return EncodedSide(np.asarray(self._ids), offsets)
