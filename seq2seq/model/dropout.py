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

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Sets a share of the activations to zero in training and scales the others up; does nothing in evaluation.

    `variational`: what is dropped of (B,T,X) is the same at all T steps of a sentence.
    """

    def __init__(self, share: float, variational: bool = False) -> None:
        super().__init__()
        self.share, self.variational = share, variational
        self.dropped = min(255, round(share * 256))  # of 256

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.dropped:
            return x
        if self.variational and x.dim() == 3:
            return x * self._drop(torch.ones_like(x[:, :1]))
        return self._drop(x)

    def over_steps(self) -> Callable[[Tensor], Tensor]:
        """The same for steps (B,X) that are computed one after the other; variational, they share the first's mask."""
        if not (self.variational and self.training and self.dropped):
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
        keep = (draws.view(torch.uint8)[: x.numel()] >= self.dropped).view(x.shape)
        return x * (keep.to(x.dtype) * (256 / (256 - self.dropped)))

    def extra_repr(self) -> str:
        return f"share={self.share}" + (", variational" if self.variational else "")
