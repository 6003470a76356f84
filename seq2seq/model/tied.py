"""One matrix for reading and for writing words (Press & Wolf 2017), with a gradient that is made once.

Most of its gradient comes from the output layer and covers the whole vocabulary; each batch of tokens that is looked up
adds to a few rows. Left to the engine, every lookup would fill, write and read a gradient of the whole vocabulary for
them, a sixth of an update's time on a processor. Here lookups leave their rows aside, and they are added to the output
layer's gradient when that has arrived.

Letters: B sentences, L tokens, V vocabulary, E embedding size.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seq2seq.model.kernels import kernels_for

_Rows = list[tuple[Tensor, Tensor, float]]


class TiedMatrix:
    """A matrix (V,E) for one forward pass: `whole_VE` for the output layer, `look_up` for tokens."""

    def __init__(self, weight_VE: Tensor) -> None:
        self._rows: _Rows = []
        self.whole_VE: Tensor = _Whole.apply(weight_VE, self._rows)  # type: ignore[no-untyped-call]

    def look_up(self, ids_BL: Tensor, scale: float) -> Tensor:
        """The tokens' vectors times `scale`, (B,L,E)."""
        vectors_BLE: Tensor = _Lookup.apply(self.whole_VE, ids_BL, scale, self._rows)  # type: ignore[no-untyped-call]
        return vectors_BLE


class _Whole(torch.autograd.Function):
    """The matrix itself. Backward it comes after all that used it, so by then all rows are there."""

    @staticmethod
    def forward(ctx: Any, weight_VE: Tensor, rows: _Rows) -> Tensor:
        ctx.rows = rows
        return weight_VE.view_as(weight_VE)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_VE: Tensor) -> tuple[Tensor, None]:
        for ids_BL, grad_BLE, scale in ctx.rows:
            _add_rows(grad_VE, ids_BL.flatten(), grad_BLE.flatten(0, -2), scale)
        ctx.rows.clear()
        return grad_VE, None


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, whole_VE: Tensor, ids_BL: Tensor, scale: float, rows: _Rows) -> Tensor:
        ctx.ids_BL, ctx.scale, ctx.rows = ids_BL, scale, rows
        return torch.nn.functional.embedding(ids_BL, whole_VE).mul_(scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BLE: Tensor) -> tuple[None, None, None, None]:
        ctx.rows.append((ctx.ids_BL, grad_BLE, ctx.scale))
        return None, None, None, None


def _add_rows(grad_VE: Tensor, ids_N: Tensor, rows_NE: Tensor, scale: float) -> None:
    kernels = kernels_for(grad_VE.device, rows_NE.dtype)
    if kernels is not None and grad_VE.dtype == torch.float32 and grad_VE.is_contiguous():
        kernels.add_rows(grad_VE, ids_N.contiguous(), rows_NE.contiguous(), scale)
    else:
        grad_VE.index_add_(0, ids_N, rows_NE.to(grad_VE.dtype), alpha=scale)
