"""Dropout (Srivastava et al. 2014), with random numbers that cost little on a processor.

Variational dropout (Gal & Ghahramani 2016, section 4) draws one mask for a sentence and uses it at all of its steps, so
that a model cannot wait for the next step to see what this one hides. Theirs also masks the state on its way to the
next step; ours leaves that alone, since all steps of a GRU are one fused call.

On a CPU most of dropout's time goes into drawing one random number per activation. Here one 64-bit draw decides eight
activations by a byte each, so the share dropped is rounded to the nearest 1/256, and what stays is scaled by exactly
that rounded share. GPUs draw fast enough; there it is PyTorch's own dropout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from seq2seq.model.kernels import kernels_for


class Dropout(nn.Module):
    """Sets a share of the activations to zero in training and scales the others up; does nothing in evaluation.

    `variational`: what is dropped of (B,T,X) is the same at all T steps of a sentence.
    """

    def __init__(self, share: float, variational: bool = False) -> None:
        super().__init__()
        self.share, self.variational = share, variational
        self.dropped = min(255, round(share * 256))  # of 256

    @property
    def drops(self) -> bool:
        """Whether it does anything now."""
        return self.training and self.dropped > 0

    def forward(self, x: Tensor) -> Tensor:
        if not self.drops:
            return x
        if self.variational and x.dim() == 3:
            return x * self._drop(torch.ones_like(x[:, :1]))
        return self._drop(x)

    def over_steps(self) -> Callable[[Tensor], Tensor]:
        """The same for steps (B,X) that are computed one after the other; variational, they share the first's mask."""
        if not (self.variational and self.drops):
            return self
        masks: list[Tensor] = []

        def drop(x_BX: Tensor) -> Tensor:
            if not masks:
                masks.append(self._drop(torch.ones_like(x_BX)))
            return x_BX * masks[0]

        return drop

    def _drop(self, x: Tensor) -> Tensor:
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.share)
        draws = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        bytes_N = draws.view(torch.uint8)[: x.numel()]
        dropped: Tensor = _ByBytes.apply(x, bytes_N, self.dropped)  # type: ignore[no-untyped-call]
        return dropped

    def extra_repr(self) -> str:
        return f"share={self.share}" + (", variational" if self.variational else "")


class _ByBytes(torch.autograd.Function):
    """Forward and backward are the same: what has a small byte becomes zero, the rest is scaled."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bytes_N: Tensor, dropped: int) -> Tensor:
        ctx.save_for_backward(bytes_N)
        ctx.dropped = dropped
        return _dropped(x, bytes_N, dropped)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (bytes_N,) = ctx.saved_tensors
        return _dropped(grad, bytes_N, ctx.dropped), None, None


def _dropped(x: Tensor, bytes_N: Tensor, dropped: int) -> Tensor:
    scale = 256 / (256 - dropped)
    kernels = kernels_for(x.device, x.dtype)
    if kernels is not None:
        return kernels.dropout(x.contiguous(), bytes_N, dropped, scale)
    return x * ((bytes_N >= dropped).view(x.shape).to(x.dtype) * scale)
