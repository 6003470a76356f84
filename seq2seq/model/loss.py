"""The output layer and the loss in one: logits, cross-entropy with label smoothing, and the gradient of both.

Letters: N real target tokens (padding is left out before this file), E embedding size, V vocabulary, C tokens of a
chunk, P the tokens with some rows of zeros, to make whole steps.

The logits are by far the largest thing in a translation model: N·V numbers. Their gradient is known in closed form
(softmax minus target), so a chunk of tokens is brought from logits to gradients and forgotten before the next one is
begun; no more than one chunk is ever held, and what is held stays in the processor's cache.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from seq2seq.model.device import autocast_dtype
from seq2seq.model.kernels import kernels_for
from seq2seq.model.packed import column_sums, whole_steps

# Numbers in one chunk of logits: enough for a large product, and mostly for a whole batch.
_CHUNK = {"cpu": 2**23}
_CHUNK_ELSEWHERE = 2**26


class _OutputLoss(torch.autograd.Function):
    """Summed loss of softmax(x Wᵀ + b); the gradients are made in the forward pass and only scaled in the backward.

    For one token with gold word g and smoothing s the loss is log Σ exp(logit) - (1-s) logit_g - s mean(logit), and its
    gradient by the logits is softmax - (1-s) onehot_g - s/V. The last term is the same for every word, so it never
    touches the N·V numbers: it is a product of two sums.
    """

    @staticmethod
    def forward(
        ctx: Any, x_NE: Tensor, weight_VE: Tensor, bias_V: Tensor, gold_N: Tensor, smoothing: float, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        N, V = x_NE.shape[0], weight_VE.shape[0]
        wide = torch.float64 if x_NE.dtype == torch.float64 else torch.float32
        # Whole steps only: a matrix library prepares itself anew for every shape it meets.
        x_PE = nn.functional.pad(x_NE.to(dtype), (0, 0, 0, whole_steps(N) - N))
        gold_P = nn.functional.pad(gold_N, (0, whole_steps(N) - N))
        cast_weight_VE, wide_bias_V = weight_VE.to(dtype), bias_V.detach().to(wide)
        needs_gradient = any(ctx.needs_input_grad)
        grad_x_PE, grad_weight_VE, grad_bias_V = torch.empty_like(x_PE), None, torch.zeros_like(wide_bias_V)
        nll, log_sums = torch.zeros((2,), dtype=wide, device=x_NE.device)
        size = rows_at_once(x_NE.device, V)
        for first in range(0, N, size):
            x_CE, gold_C = x_PE[first : first + size], gold_P[first : first + size]
            real = min(size, N - first)
            logits_CV = x_CE @ cast_weight_VE.t()
            if not needs_gradient:
                logits_CV = logits_CV.to(wide).add_(wide_bias_V)
                gold_logit_C = logits_CV.gather(1, gold_C.unsqueeze(1)).squeeze(1)
                log_sum_C = torch.logsumexp(logits_CV, dim=1)
            else:
                log_sum_C, gold_logit_C = to_gradient(logits_CV, wide_bias_V, gold_C, real, 1.0 - smoothing)
                grad_CV = logits_CV  # in place: softmax minus what should have been
                torch.mm(grad_CV, cast_weight_VE, out=grad_x_PE[first : first + size])
                part_VE = grad_CV.t() @ x_CE
                grad_weight_VE = part_VE if grad_weight_VE is None else grad_weight_VE.to(wide).add_(part_VE)
                grad_bias_V += column_sums(grad_CV)
            nll += (log_sum_C - gold_logit_C)[:real].sum()
            log_sums += log_sum_C[:real].sum()
        loss = nll.clone()
        constant_E = torch.zeros(x_NE.shape[1], dtype=wide, device=x_NE.device)
        if smoothing:
            x_sum_E, weight_sum_E = x_NE.sum(dim=0, dtype=wide), weight_VE.sum(dim=0, dtype=wide)
            logit_means = (x_sum_E @ weight_sum_E + N * bias_V.sum(dtype=wide)) / V
            loss = (1.0 - smoothing) * nll + smoothing * (log_sums - logit_means)
            if needs_gradient:
                grad_x_PE -= (smoothing / V * weight_sum_E).to(dtype)
                constant_E = smoothing / V * x_sum_E
                grad_bias_V -= smoothing / V * N
        if grad_weight_VE is None and needs_gradient:  # no token at all
            grad_weight_VE = torch.zeros_like(cast_weight_VE)
        if needs_gradient:
            ctx.save_for_backward(grad_x_PE[:N], grad_weight_VE, constant_E, grad_bias_V)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _grad_nll: Tensor) -> tuple[Tensor | None, ...]:
        return *scaled_gradients(ctx.saved_tensors, grad_loss), None, None, None


def rows_at_once(device: torch.device, V: int) -> int:
    """The tokens of a chunk, in whole steps."""
    step = whole_steps(1)
    return max(1, _CHUNK.get(device.type, _CHUNK_ELSEWHERE) // V // step) * step


def scaled_gradients(saved: tuple[Tensor, ...], grad_loss: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients by readouts, weight and bias, from what the forward pass has saved of them.

    The weight's (V,E) still lacks a constant (E) that is the same for every word.
    """
    grad_x, grad_weight_VE, constant_E, grad_bias_V = saved
    kernels = kernels_for(grad_weight_VE.device, grad_weight_VE.dtype)
    if kernels is not None:
        scaled_VE = kernels.scaled(grad_weight_VE, constant_E, grad_loss.item())
    else:
        scaled_VE = (grad_weight_VE - constant_E) * grad_loss
    return grad_x * grad_loss.to(grad_x.dtype), scaled_VE, grad_bias_V * grad_loss


def to_gradient(
    logits_CV: Tensor, bias_V: Tensor, gold_C: Tensor, real: int, gold_share: float
) -> tuple[Tensor, Tensor]:
    """Logits without their bias become, in place, softmax minus `gold_share` at the gold word; rows from `real` on
    become zeros.

    Each token's log Σ exp(logit) and gold logit come back, (C) in fp32 (fp64 where the logits are).
    """
    kernels = kernels_for(logits_CV.device, logits_CV.dtype)
    if kernels is not None:
        return kernels.softmax_back(logits_CV, bias_V, gold_C, real, gold_share)
    logits_CV += bias_V.to(logits_CV.dtype)
    gold_C1 = gold_C.unsqueeze(1)
    gold_logit_C1 = logits_CV.gather(1, gold_C1).to(bias_V.dtype)
    probability_CV = torch.softmax(logits_CV, dim=1)
    gold_probability_C1 = probability_CV.gather(1, gold_C1).to(bias_V.dtype)
    log_sum_C1 = gold_logit_C1 - gold_probability_C1.clamp(min=torch.finfo(bias_V.dtype).tiny).log()
    probability_CV.scatter_(1, gold_C1, (gold_probability_C1 - gold_share).to(logits_CV.dtype))
    logits_CV.copy_(probability_CV)[real:] = 0.0
    return log_sum_C1.squeeze(1), gold_logit_C1.squeeze(1)


def output_loss(
    x_NE: Tensor, weight_VE: Tensor, bias_V: Tensor, gold_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Summed loss with label smoothing (Szegedy et al. 2016, section 7), and the summed plain one, in nats.

    The gold word is taught with probability 1 - smoothing + smoothing/V, every other word with smoothing/V. Only the
    first of the two results carries a gradient; the second is what perplexity is made of. Products are computed in the
    precision of autocast where it is on, all sums in fp32.
    """
    kind = x_NE.device.type
    dtype = autocast_dtype(kind) or weight_VE.dtype
    with torch.autocast(kind, enabled=False):
        loss, nll = _OutputLoss.apply(  # type: ignore[no-untyped-call]
            x_NE, weight_VE, bias_V, gold_N, smoothing, dtype
        )
    return loss, nll
