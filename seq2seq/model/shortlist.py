"""A lexical shortlist: search chooses among the words that the source makes likely, not among all there are.

Letters: V vocabulary, N words kept for a source word, B sentences, C candidates of a batch, R rows, E embedding size.

Most of a translator's time goes into scoring thousands of words of which none but a few hundred can follow. Which ones
is known from the training text: the most frequent words, and for each source word those that it was translated with
(Jean et al. 2015, section 3; L'Hostis et al. 2016). The candidates of a sentence are those of its own words only, so a
translation does not depend on the rest of its batch; the product is made once for the candidates of all sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seq2seq.corpus.subwords import EOS, UNK
from seq2seq.model.best_words import best_words
from seq2seq.model.compact import Int8Linear, PackedLinear
from seq2seq.model.decoder import DecoderState
from seq2seq.model.places import Places, sentences_of
from seq2seq.model.translation_model import NEVER_SAID, TranslationModel


@dataclass(frozen=True)
class Shortlist:
    """For each source word its likeliest translations, and the words that are always candidates.

    `likely_VN` may hold a word twice; a row is filled up with EOS.
    """

    likely_VN: Tensor
    always: Tensor

    def tensors(self) -> dict[str, Tensor]:
        """For a file."""
        return {"likely": self.likely_VN, "always": self.always}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], source_size: int, target_size: int) -> Shortlist:
        """From a file. ValueError where it is not the shortlist of vocabularies of these sizes."""
        likely, always = tensors["likely"], tensors["always"].long()
        if likely.dim() != 2 or len(likely) != source_size or not likely.shape[1] or always.dim() != 1:
            raise ValueError("its shapes are not those of a shortlist")
        if min(likely.min(), always.min()) < 0 or max(likely.max(), always.max()) >= target_size:
            raise ValueError("it names words that the vocabulary has not")
        return cls(likely, always)

    def to(self, device: torch.device) -> Shortlist:
        return Shortlist(self.likely_VN.to(device), self.always.to(device))

    def candidates(self, src_BS: Tensor, mask_BS: Tensor, target_size: int) -> tuple[Tensor, Tensor]:
        """The candidates of all sentences together (C,), in order, and which of them each sentence has (B,C)."""
        own_BV = torch.zeros((len(src_BS), target_size), dtype=torch.bool, device=src_BS.device)
        words_BSN = self.likely_VN[src_BS].masked_fill(~mask_BS.unsqueeze(2), EOS)
        own_BV.scatter_(1, words_BSN.flatten(1).long(), True)
        own_BV[:, self.always] = True
        own_BV[:, list(NEVER_SAID)] = False
        candidate_C = own_BV.any(dim=0).nonzero().squeeze(1)
        return candidate_C, own_BV.index_select(1, candidate_C)


@dataclass(frozen=True)
class ShortState:
    """A decoder state with the output layer of its candidates."""

    inner: DecoderState
    own_BC: Tensor
    words: Words

    def select(self, rows_r: Tensor, sentences_b: Tensor | None = None, places: Places | None = None) -> ShortState:
        own = self.own_BC if sentences_b is None else self.own_BC.index_select(0, sentences_b)
        return ShortState(self.inner.select(rows_r, sentences_b, places), own, self.words)

    def sentences(self, rows: int) -> Tensor:
        """The sentence of each row."""
        return sentences_of(self.inner.places, rows, len(self.own_BC)).to(self.own_BC.device)


@dataclass(frozen=True)
class Words:
    """The output layer of some words."""

    layer: nn.Module
    candidate_C: Tensor


class Shortlisted:
    """A model as search sees it, whose next words are those of the shortlist."""

    def __init__(self, model: TranslationModel, shortlist: Shortlist) -> None:
        self.model, self.shortlist = model, shortlist

    def start(self, src_BS: Tensor, mask_BS: Tensor) -> ShortState:
        """Read the source, and make an output layer of its candidates."""
        layer = self.model.output_layer
        candidate_C, own_BC = self.shortlist.candidates(src_BS, mask_BS, layer.out_features)
        return ShortState(self.model.start(src_BS, mask_BS), own_BC, Words(_rows(layer, candidate_C), candidate_C))

    def step(self, previous_R: Tensor, state: ShortState, count: int) -> tuple[Tensor, Tensor, ShortState]:
        """The best next words of each row among its candidates, as of the whole model; see StepModel of search."""
        logit_RC, state = self._logits(previous_R, state)
        own = (state.own_BC, state.sentences(len(logit_RC)))
        best_RC, place_RC = best_words(logit_RC, min(count, logit_RC.shape[1]), own=own)
        return best_RC, self.words(place_RC, state), state

    def log_probabilities(self, previous_R: Tensor, state: ShortState) -> tuple[Tensor, ShortState]:
        """The log-probabilities of the candidates (R,C), -inf for those of other sentences; the state after it."""
        logit_RC, state = self._logits(previous_R, state)
        logit_RC.masked_fill_(~state.own_BC[state.sentences(len(logit_RC))], -torch.inf)
        return logit_RC.log_softmax(dim=1), state

    def words(self, place_RC: Tensor, state: ShortState) -> Tensor:
        """The ids of the words at these places of the candidates."""
        return state.words.candidate_C[place_RC]

    def _logits(self, previous_R: Tensor, state: ShortState) -> tuple[Tensor, ShortState]:
        readout_R1E, _, inner = self.model.decode(previous_R.unsqueeze(1), state.inner)
        logit_RC = state.words.layer(readout_R1E.squeeze(1))
        return logit_RC, ShortState(inner, state.own_BC, state.words)


def _rows(layer: nn.Module, rows_C: Tensor) -> nn.Module:
    """The output layer for some words only."""
    if isinstance(layer, (Int8Linear, PackedLinear)):
        return layer.rows(rows_C)
    assert isinstance(layer, nn.Linear)
    part = nn.Linear(layer.in_features, len(rows_C), device="meta")
    part.weight = nn.Parameter(layer.weight.index_select(0, rows_C), requires_grad=False)
    part.bias = nn.Parameter(layer.bias.index_select(0, rows_C), requires_grad=False)
    return part


def always_said(frequent: Tensor) -> Tensor:
    """The words that every sentence may use: the most frequent ones, the end mark and the mark of the unknown."""
    words: Tensor = torch.unique(torch.cat([frequent, torch.tensor([EOS, UNK])]))
    return words
