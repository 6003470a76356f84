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
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq.corpus.lines import way_to
from seq2seq.corpus.pairs import ParallelCorpus, file_keys, named_paths, report_facts, report_from
from seq2seq.errors import CorpusError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seq2seq.config.schema import DataConfig, PairFiles
    from seq2seq.corpus.cache import CorpusCache
    from seq2seq.corpus.store import Stored

_SOME = 1 << 20  # hashes that are looked at at a time


@dataclass(frozen=True)
class Corpora:
    """The three texts of an experiment. They stream; nothing is read until they are iterated."""

    train: ParallelCorpus
    validation: ParallelCorpus
    test: ParallelCorpus | None


def open_corpora(data: DataConfig, seed: int, cache: CorpusCache | None = None) -> Corpora:
    """Find the files of the settings and, where a fraction is asked for, decide the side of every source.

    A fraction f of n different sources gives the validation (or test) side round(f * n) of them, at least one: those
    with the lowest hashes, so that the choice is exact, the same on every machine, and another for another seed.
    Takes one pass and 8 bytes of memory a pair for fractions, and opens nothing otherwise. With a cache it takes as
    much of a file instead, writes what is held out into the cache, and finds it there the next time.

    Raises CorpusError naming key and full path of a file that is missing, before anything else is done; whatever
    reading the training text raises; and when a side would be left empty.
    """
    from seq2seq.config.schema import Fraction

    parts = find_files(data)
    validation, test = data.validation, data.test
    fractions = {
        key: part.fraction
        for key, part in (("data.validation", validation), ("data.test", test))
        if isinstance(part, Fraction)
    }
    held_out: dict[str, ParallelCorpus] = {}
    keep: Callable[[str], bool] | None = None
    if fractions:
        whole = ParallelCorpus(parts["data.train"], key="data.train", bad_lines=data.bad_lines)
        if cache is None:
            bounds = _divide(whole, fractions, seed)
            held_out = {key: whole.part(key, _range(bounds[key], seed)) for key in fractions}
        else:
            kept = cache.split(lambda folder: _write_split(folder, whole, fractions, seed))
            bounds = {key: (low, high) for key, (low, high) in kept.facts["bounds"].items()}
            held_out = {key: _read_split(kept, key) for key in fractions}
        keep = _range(bounds["data.train"], seed)
    corpora = {
        key: ParallelCorpus(files, key=key, bad_lines=data.bad_lines, keep=keep if key == "data.train" else None)
        for key, files in parts.items()
    } | held_out
    return Corpora(corpora["data.train"], corpora["data.validation"], corpora.get("data.test"))


def find_files(data: DataConfig) -> dict[str, tuple[PairFiles, ...]]:
    """The files of each text that the settings name, by its key. CorpusError names key and path of one that is missing.

    A text that is a fraction of another has no files.
    """
    from seq2seq.config.schema import Fraction

    parts = {"data.train": _files(data.train)}
    if not isinstance(data.validation, Fraction):
        parts["data.validation"] = _files(data.validation)
    if data.test is not None and not isinstance(data.test, Fraction):
        parts["data.test"] = _files(data.test)
    for key, files in parts.items():
        _require(files, key)
    return parts


def _write_split(folder: Path, whole: ParallelCorpus, fractions: dict[str, float], seed: int) -> dict[str, Any]:
    """Divide a corpus and write what is held out of it into files; returns the bounds, and what each pass has met."""
    bounds, reports = _divide(whole, fractions, seed, folder / "hashes"), {}
    for key in fractions:
        part = whole.part(key, _range(bounds[key], seed))
        paths = _split_files(folder, key)
        with (
            paths["source"].open("w", encoding="utf-8", newline="\n") as sources,
            paths["target"].open("w", encoding="utf-8", newline="\n") as targets,
        ):
            for source, target in part:
                sources.write(source + "\n")
                targets.write(target + "\n")
        reports[key] = report_facts(part.report)
    return {"bounds": bounds, "reports": reports}


def _read_split(kept: Stored, key: str) -> ParallelCorpus:
    from seq2seq.config.schema import PairFiles

    paths = _split_files(kept.folder, key)
    files = PairFiles(source=str(paths["source"]), target=str(paths["target"]))
    return ParallelCorpus([files], key=key, known=report_from(kept.facts["reports"][key]))


def _split_files(folder: Path, key: str) -> dict[str, Path]:
    name = key.removeprefix("data.")
    return {side: folder / f"{name}.{side}" for side in ("source", "target")}


def source_hash(source: str, seed: int) -> int:
    """A number below 2**64 for a cleaned source; sources that differ in case only get the same."""
    key = seed.to_bytes(8, "little")
    return int.from_bytes(blake2b(source.casefold().encode(), digest_size=8, key=key).digest(), "little")


def _divide(
    whole: ParallelCorpus, fractions: dict[str, float], seed: int, file: Path | None = None
) -> dict[str, tuple[int, int]]:
    """For each key, and for data.train, from and below which hash the sources are its own; train has the last ones.

    The hashes are sorted in memory, or in a `file` that is mapped into it and removed in the end.
    """
    hashes = _sorted_hashes(whole, seed, file)
    different = _rank(hashes, None)
    bounds: dict[str, tuple[int, int]] = {}
    taken = low = 0
    for key, fraction in fractions.items():
        taken += max(1, round(fraction * different))
        if taken >= different:
            asked = " and ".join(f"{key}.fraction {fraction:g}" for key, fraction in fractions.items())
            raise CorpusError(
                f"{asked} of {different:,} different source sentences leave none to train on. "
                f"Ask for a smaller fraction, or give the validation set as files."
            )
        high = _rank(hashes, taken)
        bounds[key] = low, high
        low = high
    bounds["data.train"] = low, 1 << 64
    if file is not None:
        del hashes
        file.unlink()
    return bounds


def _sorted_hashes(whole: ParallelCorpus, seed: int, file: Path | None) -> NDArray[np.uint64]:
    import numpy as np

    numbers = (source_hash(source, seed) for source, _ in whole)
    if file is None:
        return np.sort(np.frombuffer(array("Q", numbers), dtype=np.uint64))
    with file.open("wb") as stream:
        while some := array("Q", islice(numbers, _SOME)):
            some.tofile(stream)
    hashes: NDArray[np.uint64] = np.memmap(file, dtype=np.uint64, mode="r+")
    hashes.sort()
    return hashes


def _rank(hashes: NDArray[np.uint64], wanted: int | None) -> int:
    """The hash before which there are `wanted` different ones in sorted order; or, for None, how many there are."""
    import numpy as np

    seen, before = 0, None
    for start in range(0, len(hashes), _SOME):
        some = np.asarray(hashes[start : start + _SOME])
        new = np.append(before is None or some[0] != before, some[1:] != some[:-1])
        count = int(np.count_nonzero(new))
        if wanted is not None and seen + count > wanted:
            return int(some[np.flatnonzero(new)[wanted - seen]])
        seen, before = seen + count, some[-1]
    assert wanted is None, "there are more different hashes than were asked for"
    return seen


def _range(bounds: tuple[int, int], seed: int) -> Callable[[str], bool]:
    low, high = bounds
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
                raise CorpusError(f"{path_key}: cannot find {full} ({reason}). {way_to(full)}") from None
            if not stat.S_ISREG(mode):
                kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
                raise CorpusError(f"{path_key}: {full} is {kind}; a text file that can be read again is expected.")
