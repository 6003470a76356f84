"""What stands around a layer of GRUs: a way past it, and layer normalisation behind it; both are off by default.

A residual connection (Wu et al. 2016, section 3.1) adds what a layer has read to what it says, so that the gradient
reaches the layers below undiminished. Layer normalisation (Ba et al. 2016) brings the states of every position to mean
zero and deviation one, times a learnt gain and plus a learnt bias. Neither reaches into the recurrence, whose state
goes on from step to step as it is: all steps of a layer stay one fused call.
"""

from __future__ import annotations

from torch import Tensor, nn


class Surroundings(nn.Module):
    """For a stack of layers whose states have one width; the first layer, which reads another, has no way past it."""

    def __init__(self, width: int, layers: int, layer_norm: bool, residual: bool) -> None:
        super().__init__()
        self.residual = residual
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers if layer_norm else 0))

    def forward(self, number: int, states: Tensor, below: Tensor) -> Tensor:
        """What leaves layer `number`, counted from 0, with these states, when it read `below`, before dropout."""
        if self.residual and number:
            states = states + below
        return self.norms[number](states) if self.norms else states
