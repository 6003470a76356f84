"""Products as the processor's library wants them: a matrix that many share, laid out once; rows in whole steps.

Letters: R rows, I inputs, O outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seq2seq.model.device import lacks_bf16
from seq2seq.model.kernels import products_for

_DTYPES = (torch.float32, torch.bfloat16)
# Laying a matrix out costs as much as some products with it.
_FEWEST_PRODUCTS = 4
_STEP = 64


class PackedMatrix:
    """y = x Wᵀ + b, for `times` products (None: for ever) of about `rows` rows each.

    oneDNN lays W out anew within every bf16 product, which for few rows takes as long as the product itself, and an
    fp32 product of few rows reads W better when it lies in blocks. W is laid out once: in fp32 for our own products
    (kernels/products.c), else for oneDNN's. Where there are neither, and where it would not pay, these are plain
    products.
    """

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None, *, rows: int, times: int | None = None) -> None:
        self.weight_OI, self.bias_O, self._for_ever = weight_OI, bias_O, times is None
        self._packed: Tensor | None = None
        self._products = products_for(weight_OI.device, weight_OI.dtype) if times is None else None
        if self._products is not None:
            self._packed = self._products.lay_out(weight_OI)
            return
        worthwhile = times is None or (times >= _FEWEST_PRODUCTS and weight_OI.dtype == torch.bfloat16)
        if worthwhile and weight_OI.dtype in _DTYPES and can_pack(weight_OI.device, weight_OI.dtype):
            self._packed = torch.ops.mkldnn._reorder_linear_weight(weight_OI.contiguous(), rows)

    def times(self, x_RI: Tensor) -> Tensor:
        """The product with some rows, (R,O)."""
        if self._products is not None and self._packed is not None:
            return self._products.multiply(x_RI, self._packed, len(self.weight_OI), self.bias_O)
        if self._packed is not None:
            rows_RI = filled_up(x_RI) if self._for_ever else x_RI.contiguous()
            product_RO: Tensor = torch.ops.mkldnn._linear_pointwise(rows_RI, self._packed, self.bias_O, "none", [], "")
            return product_RO[: len(x_RI)]
        return torch.nn.functional.linear(x_RI, self.weight_OI, self.bias_O)

    def gru_steps(self, inputs_BTG: Tensor, first_BH: Tensor) -> Tensor | None:
        """All steps (B,T,H) of a GRU whose recurrent matrix this is, where one function makes them; else None."""
        if self._products is None or self._packed is None or inputs_BTG.dtype != torch.float32:
            return None
        return self._products.gru_steps(inputs_BTG, first_BH, self._packed, self.bias_O)


def can_pack(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether matrices of this kind can be laid out here; in bf16 the processor must know it."""
    if products_for(device, dtype) is not None:
        return True
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    if not all(hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise")):
        return False
    return dtype != torch.bfloat16 or not lacks_bf16(device)


def whole_steps(rows: int) -> int:
    """So many rows or a few more: a library of products prepares itself anew for every number it meets."""
    return rows + -rows % _STEP


def filled_up(x_RI: Tensor) -> Tensor:
    """Rows and a few more, for a library that keeps what it prepares for every number of rows: a megabyte each.

    From eight rows on they come in eights, from 64 on in sixteens. A single row becomes two: it has a way of its own,
    which rounds otherwise, and what a row gives is to depend on it alone.
    """
    R = len(x_RI)
    more = 1 if R == 1 else -R % 16 if R >= _STEP else -R % 8 if R >= 8 else 0
    return torch.cat([x_RI, x_RI[:1].expand(more, -1)]) if more else x_RI.contiguous()


def column_sums(x_NG: Tensor) -> Tensor:
    """The sum over all rows, by a product with ones: in bf16 several times faster than a sum."""
    return (x_NG.new_ones(1, len(x_NG)) @ x_NG).squeeze(0)
