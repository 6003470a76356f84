"""Subwords: one SentencePiece vocabulary, learnt from lines of text and used on them.

SentencePiece (Kudo and Richardson, 2018, https://aclanthology.org/D18-2012) is wrapped so that text is only ever text
and a mistake is answered in our words:

- SentencePiece marks blanks with U+2581, unknown pieces with U+2585, ends its strings at NUL, and cuts what looks
  like one of its own pieces ("<unk>", "</s>", "<0x0A>") out of the training text. So these characters, and "<", are
  replaced by private-use characters before it sees a line and put back afterwards; private ones in the text are
  escaped, and nothing is lost or confused.
- `clean` is the whole normalisation; SentencePiece's own is switched off.
"""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from seq2seq.corpus.lines import clean
from seq2seq.errors import TokenizerError, VocabularySizeError

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

    from seq2seq.config.schema import TokenizerConfig

PAD, UNK, BOS, EOS = 0, 1, 2, 3
UNKNOWN_MARK = "\u2047"  # ⁇, which an unknown piece reads as

SMALLEST_VOCABULARY = 8  # that the settings allow
LONGEST_TRAINING_TEXT = 2_000  # characters fed at once; longer lines are fed in slices, so that none is passed over

_PROTECTED = "<\u2581\u2585\0"
_PRIVATE = "\uf8e1\uf8e2\uf8e3\uf8e4"
_ESCAPE = "\uf8e0"
_HIDE = dict(zip(_PROTECTED, _PRIVATE, strict=True)) | {
    private: _ESCAPE + letter for private, letter in zip(_ESCAPE + _PRIVATE, "abcde", strict=True)
}
_SHOW = {hidden: shown for shown, hidden in _HIDE.items()}
_TO_HIDE = re.compile(f"[{re.escape(_PROTECTED + _PRIVATE + _ESCAPE)}]")
_TO_SHOW = re.compile(f"{_ESCAPE}[abcde]|[{_PRIVATE}]")


def hide(text: str) -> str:
    """The text with the characters replaced that mean something to SentencePiece; `show` gives it back exactly."""
    return _TO_HIDE.sub(lambda found: _HIDE[found[0]], text)


def show(text: str) -> str:
    """The text that `hide` has made this of."""
    return _TO_SHOW.sub(lambda found: _SHOW[found[0]], text)


class Subwords:
    """One vocabulary: `encode` text into ids, `decode` ids into text. `model` is what a run folder keeps.

    Raises TokenizerError, which begins with `name`, when the model is not one of ours or is damaged.
    """

    suffix = ".model"

    def __init__(self, model: bytes, name: str) -> None:
        from sentencepiece import SentencePieceProcessor

        self.model = model
        try:
            if not model:
                raise ValueError("SentencePiece takes no bytes for no model, and complains on standard error")
            self._processor: SentencePieceProcessor = SentencePieceProcessor(model_proto=model)
            ids = [getattr(self._processor, f"{special}_id")() for special in ("pad", "unk", "bos", "eos")]
            self.size = int(self._processor.get_piece_size())
            # SentencePiece reads pieces that are no UTF-8, and then cannot give them back.
            self._processor.id_to_piece(list(range(self.size)))
            self._processor.decode([UNK])
        except (RuntimeError, ValueError, TypeError):
            raise TokenizerError(f"{name} is damaged or no tokenizer. Copy the whole run folder again.") from None
        if ids != [PAD, UNK, BOS, EOS]:
            raise TokenizerError(f"{name} numbers its special pieces otherwise and was not made by this program.")

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text's pieces; no text, whatever it says, gives a special id other than UNK."""
        hidden = [hide(clean(without_surrogates(text))) for text in texts]
        threads = _processors() if len(hidden) >= 512 else 1  # for a few lines the threads cost more than they bring
        ids: list[list[int]] = self._processor.encode(hidden, out_type=int, num_threads=threads)
        return ids

    def vocabulary(self) -> list[tuple[str, float] | None]:
        """Each piece as SentencePiece writes it and its score; None for special pieces and for bytes."""
        model = self._processor
        odd = (model.is_control, model.is_unknown, model.is_byte, model.is_unused)
        return [
            None if any(is_odd(number) for is_odd in odd) else (model.id_to_piece(number), model.get_score(number))
            for number in range(self.size)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the pieces, one line of it whatever the pieces are; padding and marks of begin and end go."""
        text: str = self._processor.decode([int(i) for i in ids if i not in (PAD, BOS, EOS)])
        # Text never holds these two here, because it is hidden: a NUL is a byte piece that a model chose, and U+2581
        # a blank spelt in byte pieces, as an unseen word of a word model is.
        return clean(show(text.replace("\0", "").replace("\u2581", " ")))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each piece as written in the vocabulary, U+2581 for the blank before a word."""
        return [show(self._processor.id_to_piece(int(i))) for i in ids]


def count_pieces(model: bytes, name: str) -> int:
    """How many pieces a model holds, counted without SentencePiece; TokenizerError where the bytes are no model.

    A model is a protocol buffer (https://protobuf.dev/programming-guides/encoding/) whose field 1 is a piece.
    """
    position = count = 0
    try:
        while position < len(model):
            tag, position = _varint(model, position)
            kind = tag & 7
            if kind == 2:
                length, position = _varint(model, position)
                position += length
            elif kind == 0:
                _, position = _varint(model, position)
            else:
                position += {1: 8, 5: 4}[kind]
            count += tag == (1 << 3 | 2)
        if position != len(model) or not count:
            raise ValueError("the last field does not end with the file")
    except (IndexError, KeyError, ValueError):
        raise TokenizerError(f"{name} is damaged or no tokenizer. Copy the whole run folder again.") from None
    return count


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """The number of variable length at a position, and the position after it. IndexError where the data end."""
    number = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise ValueError("a number of more than 64 bits")


def without_surrogates(text: str) -> str:
    """Half characters, which Python makes of bytes it could not decode, as U+FFFD; any other text as it is."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _processors() -> int:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, 8)


def train_subwords(lines: Iterable[str], settings: TokenizerConfig, text_name: str) -> Subwords:
    """Learn a vocabulary from lines, the same one from the same lines on any machine.

    `vocab_size` counts all pieces: four special ones and, with byte fallback, 256 bytes. bpe and unigram give exactly
    that many or refuse with the number that is possible. For char and word it is an upper bound: there are no more
    pieces than the text has characters or words, and the most frequent are taken. (A row of several unknown words, or
    characters, becomes one UNK; with byte fallback nothing is unknown.)

    Raises TokenizerError, which calls the text `text_name`; and whatever iterating over the lines raises.
    """
    from sentencepiece import SentencePieceTrainer

    upper_bound = settings.model_type in ("char", "word")
    reserved = 4 + (256 if settings.byte_fallback else 0)
    if upper_bound and settings.vocab_size <= reserved:
        raise _too_small(settings, reserved + 1, "a first piece")
    coverage = settings.character_coverage
    if coverage is None:
        coverage = 0.9995 if settings.byte_fallback else 1.0
    feed = _Feed(lines)
    model = io.BytesIO()
    try:
        _interruptibly(
            SentencePieceTrainer.train,
            sentence_iterator=iter(feed),
            model_writer=model,
            model_type=settings.model_type,
            vocab_size=settings.vocab_size,
            hard_vocab_limit=not upper_bound,
            byte_fallback=settings.byte_fallback,
            character_coverage=coverage,
            # A whole word is unknown in a word model, and its mark stands between blanks; else a character is.
            unk_surface=f" {UNKNOWN_MARK} " if settings.model_type == "word" else UNKNOWN_MARK,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            max_sentence_length=1 << 30,
            num_threads=1,  # the order in which threads finish is no part of an experiment
            minloglevel=2,
        )
    except (RuntimeError, SystemError) as error:  # the latter when an error of `lines` has passed through 0.2.0
        if feed.failure is not None:
            raise feed.failure from None
        raise _explain(error, settings, text_name, feed.count) from None
    if feed.failure is not None:
        raise feed.failure
    return Subwords(model.getvalue(), "The new tokenizer")


def _interruptibly(work: Callable[..., object], **arguments: Any) -> None:
    """work(**arguments), which Ctrl-C need not wait for: a library of C++ hears no signal until it is done.

    The thread that an interrupt leaves behind is known to the command line by its name.
    """
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work(**arguments)
        except BaseException as failure:  # it belongs to the thread that waits, which raises it again
            failures.append(failure)

    thread = threading.Thread(target=run, daemon=True, name="seq2seq-unstoppable")
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
    if failures:
        raise failures[0]


class _Feed:
    """The lines as SentencePiece reads them; keeps the error of a line, which SentencePiece would turn into another."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self.count = 0
        self.failure: BaseException | None = None

    def __iter__(self) -> Iterator[str]:
        try:
            for line in self._lines:
                text = hide(clean(line))
                for start in range(0, len(text), LONGEST_TRAINING_TEXT):
                    self.count += 1
                    yield text[start : start + LONGEST_TRAINING_TEXT]
        except GeneratorExit:
            raise
        except BaseException as error:
            self.failure = error
            raise


def _explain(error: Exception, settings: TokenizerConfig, text_name: str, fed: int) -> TokenizerError:
    """SentencePiece's complaint in our words; its numbers are right, its advice is for its own command line."""
    if not fed:
        return TokenizerError(f"{text_name} holds no text to learn a vocabulary from.")
    highest = re.search(r"value <= (\d+)", str(error))
    if highest and int(highest[1]) < SMALLEST_VOCABULARY:
        return TokenizerError(f"{text_name} holds too little text to learn a vocabulary from ({fed} lines).")
    if highest:
        return VocabularySizeError(
            f"tokenizer.vocab_size is {settings.vocab_size}, but {text_name} gives at most {highest[1]} "
            f"{settings.model_type} pieces. Set tokenizer.vocab_size to {highest[1]} or less.",
            int(highest[1]),
        )
    if lowest := re.search(r"required_chars\. \d+ vs (\d+)", str(error)):
        return _too_small(settings, int(lowest[1]), f"the characters of {text_name}")
    return TokenizerError(
        f"No {settings.model_type} vocabulary of tokenizer.vocab_size {settings.vocab_size} could be learnt from "
        f"{text_name} ({fed} lines). Try a smaller one, or tokenizer.model_type bpe."
    )


def _too_small(settings: TokenizerConfig, lowest: int, held: str) -> TokenizerError:
    reserved = "4 special pieces" + ", 256 bytes" * settings.byte_fallback
    return VocabularySizeError(
        f"tokenizer.vocab_size is {settings.vocab_size}, but {reserved} and {held} need at least {lowest}. "
        f"Set tokenizer.vocab_size to {lowest} or more.",
        lowest,
    )
