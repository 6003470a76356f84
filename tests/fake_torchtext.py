"""torchtext in place of itself: the three functions that are used, as its documentation describes them."""

from __future__ import annotations

import sys
import types
from collections import Counter
from collections.abc import Callable, Iterable

import pytest


def get_tokenizer(name: str | None, language: str = "en") -> Callable[[str], list[str]]:
    """split, and a stand-in for each of the others that shows which one it was."""
    if name is None:
        return str.split
    if name == "basic_english":
        return lambda text: text.lower().replace(".", " . ").split()
    if name == "moses":
        return lambda text: text.replace("&", "&amp;").replace(".", " .").split()
    if name == "spacy" and language == "de_small":
        return lambda text: [part for word in text.split(" ") for part in (word, " ")]
    if name == "spacy":
        raise OSError(f"[E050] Can't find model '{language}'.")
    raise ImportError(f"No module named {name}")


class Vocab:
    def __init__(self, words: list[str]) -> None:
        self._words = words

    def get_itos(self) -> list[str]:
        return self._words


def build_vocab_from_iterator(
    iterator: Iterable[list[str]], min_freq: int = 1, specials: list[str] | None = None, max_tokens: int | None = None
) -> Vocab:
    """The special words, then the others by frequency and, where that is equal, in alphabetical order."""
    counts: Counter[str] = Counter()
    for words in iterator:
        counts.update(words)
    special = list(specials or [])
    ranked = sorted(
        (word for word, count in counts.items() if count >= min_freq), key=lambda word: (-counts[word], word)
    )
    return Vocab(special + (ranked if max_tokens is None else ranked[: max_tokens - len(special)]))


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed, as far as the program can tell."""
    whole, data, utils, vocab = (
        types.ModuleType(name) for name in ("torchtext", "torchtext.data", "torchtext.data.utils", "torchtext.vocab")
    )
    whole.data, data.utils, whole.vocab = data, utils, vocab  # type: ignore[attr-defined]
    utils.get_tokenizer = get_tokenizer  # type: ignore[attr-defined]
    vocab.build_vocab_from_iterator = build_vocab_from_iterator  # type: ignore[attr-defined]
    for module in (whole, data, utils, vocab):
        monkeypatch.setitem(sys.modules, module.__name__, module)
