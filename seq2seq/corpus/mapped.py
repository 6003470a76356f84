"""An encoded corpus as files that are mapped into memory: the system reads what is used and takes back what is not.

    source.ids      the ids of all sentences in a row: uint16, or int32 for a larger vocabulary
    source.offsets  int64: sentence i is ids[offsets[i]:offsets[i + 1]]; likewise target.ids and target.offsets

All little-endian, as every machine is that this runs on. Pages of a file are not memory of the process's own: when
memory runs short they are forgotten, and read again when needed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seq2seq.corpus.encoded import EncodedChunk, EncodedCorpus, EncodedSide, type_of_ids


class MappedWriter:
    """Writes an encoded corpus into a folder, chunk by chunk; to be used in a `with` statement. Raises OSError."""

    def __init__(self, folder: Path) -> None:
        self._stack = contextlib.ExitStack()
        self._sides = [_SideWriter(folder, name, self._stack) for name in ("source", "target")]
        self.too_long = 0

    def __enter__(self) -> MappedWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, chunk: EncodedChunk) -> None:
        self._sides[0].add(chunk.source_ids, chunk.source_lengths)
        self._sides[1].add(chunk.target_ids, chunk.target_lengths)
        self.too_long += chunk.too_long


class _SideWriter:
    def __init__(self, folder: Path, name: str, stack: contextlib.ExitStack) -> None:
        self._ids = stack.enter_context((folder / f"{name}.ids").open("wb"))
        self._offsets = stack.enter_context((folder / f"{name}.offsets").open("wb"))
        self._offsets.write(np.zeros(1, dtype="<i8").tobytes())
        self._end = 0

    def add(self, ids: NDArray[Any], lengths: NDArray[np.int32]) -> None:
        ends = self._end + np.cumsum(lengths, dtype=np.int64)
        self._ids.write(ids.astype(ids.dtype.newbyteorder("<"), copy=False).tobytes())
        self._offsets.write(ends.astype("<i8", copy=False).tobytes())
        self._end += len(ids)


def open_mapped(folder: Path, vocabularies: tuple[int, int], facts: Mapping[str, Any]) -> EncodedCorpus:
    """The corpus of a folder whose files are as they were written; `vocabularies` are the sizes of both sides.

    `facts` hold `too_long`, and `fingerprint` where it is known. ValueError where the files do not fit each other.
    """
    sides = []
    for name, vocabulary in zip(("source", "target"), vocabularies, strict=True):
        ids = _map(folder / f"{name}.ids", type_of_ids(vocabulary))
        offsets = _map(folder / f"{name}.offsets", np.dtype(np.int64))
        if not len(offsets) or offsets[-1] != len(ids):
            raise ValueError(f"{folder}: the offsets of the {name} do not fit its ids")
        sides.append(EncodedSide(ids, offsets))
    return EncodedCorpus(sides[0], sides[1], int(facts["too_long"]), folder, facts.get("fingerprint"))


def _map(path: Path, kind: np.dtype[Any]) -> NDArray[Any]:
    if not path.stat().st_size:  # nothing cannot be mapped
        return np.zeros(0, dtype=kind)
    return np.asarray(np.memmap(path, dtype=kind.newbyteorder("<"), mode="r"))
