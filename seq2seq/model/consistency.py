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

# Numbers in one chunk of logits of both readings, and the rows of whole steps; see loss.py.
_CHUNK = {"cpu": 2**22}
_CHUNK_ELSEWHERE = 2**26
_STEP = 64


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
        x_2PE = nn.functional.pad(readings_2NE.to(dtype), (0, 0, 0, -N % _STEP))
        gold_P1 = nn.functional.pad(gold_N, (0, -N % _STEP)).unsqueeze(1)
        cast_weight_VE, cast_bias_V = weight_VE.to(dtype), bias_V.to(dtype)
        grad_x_2PE = torch.empty_like(x_2PE)
        grad_weight_VE = torch.zeros(weight_VE.shape, dtype=wide, device=device)
        grad_bias_V = torch.zeros(V, dtype=wide, device=device)
        loss, nll = torch.zeros((2,), dtype=wide, device=device)
        size = max(1, _CHUNK.get(device.type, _CHUNK_ELSEWHERE) // (2 * V) // _STEP) * _STEP
        for first in range(0, N, size):
            x_2CE, gold_C1 = x_2PE[:, first : first + size], gold_P1[first : first + size]
            C, real = len(gold_C1), min(size, N - first)
            x_RE = x_2CE.reshape(2 * C, E)
            logits_RV = torch.addmm(cast_bias_V, x_RE, cast_weight_VE.t())
            log_p_2CV = torch.log_softmax(logits_RV.to(wide), dim=1).view(2, C, V)
            chunk_loss, chunk_nll, grad_2CV = _chunk(log_p_2CV, gold_C1, real, smoothing, strength)
            loss += chunk_loss
            nll += chunk_nll
            grad_RV = grad_2CV.view(2 * C, V)
            grad_bias_V += grad_RV.sum(dim=0)
            grad_RV = grad_RV.to(dtype)
            grad_x_2PE[:, first : first + size] = torch.mm(grad_RV, cast_weight_VE).view(2, C, E)
            grad_weight_VE += grad_RV.t() @ x_RE
        ctx.save_for_backward(grad_x_2PE[:, :N], grad_weight_VE, grad_bias_V)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _grad_nll: Tensor) -> tuple[Tensor | None, ...]:
        grad_x_2NE, grad_weight_VE, grad_bias_V = ctx.saved_tensors
        grads = (grad_x_2NE * grad_loss.to(grad_x_2NE.dtype), grad_weight_VE * grad_loss, grad_bias_V * grad_loss)
        return *grads, None, None, None, None


def _chunk(
    log_p_2CV: Tensor, gold_C1: Tensor, real: int, smoothing: float, strength: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Loss and plain negative log-likelihood of the first `real` tokens, and the gradient by the logits (2,C,V)."""
    _, _, V = log_p_2CV.shape
    gold_2C1 = gold_C1.expand(2, -1, -1)
    p_2CV = log_p_2CV.exp()
    apart_1CV = log_p_2CV[:1] - log_p_2CV[1:]
    divergence_2C1 = (p_2CV * apart_1CV).sum(dim=2, keepdim=True)  # KL(p‖q) and -KL(q‖p)
    log_gold_2C1 = log_p_2CV.gather(2, gold_2C1)
    nll = -log_gold_2C1[:, :real].sum() / 2
    divergence = divergence_2C1[0, :real].sum() - divergence_2C1[1, :real].sum()
    loss = (1.0 - smoothing) * nll + strength / 4 * divergence
    if smoothing:
        loss = loss - smoothing / 2 * log_p_2CV[:, :real].mean(dim=2).sum()
    # By the logits of either reading: towards the gold word and away from the rest, and towards the other reading.
    push_2CV = p_2CV * (apart_1CV - divergence_2C1)
    push_2CV += p_2CV[:1] - p_2CV[1:]
    push_2CV[1].neg_()
    grad_2CV = p_2CV.sub_(smoothing / V).mul_(0.5)
    grad_2CV.scatter_add_(2, gold_2C1, torch.full_like(log_gold_2C1, (smoothing - 1.0) / 2))
    grad_2CV.add_(push_2CV, alpha=strength / 4)
    grad_2CV[:, real:] = 0.0
    return loss, nll, grad_2CV


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
