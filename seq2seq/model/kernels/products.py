"""Products with matrices that are laid out once, by products.c: fast with few rows, and for a row always the same.

Letters: R rows, I inputs, O outputs, N panels, P outputs of a panel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor, nn

_P, _N = ctypes.c_void_p, ctypes.c_int64
_BYTE_PANEL, _GROUP = 16, 4


class Products:
    """The functions of products.c, in fp32 on the processor."""

    def __init__(self, library: ctypes.CDLL, panel: int) -> None:
        self.panel, self._multiply, self._multiply_bytes = panel, library.multiply, library.multiply_bytes
        self._multiply.argtypes, self._multiply.restype = [_N] * 3 + [_P] * 4, None
        self._multiply_bytes.argtypes, self._multiply_bytes.restype = [_N] * 3 + [_P] * 6, None
        self._multiply_each = library.multiply_each
        self._multiply_each.argtypes = [_N] * 6 + [_P] + [_N] * 3 + [_P] + [_N] * 3 + [_P]
        self._multiply_each.restype = None
        self._gru_steps, self._gru_steps_of_bytes = library.gru_steps, library.gru_steps_of_bytes
        self._gru_steps.argtypes, self._gru_steps.restype = [_N] * 5 + [_P] * 6, None
        self._gru_steps_of_bytes.argtypes, self._gru_steps_of_bytes.restype = [_N] * 5 + [_P] * 8, None

    @classmethod
    def of(cls, library: ctypes.CDLL) -> Products | None:
        """None for a processor that products.c has no instructions for, or a compiler that could not read it."""
        if not hasattr(library, "panel"):
            return None
        library.panel.argtypes, library.panel.restype = [], _N
        panel = library.panel()
        return cls(library, panel) if panel else None

    def lay_out(self, weight_OI: Tensor) -> Tensor:
        """A matrix as `multiply` reads it, (N,I,P)."""
        O, I = weight_OI.shape  # noqa: E741
        even_OI = nn.functional.pad(weight_OI.detach(), (0, 0, 0, -O % self.panel))
        return even_OI.view(-1, self.panel, I).transpose(1, 2).contiguous()

    def multiply(self, x_RI: Tensor, panels_NIP: Tensor, outputs: int, bias_O: Tensor | None) -> Tensor:
        """x Wᵀ + bias, (R,O)."""
        x_RI = x_RI.contiguous()
        R, I = x_RI.shape  # noqa: E741
        assert x_RI.dtype == torch.float32 and panels_NIP.shape[1] == I
        y_RO = torch.empty(R, outputs)
        bias = None if bias_O is None else bias_O.data_ptr()
        self._multiply(R, I, outputs, x_RI.data_ptr(), panels_NIP.data_ptr(), bias, y_RO.data_ptr())
        return y_RO

    def lay_out_bytes(self, bytes_OI: Tensor) -> tuple[Tensor, Tensor]:
        """A matrix of bytes as `multiply_bytes` reads it: in panels, by groups of inputs; and its sums (O,).

        Two neighbouring inputs of an output may be 128 together, at the most.
        """
        O, I = bytes_OI.shape  # noqa: E741
        even_OI = nn.functional.pad(bytes_OI, (0, -I % _GROUP, 0, -O % _BYTE_PANEL))
        panels = even_OI.view(len(even_OI) // _BYTE_PANEL, _BYTE_PANEL, -1, _GROUP).transpose(1, 2).contiguous()
        return panels, 128 * bytes_OI.sum(dim=1, dtype=torch.int32)

    def multiply_bytes(self, x_RI: Tensor, laid_out: tuple[Tensor, Tensor], scale_O: Tensor, bias_O: Tensor) -> Tensor:
        """The same with rows rounded to bytes, each with a scale of its own, (R,O)."""
        x_RI, (panels, centre_O) = x_RI.contiguous(), laid_out
        R, I = x_RI.shape  # noqa: E741
        assert x_RI.dtype == torch.float32
        assert panels.shape[1] == -(-I // _GROUP)
        y_RO = torch.empty(R, len(scale_O))
        tensors = (x_RI, panels, centre_O, scale_O, bias_O, y_RO)
        self._multiply_bytes(R, I, len(scale_O), *map(Tensor.data_ptr, tensors))
        return y_RO

    def multiply_each(self, x_BNRI: Tensor, w_BNIO: Tensor) -> Tensor:
        """x W for each sentence and head, (B,N,R,O). W may be the transpose of what lies in memory."""
        B, N, R, I = x_BNRI.shape  # noqa: E741
        transposed = w_BNIO.stride(3) != 1
        if x_BNRI.stride(3) != 1:
            x_BNRI = x_BNRI.contiguous()
        if transposed and w_BNIO.stride(2) != 1:
            w_BNIO, transposed = w_BNIO.contiguous(), False
        assert x_BNRI.dtype == w_BNIO.dtype == torch.float32
        assert w_BNIO.shape[:3] == (B, N, I)
        y_BNRO = torch.empty(B, N, R, w_BNIO.shape[3])
        x, w = (x_BNRI.data_ptr(), *x_BNRI.stride()[:3]), (w_BNIO.data_ptr(), *w_BNIO.stride()[:2])
        apart = w_BNIO.stride(3 if transposed else 2)
        self._multiply_each(B, N, R, I, y_BNRO.shape[3], transposed, *x, *w, apart, y_BNRO.data_ptr())
        return y_BNRO

    def gru_steps(self, inputs_BTG: Tensor, first_BH: Tensor, panels_NIP: Tensor, bias_G: Tensor | None) -> Tensor:
        """All steps of a GRU (B,T,H), from its inputs' products and the recurrent matrix."""
        bias = None if bias_G is None else bias_G.data_ptr()
        return _steps(self._gru_steps, inputs_BTG, first_BH, panels_NIP.data_ptr(), bias)

    def gru_steps_of_bytes(
        self, inputs_BTG: Tensor, first_BH: Tensor, laid_out: tuple[Tensor, Tensor], scale_G: Tensor, bias_G: Tensor
    ) -> Tensor:
        """The same with a matrix of bytes."""
        matrix = map(Tensor.data_ptr, (*laid_out, scale_G, bias_G))
        return _steps(self._gru_steps_of_bytes, inputs_BTG, first_BH, *matrix)


def _steps(function: Callable[..., None], inputs_BTG: Tensor, first_BH: Tensor, *matrix: int | None) -> Tensor:
    (B, T, G), H = inputs_BTG.shape, first_BH.shape[1]
    if inputs_BTG.stride(2) != 1:
        inputs_BTG = inputs_BTG.contiguous()
    first_BH = first_BH.contiguous()
    assert inputs_BTG.dtype == first_BH.dtype == torch.float32 and G == 3 * H and len(first_BH) == B
    projected_BG, states_TBH = torch.empty(B, G), torch.empty(T, B, H)
    read = (inputs_BTG.data_ptr(), first_BH.data_ptr())
    function(T, B, H, *inputs_BTG.stride()[:2], *read, *matrix, projected_BG.data_ptr(), states_TBH.data_ptr())
    return states_TBH.transpose(0, 1)
