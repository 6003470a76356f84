"""The tokenizer of a run: sentences of either language become ids, and ids become sentences again.

Both sides share one vocabulary, or each has its own. Ids 0 to 3 are padding, the unknown piece, and the begin and end
of a sentence, for every kind of tokenizer; text never encodes to the others, and to UNK only what the vocabulary has
no piece for (nothing, with byte fallback).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.corpus.subwords import BOS, EOS, PAD, UNK, UNKNOWN_MARK, Subwords, train_subwords
from seq2seq.errors import MissingPackageError, TokenizerError

if TYPE_CHECKING:
    from seq2seq.config.schema import TokenizerConfig

__all__ = ["BOS", "EOS", "PAD", "UNK", "UNKNOWN_MARK", "Tokenizer"]

SHARED_FILE, SOURCE_FILE, TARGET_FILE = "tokenizer.model", "tokenizer.source.model", "tokenizer.target.model"

ENOUGH_LINES = 2_000_000  # a vocabulary does not change for the better with more, and training time grows with them


class Tokenizer:
    """SentencePiece over both languages: one model shared by them, or one a side."""

    def __init__(self, source: Subwords, target: Subwords) -> None:
        self._source, self._target = source, target

    @classmethod
    def train(cls, corpus: Iterable[tuple[str, str]], settings: TokenizerConfig) -> Tokenizer:
        """Learn the vocabulary, or with `shared: false` two of the same size, from the pairs of the training corpus.

        The corpus is iterated several times and never held in memory; of more than two million lines every k-th is
        taken. Raises TokenizerError when the vocabulary size does not suit the text.
        """
        if settings.kind == "torchtext":
            return _train_torchtext(corpus, settings)
        if isinstance(corpus, Iterator):
            corpus = list(corpus)
        lines_a_pair = 2 if settings.shared else 1
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
        if (folder / SHARED_FILE).exists():
            model = _load(folder / SHARED_FILE)
            return cls(model, model)
        if not (folder / SOURCE_FILE).exists() and not (folder / TARGET_FILE).exists():
            raise TokenizerError(f"{folder} holds no tokenizer: neither {SHARED_FILE} nor {SOURCE_FILE} is there.")
        return cls(_load(folder / SOURCE_FILE), _load(folder / TARGET_FILE))

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
        digest = hashlib.sha256()
        for name, content in self.files().items():
            digest.update(name.encode() + b"\0" + content)
        return digest.hexdigest()

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


def _load(file: Path) -> Subwords:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise TokenizerError(f"There is no file {file}. Copy the whole run folder again.") from None
    except OSError as error:
        raise TokenizerError(f"{file} cannot be read: {error.strerror or error}.") from None
    return Subwords(content, str(file))


def _train_torchtext(corpus: Iterable[tuple[str, str]], settings: TokenizerConfig) -> Tokenizer:
    raise MissingPackageError(
        "tokenizer.kind is torchtext, which is not installed. Run: pip install '.[torchtext]', or set sentencepiece."
    )
