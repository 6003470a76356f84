"""The encoder: a bidirectional GRU that reads the source sentence from both ends.

Letters: B sentences, S source tokens, E embedding size, D = H/2 the size of one direction, H the width of the memory.

Padding never matters. Sentences are padded at their end, so a forward GRU has read every real token before the first
padded one. The backward GRU gets each sentence turned round within its own length, padding left where it is, so it too
reads real tokens first. No packing is needed, and both directions are one fused call over all steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from seq2seq.model.dropout import Dropout
from seq2seq.model.gru import GRU, stepped
from seq2seq.model.surroundings import Surroundings


@dataclass(frozen=True)
class Encoded:
    """What the encoder hands to the decoder: one memory vector per source token, a summary of the sentence, and the
    embedded tokens themselves."""

    memory_BSH: Tensor
    summary_BH: Tensor
    mask_BS: Tensor
    embedded_BSE: Tensor


def turned_round(lengths_B: Tensor, S: int) -> Tensor:
    """Positions that reverse each row within its length and leave padding in place: its own inverse, (B,S)."""
    position_1S = torch.arange(S, device=lengths_B.device).unsqueeze(0)
    length_B1 = lengths_B.unsqueeze(1)
    return torch.where(position_1S < length_B1, length_B1 - 1 - position_1S, position_1S)


class _Turn(torch.autograd.Function):
    """The tokens of each sentence in the order of `turn_BS`, which is its own inverse: the gradient turns the same way.

    PyTorch knows of no inverse; its gradient fills zeros and adds to them, number by number.
    """

    @staticmethod
    def forward(ctx: Any, x_BSI: Tensor, turn_BS: Tensor) -> Tensor:
        ctx.save_for_backward(turn_BS)
        return _turn(x_BSI, turn_BS)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BSI: Tensor) -> tuple[Tensor, None]:
        (turn_BS,) = ctx.saved_tensors
        return _turn(grad_BSI, turn_BS), None


def _turn(x_BSI: Tensor, turn_BS: Tensor) -> Tensor:
    B, S, _ = x_BSI.shape
    row_B1 = torch.arange(0, B * S, S, device=turn_BS.device).unsqueeze(1)
    return x_BSI.flatten(0, 1).index_select(0, (row_B1 + turn_BS).flatten()).view(x_BSI.shape)


class BidirectionalLayer(nn.Module):
    """One layer of two GRUs, each of half the width, whose states are concatenated (Schuster & Paliwal 1997)."""

    def __init__(self, input_size: int, hidden_size: int, dropped_weights: float) -> None:
        super().__init__()
        self.forwards = GRU(input_size, hidden_size // 2, dropped_weights)
        self.backwards = GRU(input_size, hidden_size // 2, dropped_weights)

    def forward(
        self, x_BSI: Tensor, turn_BS: Tensor, last_B: Tensor, made_BSX: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """States of all positions (B,S,H) and the state in which each direction has read the whole sentence (B,H)."""
        if made_BSX is None:
            forwards_BSD, _ = self.forwards(x_BSI)
            turned_BSD, _ = self.backwards(_Turn.apply(x_BSI, turn_BS))  # type: ignore[no-untyped-call]
        else:
            first_BSG, second_BSG = made_BSX.chunk(2, dim=2)
            forwards_BSD, _ = stepped(self.forwards)(first_BSG)
            turned_BSD, _ = stepped(self.backwards)(_turn(second_BSG, turn_BS))
        states_BSH = torch.cat([forwards_BSD, _Turn.apply(turned_BSD, turn_BS)], dim=2)  # type: ignore[no-untyped-call]
        row_B = torch.arange(x_BSI.shape[0], device=x_BSI.device)
        summary_BH = torch.cat([forwards_BSD[row_B, last_B], turned_BSD[row_B, last_B]], dim=1)
        return states_BSH, summary_BH


class Encoder(nn.Module):
    """Bidirectional GRU layers over the embedded source (Bahdanau et al. 2015, section 3.2), dropout between layers."""

    def __init__(
        self,
        embedding_size: int,
        hidden_size: int,
        layers: int,
        dropout: float,
        *,
        variational: bool = False,
        layer_norm: bool = False,
        residual: bool = False,
        dropped_weights: float = 0.0,
    ) -> None:
        super().__init__()
        sizes = [embedding_size] + [hidden_size] * (layers - 1)
        self.layers = nn.ModuleList(BidirectionalLayer(size, hidden_size, dropped_weights) for size in sizes)
        self.surroundings = Surroundings(hidden_size, layers, layer_norm, residual)
        self.dropout = Dropout(dropout, variational)

    def forward(self, embedded_BSE: Tensor, mask_BS: Tensor, made_BSX: Tensor | None = None) -> Encoded:
        """Read the sources. `made_BSX` is what the two GRUs of the first layer make of the words, where that is known
        already (known_words.py)."""
        lengths_B = mask_BS.sum(dim=1)
        turn_BS = turned_round(lengths_B, mask_BS.shape[1])
        last_B = (lengths_B - 1).clamp(min=0)
        states, summary_BH = embedded_BSE, embedded_BSE
        for number, layer in enumerate(self.layers):
            below = states
            if number:
                states = self.dropout(states)
            states, summary_BH = layer(states, turn_BS, last_B, None if number else made_BSX)
            states = self.surroundings(number, states, below)
        return Encoded(self.dropout(states), summary_BH, mask_BS, embedded_BSE)
