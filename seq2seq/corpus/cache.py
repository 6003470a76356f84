"""The cache of prepared corpora: a large corpus is encoded once, and every later start finds it ready.

A thing is kept under a key that follows from the content of the training files and all that has a say in what becomes
of them, so there is nothing to make invalid: another text, vocabulary, limit or version of the program is another key.

    tokenizer-KEY   the vocabulary that these settings learn from this text
    split-KEY       which sources are held out for validation and test, and their pairs
    pairs-KEY       the training pairs, encoded (mapped.py)
    file-KEY.json   digests of the files themselves (digests.py)
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import unicodedata
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq import __version__
from seq2seq.corpus.digests import Digests
from seq2seq.corpus.encoded import EncodedCorpus
from seq2seq.corpus.encoders import encode_in_parallel
from seq2seq.corpus.mapped import MappedWriter, open_mapped
from seq2seq.corpus.pairs import PairReport, ParallelCorpus, report_facts, report_from
from seq2seq.corpus.store import Store, Stored
from seq2seq.corpus.tokenizer import Tokenizer

if TYPE_CHECKING:
    from seq2seq.config.schema import DataConfig, TokenizerConfig

FORMAT = 1
# Bytes of text from which on a corpus is kept in files of its own accord. Below it is encoded within a minute or two.
LARGE = 256 << 20
_UNPACKED = 4  # bytes of text in a byte of a .gz or .xz file


def open_cache(data: DataConfig, seed: int, said: Callable[[str], None] = lambda _: None) -> CorpusCache | None:
    """The cache for a corpus, or None for one that is better held in memory.

    Reads the training files once, for their digests, unless it has done so before. Raises CorpusError where one cannot
    be read.
    """
    if data.cache is None and _size(data) < LARGE:
        return None
    try:
        folder = Path(data.cache) if data.cache is not None else default_folder()
    except RuntimeError:  # there is no home
        return None
    return CorpusCache(folder, data, seed, said)


def default_folder() -> Path:
    """Where large corpora are kept if `data.cache` does not say. RuntimeError where there is no home."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if Path(given).is_absolute() else Path.home() / ".cache") / "seq2seq"


def _paths(data: DataConfig) -> list[Path]:
    return [path for files in data.train for _, path in files.files()]


def _size(data: DataConfig) -> int:
    """The bytes of the training text, about; 0 for files that cannot be found, which is told elsewhere."""
    size = 0
    for path in _paths(data):
        with contextlib.suppress(OSError, ValueError):
            size += path.stat().st_size * (_UNPACKED if path.suffix.lower() in (".gz", ".xz") else 1)
    return size


class CorpusCache:
    """What a cache folder holds, or will hold, of one training text. Raises CacheError where it cannot be written."""

    def __init__(self, folder: Path, data: DataConfig, seed: int, said: Callable[[str], None]) -> None:
        self.folder = folder
        self._store, self._digests = Store(folder, said), Digests(folder)
        fractions = [_fraction(part) for part in (data.validation, data.test)]
        self._text = {
            "format": FORMAT,
            "program": __version__,
            "unicode": unicodedata.unidata_version,
            "files": self._digests.of(_paths(data)),
            "forms": [[name for name, _ in files.files()] + list(files.columns) for files in data.train],
            "bad_lines": data.bad_lines,
            "held_out": [*fractions, seed] if any(fractions) else None,
        }
        self._libraries = {name: _version(name) for name in ("sentencepiece", "torchtext")}

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """A `with` block in which no other process prepares the same text; waits for one that does."""
        return self._store.alone(f"text-{_key(self._text)}")

    # -- the tokenizer ------------------------------------------------------------------------------------------------

    def tokenizer(self, settings: TokenizerConfig) -> Tokenizer | None:
        """The tokenizer that these settings have learnt from this text."""
        found = self._store.find(self._tokenizer_name(settings))
        return None if found is None else Tokenizer.load(found.folder)

    def keep_tokenizer(self, settings: TokenizerConfig, tokenizer: Tokenizer) -> None:
        def make(folder: Path) -> dict[str, Any]:
            _write_tokenizer(tokenizer, folder)
            return {}

        self._digests.check_unchanged()
        self._store.put(self._tokenizer_name(settings), make)

    def _tokenizer_name(self, settings: TokenizerConfig) -> str:
        return f"tokenizer-{_key({**self._text, **self._libraries, 'settings': settings.model_dump()})}"

    # -- the training pairs -------------------------------------------------------------------------------------------

    def pairs(self, tokenizer: Tokenizer, max_length: int) -> tuple[EncodedCorpus, PairReport] | None:
        """The training pairs, if they are encoded, and what was left out of them on the way."""
        found = self._store.find(self._pairs_name(tokenizer, max_length))
        return None if found is None else _open_pairs(found, tokenizer)

    def encode(
        self, corpus: ParallelCorpus, tokenizer: Tokenizer, max_length: int, progress: Callable[[int], None] | None
    ) -> EncodedCorpus:
        """Encode the training pairs into the cache, in several processes. CorpusError where the files change."""

        def make(folder: Path) -> dict[str, Any]:
            read = 0
            with (
                tempfile.TemporaryDirectory(prefix="seq2seq-") as files,
                MappedWriter(folder) as writer,
                contextlib.closing(encode_in_parallel(corpus, tokenizer, Path(files), max_length)) as encoded,
            ):
                _write_tokenizer(tokenizer, Path(files))
                for chunk in encoded:
                    writer.add(chunk)
                    read += chunk.read
                    if progress is not None:
                        progress(read)
            self._digests.check_unchanged()
            facts = {"too_long": writer.too_long, "report": report_facts(corpus.report)}
            whole = open_mapped(folder, (tokenizer.source_size, tokenizer.target_size), facts)
            return {**facts, "fingerprint": whole.fingerprint()}

        made = self._store.put(self._pairs_name(tokenizer, max_length), make)
        return _open_pairs(made, tokenizer)[0]

    def _pairs_name(self, tokenizer: Tokenizer, max_length: int) -> str:
        made_by = {"tokenizer": tokenizer.fingerprint(), "max_length": max_length}
        return f"pairs-{_key({**self._text, **self._libraries, **made_by})}"

    # -- what is held out ---------------------------------------------------------------------------------------------

    def split(self, make: Callable[[Path], Mapping[str, Any]]) -> Stored:
        """The division of the text into training, validation and test, which `make` writes into a folder."""

        def checked(folder: Path) -> Mapping[str, Any]:
            facts = make(folder)
            self._digests.check_unchanged()
            return facts

        return self._store.put(f"split-{_key(self._text)}", checked)


def _open_pairs(stored: Stored, tokenizer: Tokenizer) -> tuple[EncodedCorpus, PairReport]:
    vocabularies = tokenizer.source_size, tokenizer.target_size
    return open_mapped(stored.folder, vocabularies, stored.facts), report_from(stored.facts["report"])


def _write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    for name, data in tokenizer.files().items():
        (folder / name).write_bytes(data)


def _fraction(part: object) -> float | None:
    from seq2seq.config.schema import Fraction

    return part.fraction if isinstance(part, Fraction) else None


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _key(facts: Mapping[str, Any]) -> str:
    """A name for the facts, 24 letters of their SHA-256."""
    plain = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode("ascii")).hexdigest()[:24]
