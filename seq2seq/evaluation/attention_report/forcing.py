"""Forcing: the model reads a source and is given its target piece by piece, and attention is watched meanwhile.

Letters: T target steps (the end mark included), S source tokens (the end mark included), N heads, H hidden size,
C context size. One sentence at a time, so nothing is padded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seq2seq.corpus.batches import collate_sources
from seq2seq.corpus.subwords import BOS
from seq2seq.model.attention import Attention, Memory, masked_softmax
from seq2seq.model.translation_model import TranslationModel


@dataclass(frozen=True)
class Look:
    """What was asked of attention for one sentence, and what it answered; row t belongs to the t-th target piece.

    A kind without heads has one head (N = 1) here; `output_TC` is what the decoder gets.
    """

    attention: Attention
    memory: Memory
    query_1TH: Tensor
    scores_NTS: Tensor
    weights_NTS: Tensor
    output_TC: Tensor

    def mean(self) -> Tensor:
        """The mean over the heads, (T,S): the weights that `attend` gives."""
        return self.weights_NTS.mean(dim=0)


class _Listener(Attention):
    """Stands in the place of an attention, passes everything on, and keeps what was asked."""

    def __init__(self, attention: Attention) -> None:
        super().__init__(attention.context_size)
        self.attention = attention
        self.queries: list[Tensor] = []
        self.memory: Memory | None = None

    def remember(self, keys_BSK: Tensor, values_BSV: Tensor, mask_BS: Tensor | None = None) -> Memory:
        return self.attention.remember(keys_BSK, values_BSV, mask_BS)

    def scores(self, query_BTQ: Tensor, memory: Memory) -> Tensor:
        return self.attention.scores(query_BTQ, memory)

    def combine(self, weights: Tensor, memory: Memory) -> Tensor:
        return self.attention.combine(weights, memory)

    def attend(self, query_BTQ: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        self.queries.append(query_BTQ)
        self.memory = memory
        return self.attention.attend(query_BTQ, memory)


@contextlib.contextmanager
def _listening(model: TranslationModel) -> Iterator[_Listener]:
    listener = _Listener(model.decoder.attention)
    model.decoder.attention = listener
    try:
        yield listener
    finally:
        model.decoder.attention = listener.attention


def force(model: TranslationModel, source: Sequence[int], target: Sequence[int], device: torch.device) -> Look:
    """Read a source and a given target, both in ids without end marks, and tell where the decoder looked.

    The model should be in evaluation mode.
    """
    src_1S, mask_1S = (tensor.to(device) for tensor in collate_sources([list(source)]))
    read_1T = torch.tensor([[BOS, *target]], device=device)  # the last piece is followed by the end mark
    with torch.inference_mode(), _listening(model) as listener:
        model.decode(read_1T, model.start(src_1S, mask_1S))
        memory, attention = listener.memory, listener.attention
        assert memory is not None, "a decoder asks its attention"
        # Step by step or all at once: one row of queries a step.
        query_1TH = torch.cat(listener.queries, dim=1)
        scores = attention.scores(query_1TH, memory)
        weights = masked_softmax(scores, memory.mask_BS)
        output_1TC = attention.combine(weights, memory)
    S = scores.shape[-1]
    scores_NTS, weights_NTS = (each.float().cpu().view(-1, query_1TH.shape[1], S) for each in (scores, weights))
    return Look(attention, memory, query_1TH, scores_NTS, weights_NTS, output_1TC[0].float().cpu())
