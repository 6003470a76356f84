"""Minimum risk training (Shen et al. 2016): of several translations of a sentence the better become more probable.

Letters: B sentences, K candidates of each, R = B·(1+K) rows (a sentence's reference, then its candidates), T target
steps, N real tokens of all candidates, E embedding size, V vocabulary, C tokens of a chunk, P the tokens with some rows
of zeros, to make whole steps.

Likelihood teaches the next word after a faultless beginning, each by itself. Here whole translations are compared, and
they are the model's own. With r the quality of a candidate, 0 to 1, and s its log-probability divided by its length,
the risk of a sentence is the quality that is expected to be missing:

    Σ_k q_k (1 - r_k),   q = softmax_k(α s_k)

(Shen et al., equations 10 to 12, with the length as in Edunov et al. 2018, section 3.1). Its gradient by the logits of
a token of candidate k is that of the token's own loss, softmax minus what was said, times

    -(α / length_k) q_k ((1 - r_k) - risk),

negative where the candidate is worse than expected: what is bad is unlearnt. As in loss.py, gradients are made in the
forward pass. All tokens' N·V numbers are held once, since the shares of a sentence are known when its last token is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from seq2seq.corpus.subwords import PAD
from seq2seq.model.device import autocast_dtype
from seq2seq.model.loss import output_loss, rows_at_once, scaled_gradients, to_gradient
from seq2seq.model.packed import column_sums, whole_steps

if TYPE_CHECKING:
    from seq2seq.corpus.batches import Batch
    from seq2seq.model.translation_model import TranslationModel

# How sharply the probable candidates stand out, for a mean log-probability a token in nats: 0.1 more is e times more.
SHARPNESS = 10.0
# The share of the references' own loss, which keeps the model at home in correct text (Edunov et al. 2018, section 4).
LIKELIHOOD = 0.3


@dataclass(frozen=True)
class Candidates:
    """Translations of a batch's sentences beside their references, as the decoder reads and says them.

    Rows are the reference of the first sentence, its K candidates, the reference of the second and so on. A sentence
    that has fewer candidates has rows of padding in their place, and False in `there_BK`.
    """

    tgt_in_RT: Tensor
    tgt_out_RT: Tensor
    quality_BK: Tensor
    there_BK: Tensor

    def to(self, device: torch.device) -> Candidates:
        return Candidates(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))


class _ExpectedRisk(torch.autograd.Function):
    """Summed risk, each sentence's times its weight; `place_N` are the tokens' places in the flattened (B·K,T)."""

    @staticmethod
    def forward(
        ctx: Any,
        x_NE: Tensor,
        weight_VE: Tensor,
        bias_V: Tensor,
        said_N: Tensor,
        place_N: Tensor,
        candidates: Candidates,
        weight_B: Tensor,
        dtype: torch.dtype,
    ) -> Tensor:
        N, V, device = len(x_NE), len(weight_VE), x_NE.device
        T = candidates.tgt_out_RT.shape[1]
        wide = torch.float64 if x_NE.dtype == torch.float64 else torch.float32
        x_PE = nn.functional.pad(x_NE.to(dtype), (0, 0, 0, whole_steps(N) - N))
        said_P = nn.functional.pad(said_N, (0, whole_steps(N) - N))
        cast_weight_VE, wide_bias_V = weight_VE.to(dtype), bias_V.detach().to(wide)
        size = rows_at_once(device, V)
        chunks, nll_N = [], torch.empty(N, dtype=wide, device=device)
        for first in range(0, N, size):
            x_CE, real = x_PE[first : first + size], min(size, N - first)
            logits_CV = x_CE @ cast_weight_VE.t()
            log_sum_C, logit_C = to_gradient(logits_CV, wide_bias_V, said_P[first : first + size], real, 1.0)
            nll_N[first : first + real] = (log_sum_C - logit_C)[:real]
            chunks.append((first, x_CE, logits_CV))  # which are gradients now
        risk_B, share_BK = _risk(nll_N, place_N, T, candidates)
        share_N = (share_BK * weight_B.unsqueeze(1)).flatten().index_select(0, place_N // T)
        share_P1 = nn.functional.pad(share_N.to(dtype), (0, whole_steps(N) - N)).unsqueeze(1)
        grad_x_PE, grad_bias_V = torch.empty_like(x_PE), torch.zeros_like(wide_bias_V)
        grad_weight_VE = torch.zeros_like(weight_VE, dtype=wide)
        for first, x_CE, grad_CV in chunks:
            grad_CV.mul_(share_P1[first : first + size])
            torch.mm(grad_CV, cast_weight_VE, out=grad_x_PE[first : first + size])
            grad_weight_VE += grad_CV.t() @ x_CE
            grad_bias_V += column_sums(grad_CV)
        no_constant_E = torch.zeros(x_NE.shape[1], dtype=wide, device=device)
        ctx.save_for_backward(grad_x_PE[:N], grad_weight_VE, no_constant_E, grad_bias_V)
        return (risk_B * weight_B).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        return *scaled_gradients(ctx.saved_tensors, grad_loss), None, None, None, None, None


def _risk(nll_N: Tensor, place_N: Tensor, T: int, candidates: Candidates) -> tuple[Tensor, Tensor]:
    """The risk of each sentence (B), and its derivative by the loss of any token of each of its candidates (B,K)."""
    B, K = candidates.quality_BK.shape
    none_X = nll_N.new_zeros(B * K * T)
    length_BK = none_X.index_fill(0, place_N, 1.0).view(B, K, T).sum(2).clamp(min=1.0)
    score_BK = -SHARPNESS * none_X.index_copy(0, place_N, nll_N).view(B, K, T).sum(2) / length_BK
    q_BK = score_BK.masked_fill(~candidates.there_BK, torch.finfo(score_BK.dtype).min).softmax(1)
    missing_BK = 1.0 - candidates.quality_BK.to(q_BK.dtype)
    risk_B = (q_BK * missing_BK).sum(1)
    return risk_B, -SHARPNESS / length_BK * q_BK * (missing_BK - risk_B.unsqueeze(1))


def risk_loss(model: TranslationModel, batch: Batch, candidates: Candidates, smoothing: float) -> tuple[Tensor, Tensor]:
    """What is minimised, summed over the batch, and the smoothed loss of its references, which carries no gradient.

    A sentence's risk counts as often as its reference has tokens, as it does in a score of the whole corpus; to that
    comes LIKELIHOOD times the loss of the references, in nats.
    """
    output = model.output_layer
    weight_VE, tied = model.output_matrix()
    B, K = candidates.quality_BK.shape
    state = model.decoder.start(model.encode(batch.src_BS, batch.src_mask_BS, tied=tied))
    state = state.select(torch.arange(B, device=weight_VE.device).repeat_interleave(1 + K))
    readout_RTE, _, _ = model.decode(candidates.tgt_in_RT, state, tied=tied)
    T, E = readout_RTE.shape[1:]
    readout_BXTE = readout_RTE.view(B, 1 + K, T, E)
    said_BXT = candidates.tgt_out_RT.view(B, 1 + K, T)
    (gold_XE, gold_X, _), (x_NE, said_N, place_N) = (
        _real(readout_BXTE[:, part], said_BXT[:, part]) for part in (slice(0, 1), slice(1, None))
    )
    loss, _ = output_loss(gold_XE, weight_VE, output.bias, gold_X, smoothing)
    weight_B = (said_BXT[:, 0] != PAD).sum(1).to(output.bias.dtype)
    kind = weight_VE.device.type
    dtype = autocast_dtype(kind) or weight_VE.dtype
    with torch.autocast(kind, enabled=False):
        risk = _ExpectedRisk.apply(  # type: ignore[no-untyped-call]
            x_NE, weight_VE, output.bias, said_N, place_N, candidates, weight_B, dtype
        )
    return risk + LIKELIHOOD * loss, loss.detach()


def _real(readout_BXTE: Tensor, said_BXT: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The readouts where something is said, what is said there, and the places."""
    place_N = (said_BXT != PAD).flatten().nonzero().squeeze(1)
    return readout_BXTE.flatten(0, 2).index_select(0, place_N), said_BXT.flatten().index_select(0, place_N), place_N
