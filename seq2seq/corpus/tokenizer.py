"""The tokenizer of a run: sentences of either language become ids, and ids become sentences again.

Both sides share one vocabulary, or each has its own. Ids 0 to 3 are padding, the unknown piece, and the begin and end
of a sentence, for every kind of tokenizer; text never encodes to the others, and to UNK only what the vocabulary has
no piece for (nothing, with byte fallback).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from seq2seq.corpus.subwords import BOS, EOS, PAD, UNK, UNKNOWN_MARK, Subwords, count_pieces, train_subwords
from seq2seq.corpus.words import Words, count_words, train_words
from seq2seq.errors import TokenizerError

if TYPE_CHECKING:
    from seq2seq.config.schema import TokenizerConfig

__all__ = ["BOS", "EOS", "PAD", "UNK", "UNKNOWN_MARK", "StoredTokenizer", "Tokenizer"]

# With the suffix of what is in them: .model for SentencePiece's, .json for a list of words.
SHARED, SOURCE, TARGET = "tokenizer", "tokenizer.source", "tokenizer.target"

LARGEST_FILE = 64 << 20  # bytes; a model of a million pieces takes 30 MB
ENOUGH_LINES = 2_000_000  # a vocabulary does not change for the better with more, and training time grows with them


class Vocabulary(Protocol):
    """What a side needs: `Subwords` (SentencePiece) and `Words` (torchtext) offer it."""

    suffix: str
    model: bytes
    size: int

    def encode(self, texts: Sequence[str]) -> list[list[int]]: ...

    def decode(self, ids: Sequence[int]) -> str: ...

    def pieces(self, ids: Sequence[int]) -> list[str]: ...


class Tokenizer:
    """A vocabulary over both languages, shared by them, or one a side."""

    def __init__(self, source: Vocabulary, target: Vocabulary) -> None:
        self._source, self._target = source, target

    @classmethod
    def train(cls, corpus: Iterable[tuple[str, str]], settings: TokenizerConfig, pairs: int | None = None) -> Tokenizer:
        """Learn the vocabulary, or with `shared: false` two of the same size, from the pairs of the training corpus.

        The corpus is iterated several times and never held in memory, once less where it is known to have so many
        `pairs`; of more than two million lines every k-th is taken. Raises TokenizerError when the vocabulary size does
        not suit the text.
        """
        if isinstance(corpus, Iterator):
            corpus = list(corpus)
        lines_a_pair = 2 if settings.shared else 1
        if pairs is None:
            pairs = sum(1 for _ in corpus)
        step = max(1, -(-pairs * lines_a_pair // ENOUGH_LINES))
        if settings.shared:
            both = (line for pair in islice(corpus, 0, None, step) for line in pair)
            vocabulary = _train(both, settings, settings.source_tokenizer, "the training corpus")
            return cls(vocabulary, vocabulary)
        sides = [
            _train((pair[side] for pair in islice(corpus, 0, None, step)), settings, cut_by, f"the training {name}")
            for side, (name, cut_by) in enumerate(
                (("source", settings.source_tokenizer), ("target", settings.target_tokenizer))
            )
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
            return {SHARED + self._source.suffix: self._source.model}
        return {
            SOURCE + self._source.suffix: self._source.model,
            TARGET + self._target.suffix: self._target.model,
        }

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

    def words(self) -> tuple[Words, Words] | None:
        """The vocabularies of source and target where each id is a whole word; None where words are cut further."""
        source, target = self._source, self._target
        return (source, target) if isinstance(source, Words) and isinstance(target, Words) else None


class StoredTokenizer:
    """The tokenizer of a run folder as it lies there: bytes whose digest can be compared before anything reads them.

    SentencePiece is a library of C++ that expects a model which it has written itself; one with a damaged byte is
    better refused before it gets there. Raises TokenizerError naming the file that is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        names = [suffix for suffix in _KINDS if (folder / (SHARED + suffix)).is_file()]
        sides = [suffix for suffix in _KINDS if any((folder / (side + suffix)).is_file() for side in (SOURCE, TARGET))]
        if not names and not sides:
            raise TokenizerError(f"{folder} holds no tokenizer: neither {SHARED}.model nor {SOURCE}.model is there.")
        self._suffix = (names or sides)[0]
        self.paths = [folder / (name + self._suffix) for name in ((SHARED,) if names else (SOURCE, TARGET))]
        self._files = {path.name: _read(path) for path in self.paths}

    @property
    def source_size(self) -> int:
        return self._size(0)

    @property
    def target_size(self) -> int:
        return self._size(-1)

    def _size(self, side: int) -> int:
        path = self.paths[side]
        count = _KINDS[self._suffix][1]
        return count(self._files[path.name], str(path))

    def fingerprint(self) -> str:
        """That of the tokenizer which these files make."""
        return _fingerprint(self._files)

    def open(self) -> Tokenizer:
        """The tokenizer itself."""
        made_of = _KINDS[self._suffix][0]
        sides = [made_of(self._files[path.name], str(path)) for path in self.paths]
        return Tokenizer(sides[0], sides[-1])


# By the suffix of a file: what is made of its bytes, and what counts its pieces without making anything.
_KINDS: dict[str, tuple[Callable[[bytes, str], Vocabulary], Callable[[bytes, str], int]]] = {
    Subwords.suffix: (Subwords, count_pieces),
    Words.suffix: (Words, count_words),
}


def _train(lines: Iterable[str], settings: TokenizerConfig, cut_by: str, text_name: str) -> Vocabulary:
    if settings.kind == "torchtext":
        return train_words(lines, cut_by, settings, text_name)
    return train_subwords(lines, settings, text_name)


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
