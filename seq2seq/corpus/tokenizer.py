"""The tokenizer of a run: sentences of either language become ids, and ids become sentences again.

Both sides share one vocabulary, or each has its own. Ids 0 to 3 are padding, the unknown piece, and the begin and end
of a sentence, for every kind of tokenizer; text never encodes to the others, and to UNK only what the vocabulary has
no piece for (nothing, with byte fallback).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.corpus.subwords import BOS, EOS, PAD, UNK, UNKNOWN_MARK, Subwords, count_pieces, train_subwords
from seq2seq.errors import MissingPackageError, TokenizerError

if TYPE_CHECKING:
    from seq2seq.config.schema import TokenizerConfig

__all__ = ["BOS", "EOS", "PAD", "UNK", "UNKNOWN_MARK", "StoredTokenizer", "Tokenizer"]

SHARED_FILE, SOURCE_FILE, TARGET_FILE = "tokenizer.model", "tokenizer.source.model", "tokenizer.target.model"

LARGEST_FILE = 64 << 20  # bytes; a model of a million pieces takes 30 MB
ENOUGH_LINES = 2_000_000  # a vocabulary does not change for the better with more, and training time grows with them


class Tokenizer:
    """SentencePiece over both languages: one model shared by them, or one a side."""

    def __init__(self, source: Subwords, target: Subwords) -> None:
        self._source, self._target = source, target

    @classmethod
    def train(cls, corpus: Iterable[tuple[str, str]], settings: TokenizerConfig, pairs: int | None = None) -> Tokenizer:
        """Learn the vocabulary, or with `shared: false` two of the same size, from the pairs of the training corpus.

        The corpus is iterated several times and never held in memory, once less where it is known to have so many
        `pairs`; of more than two million lines every k-th is taken. Raises TokenizerError when the vocabulary size does
        not suit the text.
        """
        if settings.kind == "torchtext":
            return _train_torchtext(corpus, settings)
        if isinstance(corpus, Iterator):
            corpus = list(corpus)
        lines_a_pair = 2 if settings.shared else 1
        if pairs is None:
            pairs = sum(1 for _ in corpus)
        step = max(1, -(-pairs * lines_a_pair // ENOUGH_LINES))
        if settings.shared:
            both = (line for pair in islice(corpus, 0, None, step) for line in pair)
            model = train_subwords(both, settings, "the training corpus")
            return cls(model, model)
        sides = [
            train_subwords((pair[side] for pair in islice(corpus, 0, None, step)), settings, f"the training {name}")
            for side, name in enumerate(("source", "target"))
        ]
        return cls(*sides)

    @classmethod
    def load(cls, folder: Path) -> Tokenizer:
        """Read the tokenizer of a run folder. Raises TokenizerError naming the file that is missing or damaged."""
        return StoredTokenizer(folder).open()

    @property
    def shared(self) -> bool:
        return self._source is self._target

    @property
    def source_size(self) -> int:
        return self._source.size

    @property
    def target_size(self) -> int:
        return self._target.size

    def files(self) -> dict[str, bytes]:
        """What the run folder has to keep, by file name."""
        if self.shared:
            return {SHARED_FILE: self._source.model}
        return {SOURCE_FILE: self._source.model, TARGET_FILE: self._target.model}

    def fingerprint(self) -> str:
        """The same for two tokenizers only if they are the same, in hexadecimal (SHA-256)."""
        return _fingerprint(self.files())

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without begin and end marks; the texts are cleaned here, so that training and translation agree."""
        return self._source.encode(texts)

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        return self._target.encode(texts)

    def decode_source(self, ids: Sequence[int]) -> str:
        return self._source.decode(ids)

    def decode_target(self, ids: Sequence[int]) -> str:
        """The sentence that the ids spell, always one line; special ids are left out and UNK reads as ⁇ (U+2047)."""
        return self._target.decode(ids)

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return self._source.pieces(ids)

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        return self._target.pieces(ids)


class StoredTokenizer:
    """The tokenizer of a run folder as it lies there: bytes whose digest can be compared before anything reads them.

    SentencePiece is a library of C++ that expects a model which it has written itself; one with a damaged byte is
    better refused before it gets there. Raises TokenizerError naming the file that is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        shared = folder / SHARED_FILE
        sides = [folder / SOURCE_FILE, folder / TARGET_FILE]
        if not any(path.is_file() for path in (shared, *sides)):
            raise TokenizerError(f"{folder} holds no tokenizer: neither {SHARED_FILE} nor {SOURCE_FILE} is there.")
        self.paths = [shared] if shared.is_file() else sides
        self._files = {path.name: _read(path) for path in self.paths}

    @property
    def source_size(self) -> int:
        return self._size(0)

    @property
    def target_size(self) -> int:
        return self._size(-1)

    def _size(self, side: int) -> int:
        path = self.paths[side]
        return count_pieces(self._files[path.name], str(path))

    def fingerprint(self) -> str:
        """That of the tokenizer which these files make."""
        return _fingerprint(self._files)

    def open(self) -> Tokenizer:
        """The tokenizer itself."""
        models = [Subwords(self._files[path.name], str(path)) for path in self.paths]
        return Tokenizer(models[0], models[-1])


def _fingerprint(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            large = os.fstat(stream.fileno()).st_size > LARGEST_FILE
            content = b"" if large else stream.read(LARGEST_FILE)
    except FileNotFoundError:
        raise TokenizerError(f"There is no file {file}. Copy the whole run folder again.") from None
    except OSError as error:
        raise TokenizerError(f"{file} cannot be read: {error.strerror or error}.") from None
    if large:
        raise TokenizerError(f"{file} has more than {LARGEST_FILE >> 20} MiB, which no tokenizer of this program has.")
    return content


def _train_torchtext(corpus: Iterable[tuple[str, str]], settings: TokenizerConfig) -> Tokenizer:
    raise MissingPackageError(
        "tokenizer.kind is torchtext, which is not installed. Run: pip install '.[torchtext]', or set sentencepiece."
    )
