"""The output layer and the loss in one: logits, cross-entropy with label smoothing, and the gradient of both.

Letters: N real target tokens (padding is left out before this file), E embedding size, V vocabulary, C tokens of a chunk.

The logits are by far the largest thing in a translation model: N·V numbers. Their gradient is known in closed form
(softmax minus target), so a chunk of tokens is brought from logits to gradients and forgotten before the next one is
begun; no more than one chunk is ever held, and what is held stays in the processor's cache.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Numbers in one chunk of logits: 8 MB in fp32 keeps a processor's cache busy; a GPU wants larger products.
_CHUNK = {"cpu": 2**21}
_CHUNK_ELSEWHERE = 2**25


class _OutputLoss(torch.autograd.Function):
    """Summed loss of softmax(x Wᵀ + b); the gradients are made in the forward pass and only scaled in the backward."""

    @staticmethod
    def forward(
        ctx: Any, x_NE: Tensor, weight_VE: Tensor, bias_V: Tensor, gold_N: Tensor, smoothing: float, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        (N, E), V = x_NE.shape, weight_VE.shape[0]
        wide = torch.float64 if x_NE.dtype == torch.float64 else torch.float32
        needs_gradient = any(ctx.needs_input_grad)
        x_NE, cast_weight_VE, cast_bias_V = x_NE.to(dtype), weight_VE.to(dtype), bias_V.to(dtype)
        loss, nll = (torch.zeros((), dtype=wide, device=x_NE.device) for _ in range(2))
        if needs_gradient:
            grad_x_NE = torch.empty_like(x_NE)
            grad_weight_VE = torch.zeros((V, E), dtype=wide, device=x_NE.device)
            grad_bias_V = torch.zeros(V, dtype=wide, device=x_NE.device)
        size = max(1, _CHUNK.get(x_NE.device.type, _CHUNK_ELSEWHERE) // V)
        for first in range(0, N, size):
            x_CE, gold_C1 = x_NE[first : first + size], gold_N[first : first + size].unsqueeze(1)
            logits_CV = torch.addmm(cast_bias_V, x_CE, cast_weight_VE.t()).to(wide)
            log_sum_C1 = torch.logsumexp(logits_CV, dim=1, keepdim=True)
            nll_of_chunk = (log_sum_C1 - logits_CV.gather(1, gold_C1)).sum()
            nll += nll_of_chunk
            loss += (1.0 - smoothing) * nll_of_chunk
            if smoothing:
                loss += smoothing * (log_sum_C1.sum() - logits_CV.sum() / V)
            if not needs_gradient:
                continue
            grad_CV = logits_CV.sub_(log_sum_C1).exp_()
            if smoothing:
                grad_CV -= smoothing / V
            grad_CV.scatter_add_(1, gold_C1, grad_CV.new_full(gold_C1.shape, smoothing - 1.0))
            grad_bias_V += grad_CV.sum(dim=0)
            cast_CV = grad_CV.to(dtype)
            torch.mm(cast_CV, cast_weight_VE, out=grad_x_NE[first : first + size])
            grad_weight_VE += cast_CV.t() @ x_CE
        if needs_gradient:
            ctx.save_for_backward(grad_x_NE, grad_weight_VE, grad_bias_V)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _grad_nll: Tensor) -> tuple[Tensor | None, ...]:
        grad_x_NE, grad_weight_VE, grad_bias_V = ctx.saved_tensors
        grads = (grad_x_NE * grad_loss.to(grad_x_NE.dtype), grad_weight_VE * grad_loss, grad_bias_V * grad_loss)
        return *grads, None, None, None


def output_loss(
    x_NE: Tensor, weight_VE: Tensor, bias_V: Tensor, gold_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Summed loss with label smoothing (Szegedy et al. 2016, section 7), and the summed plain one, in nats.

    The gold word is taught with probability 1 - smoothing + smoothing/V, every other word with smoothing/V. Only the
    first of the two results carries a gradient; the second is what perplexity is made of. Products are computed in the
    precision of autocast where it is on, the softmax and all sums in fp32.
    """
    kind = x_NE.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight_VE.dtype
    with torch.autocast(kind, enabled=False):
        loss, nll = _OutputLoss.apply(x_NE, weight_VE, bias_V, gold_N, smoothing, dtype)
    return loss, nll
