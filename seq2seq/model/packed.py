"""Products as the processor's library wants them: a matrix that many share, laid out once; rows in whole steps.

Letters: R rows, I inputs, O outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seq2seq.model.device import lacks_bf16

_DTYPES = (torch.float32, torch.bfloat16)
# Laying a matrix out costs as much as some products with it.
_FEWEST_PRODUCTS = 4
_STEP = 64


class PackedMatrix:
    """y = x Wᵀ + b, for `times` products (None: for ever) of about `rows` rows each.

    oneDNN lays W out anew within every bf16 product, which for few rows takes as long as the product itself, and an
    fp32 product of few rows reads W better when it lies in blocks. Where PyTorch brings the operations for it, W is
    laid out once; elsewhere, and where it would not pay, these are plain products.
    """

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None, *, rows: int, times: int | None = None) -> None:
        self.weight_OI, self.bias_O = weight_OI, bias_O
        self._packed: Tensor | None = None
        worthwhile = times is None or (times >= _FEWEST_PRODUCTS and weight_OI.dtype == torch.bfloat16)
        if worthwhile and weight_OI.dtype in _DTYPES and can_pack(weight_OI.device, weight_OI.dtype):
            self._packed = torch.ops.mkldnn._reorder_linear_weight(weight_OI.contiguous(), rows)

    def times(self, x_RI: Tensor) -> Tensor:
        """The product with some rows, (R,O)."""
        if self._packed is not None:
            single = (
                len(x_RI) == 1
            )  # has a way of its own, which rounds otherwise: what a row gives depends on it alone
            rows_RI = x_RI.expand(2, -1) if single else x_RI
            product_RO: Tensor = torch.ops.mkldnn._linear_pointwise(
                rows_RI.contiguous(), self._packed, self.bias_O, "none", [], ""
            )
            return product_RO[:1] if single else product_RO
        return torch.nn.functional.linear(x_RI, self.weight_OI, self.bias_O)


def can_pack(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether matrices of this kind can be laid out here; in bf16 the processor must know it."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    if not all(hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise")):
        return False
    return dtype != torch.bfloat16 or not lacks_bf16(device)


def whole_steps(rows: int) -> int:
    """So many rows or a few more: a library of products prepares itself anew for every number it meets."""
    return rows + -rows % _STEP


def column_sums(x_NG: Tensor) -> Tensor:
    """The sum over all rows, by a product with ones: in bf16 several times faster than a sum."""
    return (x_NG.new_ones(1, len(x_NG)) @ x_NG).squeeze(0)
