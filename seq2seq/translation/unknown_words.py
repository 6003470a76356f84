"""Unknown words: where a vocabulary of words has none for what should be said, the source's own word stands in.

Names and numbers are often the same in both languages, so an unknown word of the output is replaced by the source word
that the model looked at when it wrote it, or by what a dictionary has for that word (Luong et al. 2015, "Addressing the
Rare Word Problem", https://aclanthology.org/P15-1002; by attention in Jean et al. 2015, section 3.3,
https://aclanthology.org/P15-1001).

The search keeps no attention. The finished translation is given to the model once more, word for word, as in training:
the same words are read in the same order, so the weights are those with which it was written.

Letters: T target words and the end mark, S source words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from seq2seq.corpus.lines import clean, read_lines
from seq2seq.corpus.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from seq2seq.errors import CorpusError, RunError

if TYPE_CHECKING:
    from seq2seq.model.translation_model import TranslationModel

_ADVICE = "Convert the dictionary to UTF-8."


class UnknownWords:
    """Replaces the unknown words of translations. RunError where the run's vocabulary does not consist of words."""

    def __init__(self, tokenizer: Tokenizer, dictionary: Mapping[str, str] | None = None) -> None:
        words = tokenizer.words()
        if words is None:
            raise RunError(
                "Unknown words can be replaced where each piece is a whole word (tokenizer.kind torchtext); the pieces "
                "of this run spell them instead, so translate without --replace-unknown."
            )
        self._source, self._target = words
        self._dictionary = dict(dictionary or {})
        self._any_case: dict[str, str] = {}
        for word, translation in self._dictionary.items():
            self._any_case.setdefault(word.casefold(), translation)

    def decode(
        self, model: TranslationModel, source: Sequence[int], words: Sequence[str], target: Sequence[int]
    ) -> str:
        """The text of a translation in ids; `words` are the source's, of which `source` has the ids."""
        said = [i for i in target if i not in (PAD, BOS, EOS)]
        if UNK not in said or not words:
            return self._target.decode(said)
        looked_at_T = attention(model, source, said).argmax(dim=1).tolist()
        text = [
            self._translation(words[place]) if i == UNK else self._target.word(i)
            for i, place in zip(said, looked_at_T, strict=False)  # the end mark looks at something too
        ]
        return clean(" ".join(text))

    def source_words(self, text: str) -> list[str]:
        """The words of a text as they are encoded, one for each id."""
        return self._source.words(text)

    def _translation(self, word: str) -> str:
        return self._dictionary.get(word) or self._any_case.get(word.casefold(), word)


def attention(model: TranslationModel, source: Sequence[int], target: Sequence[int]) -> Tensor:
    """How much of its look each target word, and the end mark, gave to each source word: (T,S), each row sums to one.

    The mean over the heads where attention has several.
    """
    device = model.target_embedding.weight.device
    src_1S = torch.tensor([list(source)], device=device)
    tgt_1T = torch.tensor([[BOS, *target]], device=device)
    with torch.inference_mode():
        state = model.start(src_1S, torch.ones_like(src_1S, dtype=torch.bool))
        _, weights_1TS, _ = model.decode(tgt_1T, state)
    return weights_1TS[0].float()


def read_dictionary(path: str | Path) -> dict[str, str]:
    """Words and their translations from a file: a source word, a tab, and what stands for it, in each line.

    The first of several translations of a word counts; blank lines are passed over. CorpusError names a line that is
    no such entry.
    """
    dictionary: dict[str, str] = {}
    lines = read_lines(path, advice=_ADVICE)
    for line in lines:
        if not (line or "").strip():
            continue
        cells = [clean(cell) for cell in (line or "").split("\t")]
        if len(cells) < 2 or not cells[0] or not cells[1]:
            raise CorpusError(
                f"{path} line {lines.number:,} is no entry of a dictionary: a source word, a tab and its translation "
                "are expected."
            )
        dictionary.setdefault(cells[0], cells[1])
    return dictionary
