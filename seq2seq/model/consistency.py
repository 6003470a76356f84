"""R-Drop (Liang et al. 2021, section 2): two readings under different dropout are to say the same.

Letters: N real target tokens, E embedding size, V vocabulary, C tokens of a chunk, 2C the same in both readings.

Each batch is read twice; both readings learn the gold words, and each learns the distribution of the other, as the
mean of the divergences of the one from the other. As in loss.py, a chunk of tokens is brought from logits to gradients
and forgotten, so that the N·V numbers of two readings never exist. For one token with logits a and b of its readings,
p and q their softmax and d = log p - log q,

    KL(p‖q) + KL(q‖p) = Σ p d - Σ q d,

with gradients (p - q) + p (d - Σ p d) by a and (q - p) - q (d - Σ q d) by b.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from seq2seq.model.device import autocast_dtype
from seq2seq.model.kernels import kernels_for
from seq2seq.model.loss import scaled_gradients
from seq2seq.model.packed import column_sums, whole_steps

# Numbers in one chunk of logits of both readings; see loss.py.
_CHUNK = {"cpu": 2**24}
_CHUNK_ELSEWHERE = 2**26


class _ConsistentLoss(torch.autograd.Function):
    """Summed loss of two readings; the gradients are made in the forward pass and only scaled in the backward."""

    @staticmethod
    def forward(
        ctx: Any,
        readings_2NE: Tensor,
        weight_VE: Tensor,
        bias_V: Tensor,
        gold_N: Tensor,
        smoothing: float,
        strength: float,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        _, N, E = readings_2NE.shape
        V = len(weight_VE)
        device = readings_2NE.device
        wide = torch.float64 if readings_2NE.dtype == torch.float64 else torch.float32
        x_2PE = nn.functional.pad(readings_2NE.to(dtype), (0, 0, 0, whole_steps(N) - N))
        gold_P = nn.functional.pad(gold_N, (0, whole_steps(N) - N))
        cast_weight_VE, wide_bias_V = weight_VE.to(dtype), bias_V.detach().to(wide)
        grad_x_2PE, grad_weight_VE = torch.empty_like(x_2PE), None
        grad_bias_V = torch.zeros(V, dtype=wide, device=device)
        nll, log_sums, apart = torch.zeros((3,), dtype=wide, device=device)
        step = whole_steps(1)
        size = max(1, _CHUNK.get(device.type, _CHUNK_ELSEWHERE) // (2 * V) // step) * step
        for first in range(0, N, size):
            gold_C = gold_P[first : first + size]
            C, real = len(gold_C), min(size, N - first)
            x_RE = x_2PE[:, first : first + size].reshape(2 * C, E)
            logits_2CV = (x_RE @ cast_weight_VE.t()).view(2, C, V)
            shares = (gold_C, real, smoothing, strength / 4)
            log_sum_2C, gold_logit_2C, apart_C, grad_2CV = _to_gradients(logits_2CV, wide_bias_V, *shares)
            nll += (log_sum_2C - gold_logit_2C)[:, :real].sum() / 2
            log_sums += log_sum_2C[:, :real].sum() / 2
            apart += apart_C[:real].sum()
            grad_RV = grad_2CV.view(2 * C, V)
            grad_x_2PE[:, first : first + size] = torch.mm(grad_RV, cast_weight_VE).view(2, C, E)
            part_VE = grad_RV.t() @ x_RE
            grad_weight_VE = part_VE if grad_weight_VE is None else grad_weight_VE.to(wide).add_(part_VE)
            grad_bias_V += column_sums(grad_RV)
        loss = (1.0 - smoothing) * nll + strength / 4 * apart
        constant_E = torch.zeros(E, dtype=wide, device=device)
        if smoothing:  # the same for every word, so it never touches the N·V numbers; see loss.py
            x_sum_E, weight_sum_E = readings_2NE.sum(dim=(0, 1), dtype=wide), weight_VE.sum(dim=0, dtype=wide)
            logit_means = (x_sum_E @ weight_sum_E / 2 + N * bias_V.sum(dtype=wide)) / V
            loss = loss + smoothing * (log_sums - logit_means)
            grad_x_2PE -= (smoothing / (2 * V) * weight_sum_E).to(dtype)
            constant_E = smoothing / (2 * V) * x_sum_E
            grad_bias_V -= smoothing / V * N
        if grad_weight_VE is None:  # no token at all
            grad_weight_VE = torch.zeros_like(cast_weight_VE)
        ctx.save_for_backward(grad_x_2PE[:, :N], grad_weight_VE, constant_E, grad_bias_V)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _grad_nll: Tensor) -> tuple[Tensor | None, ...]:
        return *scaled_gradients(ctx.saved_tensors, grad_loss), None, None, None, None


def _to_gradients(
    logits_2CV: Tensor, bias_V: Tensor, gold_C: Tensor, real: int, smoothing: float, weight: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """From logits without their bias: log-sums (2,C), gold logits (2,C), divergences of both readings from each other
    (C), and the gradient by the logits (2,C,V), zeros from row `real` on.

    As above, with each reading's own p / 2 in it: p (½ + weight (1 + d - Σ p d)) - weight q.
    """
    kernels = kernels_for(logits_2CV.device, logits_2CV.dtype)
    if kernels is not None:
        found = kernels.consistency_back(logits_2CV, bias_V, gold_C, real, (1.0 - smoothing) / 2, weight)
        return *found, logits_2CV
    logits_2CV, dtype = logits_2CV.to(bias_V.dtype) + bias_V, logits_2CV.dtype
    log_sum_2C1 = torch.logsumexp(logits_2CV, dim=2, keepdim=True)
    probability_2CV = (logits_2CV - log_sum_2C1).exp_()
    gold_C1 = gold_C.unsqueeze(1)
    gold_logit_2C1 = logits_2CV.gather(2, gold_C1.expand(2, -1, -1))
    difference_CV = logits_2CV[0] - logits_2CV[1]  # d, but for a constant of the token that falls out
    mean_2C1 = torch.stack([torch.linalg.vecdot(p_CV, difference_CV) for p_CV in probability_2CV]).unsqueeze(2)
    taught_C1 = torch.full_like(mean_2C1[0], (smoothing - 1.0) / 2)
    grad_2CV = torch.empty_like(logits_2CV, dtype=dtype)
    for reading, sign in ((0, weight), (1, -weight)):
        own_CV, other_CV = probability_2CV[reading], probability_2CV[1 - reading]
        made_CV = torch.add(0.5 + weight - sign * mean_2C1[reading], difference_CV, alpha=sign)
        made_CV.mul_(own_CV).sub_(other_CV, alpha=weight)
        made_CV.scatter_add_(1, gold_C1, taught_C1)
        grad_2CV[reading].copy_(made_CV)
    grad_2CV[:, real:] = 0.0
    return log_sum_2C1.squeeze(2), gold_logit_2C1.squeeze(2), (mean_2C1[0] - mean_2C1[1]).squeeze(1), grad_2CV


def consistent_loss(
    readings_2NE: Tensor, weight_VE: Tensor, bias_V: Tensor, gold_N: Tensor, smoothing: float, strength: float
) -> tuple[Tensor, Tensor]:
    """The mean of both readings' losses with label smoothing, plus `strength` / 2 times the mean of their divergences,
    summed over the tokens; and the mean of their plain ones, which carries no gradient. In nats.

    This is half of Liang et al.'s equation 4, whose α is `strength`: a loss of the same size as without.
    """
    kind = readings_2NE.device.type
    dtype = autocast_dtype(kind) or weight_VE.dtype
    with torch.autocast(kind, enabled=False):
        loss, nll = _ConsistentLoss.apply(  # type: ignore[no-untyped-call]
            readings_2NE, weight_VE, bias_V, gold_N, smoothing, strength, dtype
        )
    return loss, nll
