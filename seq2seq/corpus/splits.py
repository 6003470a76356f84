"""Splits: which pairs are for training, which for validation, and which for the test.

Where validation or test is a fraction of the training pairs, all pairs of one source go to one side: a sentence
whose other translation was trained on is no test. The side follows from the source alone (and the seed), so pairs
stream past and are never listed.
"""

from __future__ import annotations

import stat
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.corpus.pairs import ParallelCorpus, file_keys, named_paths
from seq2seq.errors import CorpusError

if TYPE_CHECKING:
    from seq2seq.config.schema import DataConfig, PairFiles


@dataclass(frozen=True)
class Corpora:
    """The three texts of an experiment. They stream; nothing is read until they are iterated."""

    train: ParallelCorpus
    validation: ParallelCorpus
    test: ParallelCorpus | None


def open_corpora(data: DataConfig, seed: int) -> Corpora:
    """Find the files of the settings and, where a fraction is asked for, decide the side of every source.

    A fraction f of n different sources gives the validation (or test) side round(f * n) of them, at least one: those
    with the lowest hashes, so that the choice is exact, the same on every machine, and another for another seed.
    Takes one pass and 8 bytes of memory a pair for fractions, and opens nothing otherwise.

    Raises CorpusError naming key and full path of a file that is missing, before anything else is done; whatever
    reading the training text raises; and when a side would be left empty.
    """
    from seq2seq.config.schema import Fraction

    validation, test = data.validation, data.test
    parts = {"data.train": _files(data.train)}
    if not isinstance(validation, Fraction):
        parts["data.validation"] = _files(validation)
    if test is not None and not isinstance(test, Fraction):
        parts["data.test"] = _files(test)
    for key, files in parts.items():
        _require(files, key)

    fractions = {
        key: part.fraction
        for key, part in (("data.validation", validation), ("data.test", test))
        if isinstance(part, Fraction)
    }
    keeps: dict[str, Callable[[str], bool]] = {}
    if fractions:
        whole = ParallelCorpus(parts["data.train"], key="data.train", bad_lines=data.bad_lines)
        keeps = _divide(whole, fractions, seed)
        parts.update((key, parts["data.train"]) for key in fractions)
    corpora = {
        key: ParallelCorpus(
            files,
            key=key,
            bad_lines=data.bad_lines,
            keep=keeps.get(key),
            files_key="data.train" if key in keeps else key,
        )
        for key, files in parts.items()
    }
    return Corpora(corpora["data.train"], corpora["data.validation"], corpora.get("data.test"))


def source_hash(source: str, seed: int) -> int:
    """A number below 2**64 for a cleaned source; sources that differ in case only get the same."""
    key = seed.to_bytes(8, "little")
    return int.from_bytes(blake2b(source.casefold().encode(), digest_size=8, key=key).digest(), "little")


def _divide(whole: ParallelCorpus, fractions: dict[str, float], seed: int) -> dict[str, Callable[[str], bool]]:
    """For each key, and for data.train, which sources are its own: each has a range of hashes, train the last."""
    import numpy as np

    hashes = np.unique(np.frombuffer(array("Q", (source_hash(source, seed) for source, _ in whole)), dtype=np.uint64))
    keeps: dict[str, Callable[[str], bool]] = {}
    taken = 0
    low = 0
    for key, fraction in fractions.items():
        taken += max(1, round(fraction * len(hashes)))
        if taken >= len(hashes):
            asked = " and ".join(f"{key}.fraction {fraction:g}" for key, fraction in fractions.items())
            raise CorpusError(
                f"{asked} of {len(hashes):,} different source sentences leave none to train on. "
                f"Ask for a smaller fraction, or give the validation set as files."
            )
        high = int(hashes[taken])
        keeps[key] = _range(low, high, seed)
        low = high
    keeps["data.train"] = _range(low, 1 << 64, seed)
    return keeps


def _range(low: int, high: int, seed: int) -> Callable[[str], bool]:
    return lambda source: low <= source_hash(source, seed) < high


def _files(part: PairFiles | Sequence[PairFiles]) -> tuple[PairFiles, ...]:
    return tuple(part) if isinstance(part, Sequence) else (part,)


def _require(parts: Sequence[PairFiles], key: str) -> None:
    """Refuse a path that leads to no file; a pipe cannot serve either, since a corpus is read several times."""
    for files, files_key in zip(parts, file_keys(key, parts), strict=True):
        for path_key, path in named_paths(files, files_key).items():
            full = Path(path).absolute()
            try:
                mode = full.stat().st_mode
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise CorpusError(f"{path_key}: cannot find {full} ({reason}). Check the path.") from None
            if not stat.S_ISREG(mode):
                kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
                raise CorpusError(f"{path_key}: {full} is {kind}; a text file that can be read again is expected.")
