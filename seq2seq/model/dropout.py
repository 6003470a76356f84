"""Dropout (Srivastava et al. 2014), with random numbers that cost little on a processor.

On a CPU most of dropout's time goes into drawing one random number per activation. Here one 64-bit draw decides eight
activations by a byte each, so the share dropped is rounded to the nearest 1/256, and what stays is scaled by exactly
that rounded share. GPUs draw fast enough; there it is PyTorch's own dropout.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Sets a share of the activations to zero in training and scales the others up; does nothing in evaluation."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self.dropped = min(255, round(share * 256))  # of 256

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.dropped:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.share)
        draws = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        keep = (draws.view(torch.uint8)[: x.numel()] >= self.dropped).view(x.shape)
        return x * (keep.to(x.dtype) * (256 / (256 - self.dropped)))

    def extra_repr(self) -> str:
        return f"share={self.share}"
