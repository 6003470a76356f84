"""Words: a vocabulary that torchtext's tokenizers and vocabulary builder make, kept as plain JSON.

torchtext (https://github.com/pytorch/text, no longer developed) loads beside one PyTorch only, that of its own year. So
it is asked once, in training: it cuts the text and counts the words. What it found is a list, and a list translates
under any PyTorch. Of its tokenizers `split` and `basic_english` are a few lines of rules, which stand here too, so that
a run made with them needs no torchtext any more; the others (moses, toktok, spacy) are asked wherever text is cut.

A word here is whatever the tokenizer cuts, punctuation included. A sentence is put together by blanks between words:
nothing undoes what the tokenizer did (basic_english, for one, lowers the case and drops double quotes).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from seq2seq.corpus.lines import clean
from seq2seq.corpus.subwords import BOS, EOS, PAD, UNK, UNKNOWN_MARK, without_surrogates
from seq2seq.errors import MissingPackageError, TokenizerError

if TYPE_CHECKING:
    from seq2seq.config.schema import TokenizerConfig

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")  # of the ids 0 to 3; no text is ever one of them, whatever it says
WORD_START = "\u2581"  # how pieces show the blank before a word, as SentencePiece has it
INSTALL = "pip install '.[torchtext]'"

Cut = Callable[[str], list[str]]

# What torchtext documents of basic_english: double quotes go, these get blanks round them, and those become blanks.
_KEPT_APART = re.compile(r"([.,()!?'])")
_BLANKS = re.compile(r"<br />|[;:]")


class Words:
    """One vocabulary of words and the tokenizer that cuts them: `encode` text into ids, `decode` ids into text.

    `model` is what a run folder keeps: JSON with the tokenizer's name and the words in the order of their ids, from
    id 4 on. Raises TokenizerError, which begins with `name`, when it is not one of ours or is damaged. The tokenizer is
    not looked for before a text is to be cut, which may raise MissingPackageError.
    """

    suffix = ".json"

    def __init__(self, model: bytes, name: str) -> None:
        self.model = model
        self.tokenizer_name, self._words = _read(model, name)
        self._ids = {word: number for number, word in enumerate(self._words, start=len(SPECIAL))}
        self.size = len(SPECIAL) + len(self._words)
        self._cut: Cut | None = None

    @classmethod
    def of(cls, tokenizer_name: str, words: Sequence[str]) -> Words:
        """A new vocabulary of these words, in the order of their ids."""
        content = {"made_by": "torchtext", "tokenizer": tokenizer_name, "words": list(words)}
        return cls((json.dumps(content, ensure_ascii=False, indent=0) + "\n").encode("utf-8"), "The new tokenizer")

    def words(self, text: str) -> list[str]:
        """The words of a text, in its order; each of them is one id of `encode`."""
        if self._cut is None:
            self._cut = cutter(self.tokenizer_name)
        # A tokenizer may look at blanks (spaCy makes words of them); a word never holds one.
        return [word for found in self._cut(clean(without_surrogates(text))) for word in found.split()]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text's words; no text, whatever it says, gives a special id other than UNK."""
        return [[self._ids.get(word, UNK) for word in self.words(text)] for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """The words with blanks between them; padding and marks of begin and end go, UNK reads as ⁇ (U+2047)."""
        return clean(" ".join(self.word(i) for i in ids if i not in (PAD, BOS, EOS)))

    def word(self, number: int) -> str:
        """The word of an id, ⁇ for the unknown one."""
        return UNKNOWN_MARK if number == UNK else self._words[int(number) - len(SPECIAL)]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each word as SentencePiece would show it, U+2581 for the blank before it."""
        return [SPECIAL[i] if i < len(SPECIAL) else WORD_START + self.word(i) for i in map(int, ids)]


def cutter(name: str) -> Cut:
    """The function that cuts a text into words, by the name that the settings give it.

    Raises MissingPackageError where it needs a package that is not there.
    """
    if name in _OWN:
        return _OWN[name]
    kind, _, language = name.partition(":")
    get_tokenizer = _torchtext(name).data.utils.get_tokenizer
    try:
        cut: Cut = get_tokenizer(kind, language=language) if language else get_tokenizer(kind)
    except (ImportError, OSError, LookupError) as error:  # OSError: spaCy has no such model
        needed = {"moses": "sacremoses", "toktok": "nltk", "spacy": f"spacy and its model {language or 'en'}"}
        raise MissingPackageError(
            f"The tokenizer {name} of torchtext needs {needed.get(kind, 'another package')}, which is not installed "
            f"({str(error).splitlines()[0] if str(error) else 'not found'})."
        ) from None
    # These two write & and quotes as HTML does.
    return (lambda text: [html.unescape(word) for word in cut(text)]) if kind in ("moses", "toktok") else cut


def train_words(lines: Iterable[str], name: str, settings: TokenizerConfig, text_name: str) -> Words:
    """Count the words of lines with torchtext: the most frequent `vocab_size`, rarer than `min_frequency` left out.

    Words that are equally frequent stand in the order of their characters, so the same lines give the same vocabulary.
    Raises TokenizerError, which calls the text `text_name`, where no word is left; MissingPackageError.
    """
    torchtext = _torchtext(name)
    get_tokenizer = torchtext.data.utils.get_tokenizer
    # In training torchtext's own, also where a run could do without.
    cut = get_tokenizer(name if name != "split" else None) if name in _OWN else cutter(name)

    def sentences() -> Iterator[list[str]]:
        for line in lines:
            yield [word for found in cut(clean(line)) for word in found.split()]

    if settings.vocab_size <= len(SPECIAL):
        raise TokenizerError(f"tokenizer.vocab_size is {settings.vocab_size}, of which 4 are special; set it to more.")
    # A blank is in no word, so the special ones are met in no text.
    special = [f"special {number}" for number in range(len(SPECIAL))]
    built = torchtext.vocab.build_vocab_from_iterator(
        sentences(), min_freq=settings.min_frequency, specials=special, max_tokens=settings.vocab_size
    )
    words = list(built.get_itos())[len(SPECIAL) :]
    if not words:
        raise TokenizerError(
            f"{text_name} holds no word that occurs {settings.min_frequency:,} times; lower tokenizer.min_frequency."
        )
    return Words.of(name, words)


def count_words(model: bytes, name: str) -> int:
    """How many ids a stored vocabulary has; TokenizerError where it is none."""
    return len(SPECIAL) + len(_read(model, name)[1])


def _read(model: bytes, name: str) -> tuple[str, list[str]]:
    from seq2seq.config.schema import TORCHTEXT_NAME

    try:
        content = json.loads(model.decode("utf-8"))
        tokenizer, words = content["tokenizer"], content["words"]
        known = isinstance(tokenizer, str) and re.match(TORCHTEXT_NAME, tokenizer) and not tokenizer.endswith("\n")
        fits = known and isinstance(words, list) and content["made_by"] == "torchtext"
        if not fits or not words or not all(isinstance(word, str) and word.split() == [word] for word in words):
            raise ValueError("a word is a text without blanks")
        if len(set(words)) != len(words):
            raise ValueError("a word stands there twice")
        "".join(words).encode("utf-8")  # half a character, which JSON can spell, could not be written
    except (ValueError, KeyError, TypeError, RecursionError):
        raise TokenizerError(f"{name} is damaged or no vocabulary. Copy the whole run folder again.") from None
    return tokenizer, words


def _torchtext(name: str) -> Any:
    try:
        import torchtext

        if hasattr(torchtext, "disable_torchtext_deprecation_warning"):
            torchtext.disable_torchtext_deprecation_warning()
        import torchtext.data.utils
        import torchtext.vocab
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torchtext":
            raise
        raise MissingPackageError(
            f"The tokenizer {name} (tokenizer.kind torchtext) needs torchtext, which is not installed. In an "
            f"environment of Python 3.12 or older that may have PyTorch 2.3: {INSTALL}; or set kind sentencepiece."
        ) from None
    except (ImportError, OSError, AttributeError, RuntimeError):
        raise MissingPackageError(
            f"The torchtext that is installed does not load beside this PyTorch, which the tokenizer {name} needs. In "
            f"an environment of its own: {INSTALL}, which brings PyTorch 2.3; or set tokenizer.kind to sentencepiece."
        ) from None
    return torchtext


def _basic_english(text: str) -> list[str]:
    text = _KEPT_APART.sub(r" \1 ", text.lower().replace('"', ""))
    return _BLANKS.sub(" ", text).split()


_OWN: dict[str, Cut] = {"split": str.split, "basic_english": _basic_english}
