"""A matrix that many small products share, laid out once as the processor's library wants it.

Letters: R rows, I inputs, O outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Laying a matrix out costs as much as some products with it.
_FEWEST_PRODUCTS = 4


class PackedMatrix:
    """y = x Wᵀ + b, for `times` products of `rows` rows each.

    oneDNN lays W out anew within every bf16 product, which for few rows takes as long as the product itself. Where
    PyTorch brings its operations for that, it is done once; elsewhere, and in fp32, where the layout is of no use,
    these are plain products.
    """

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None, *, rows: int, times: int) -> None:
        self.weight_OI, self.bias_O = weight_OI, bias_O
        self._packed: Tensor | None = None
        if times >= _FEWEST_PRODUCTS and weight_OI.dtype == torch.bfloat16 and _can_pack(weight_OI.device):
            self._packed = torch.ops.mkldnn._reorder_linear_weight(weight_OI.contiguous(), rows)

    def times(self, x_RI: Tensor) -> Tensor:
        """The product with some rows, (R,O)."""
        if self._packed is not None:
            product: Tensor = torch.ops.mkldnn._linear_pointwise(x_RI, self._packed, self.bias_O, "none", [], "")
            return product
        return torch.nn.functional.linear(x_RI, self.weight_OI, self.bias_O)


def _can_pack(device: torch.device) -> bool:
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    return all(hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise"))
