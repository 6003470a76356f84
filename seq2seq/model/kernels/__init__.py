"""Compiled work for a processor: built by the machine's own C compiler, once, or not at all.

Between its matrix products a GRU (and a softmax over a vocabulary) does many small things to every number, and PyTorch
does each of them in an operation of its own that reads and writes everything anew. kernels.c does them in one go;
products.c makes the products of a search, which are small, and beams.c keeps its hypotheses. They take two seconds to
compile and are kept in the user's cache; where there is no compiler, or SEQ2SEQ_KERNELS=0 is set, `load` gives None and
the callers use PyTorch's operations, to the same results but for rounding.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from seq2seq.model.kernels.beams import Beams
from seq2seq.model.kernels.building import built
from seq2seq.model.kernels.products import Products

if TYPE_CHECKING:
    from seq2seq.model.packed import PackedMatrix

_SUFFIX = {torch.float32: "f32", torch.bfloat16: "bf16"}

_P, _N, _F = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
_ARGUMENTS = {
    "gru_step": [_N] * 3 + [_P] * 7,
    "gru_step_back": [_N] * 3 + [_P] * 9,
    "softmax_back": [_N] * 3 + [_F] + [_P] * 5,
    "consistency_back": [_N] * 3 + [_F] * 2 + [_P] * 6,
    "add_rows": [_N] * 2 + [_P] * 2 + [_F, _P],
    "dropout": [_N] * 2 + [_F] + [_P] * 3,
    "gru_next": [_N] * 3 + [_P] * 4,
    "best_words": [_N] * 4 + [_P] * 6,
    "to_bytes": [_N] * 2 + [_P] * 3,
    "rescale": [_N] * 2 + [_P] * 3,
    "scaled": [_N] * 2 + [_P] * 2 + [_F, _P],
}


class Kernels:
    """The functions of kernels.c, for contiguous tensors on the processor in fp32 or bf16; sums and biases are fp32."""

    def __init__(self, library: ctypes.CDLL) -> None:
        library.use_threads.argtypes, library.use_threads.restype = [ctypes.c_int64], None
        library.use_threads(torch.get_num_threads())
        self._of = {}
        for name, arguments in _ARGUMENTS.items():
            for dtype, suffix in _SUFFIX.items():
                function = getattr(library, f"{name}_{suffix}")
                function.argtypes, function.restype = arguments, None
                self._of[name, dtype] = function
        self.products, self.beams = Products.of(library), Beams(library)

    def gru_forward(
        self, weight: PackedMatrix, inputs_TBG: Tensor, bias_G: Tensor, states_TBH: Tensor, *kept_T: Tensor
    ) -> None:
        """All steps: states[0] is read; states[1:], gates, candidates and their recurrent part are written."""
        _, B, G = inputs_TBG.shape
        step = self._of["gru_step", inputs_TBG.dtype]
        first, rest = (inputs_TBG.data_ptr(), bias_G.data_ptr()), [one.data_ptr() for one in (states_TBH, *kept_T)]
        for t, before_BH in enumerate(states_TBH.unbind()[:-1]):
            projected_BG = weight.times(before_BH)
            step(t, B, G // 3, *first, projected_BG.data_ptr(), *rest)

    def gru_backward(self, weight: PackedMatrix, above_TBH: Tensor, states_TBH: Tensor, *tensors_T: Tensor) -> Tensor:
        """All steps: from gates, candidates, recurrent to grad_inputs and grad_projected; the first gradient."""
        _, B, H = above_TBH.shape
        back = self._of["gru_step_back", above_TBH.dtype]
        grad_BH, past_BH = torch.zeros_like(states_TBH[0]), torch.empty_like(states_TBH[0])
        pointers = [one.data_ptr() for one in (above_TBH, states_TBH, *tensors_T, past_BH)]
        for t, grad_projected_BG in reversed(list(enumerate(tensors_T[-1].unbind()))):
            back(t, B, H, grad_BH.data_ptr(), *pointers)
            grad_BH = weight.times(grad_projected_BG).add_(past_BH)
        return grad_BH

    def dropout(self, x: Tensor, bytes_N: Tensor, dropped: int, scale: float) -> Tensor:
        """x * scale where its random byte is at least `dropped`, else 0."""
        out = torch.empty_like(x)
        pointers = (bytes_N.data_ptr(), x.data_ptr(), out.data_ptr())
        self._of["dropout", x.dtype](x.numel(), dropped, scale, *pointers)
        return out

    def softmax_back(
        self, logits_CV: Tensor, bias_V: Tensor, gold_C: Tensor, real: int, gold_share: float
    ) -> tuple[Tensor, Tensor]:
        """Logits become their gradient in place; each token's log-sum and its gold word's logit, both (C) in fp32."""
        C, V = logits_CV.shape
        assert not C or 0 <= int(gold_C.min()) <= int(gold_C.max()) < V
        log_sums_C, gold_logits_C = torch.empty(C), torch.empty(C)
        gold_C = gold_C.contiguous()
        tensors = (gold_C, bias_V, logits_CV, log_sums_C, gold_logits_C)
        self._of["softmax_back", logits_CV.dtype](C, V, real, gold_share, *map(Tensor.data_ptr, tensors))
        return log_sums_C, gold_logits_C

    def consistency_back(
        self, logits_2CV: Tensor, bias_V: Tensor, gold_C: Tensor, real: int, gold_share: float, weight: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Two readings' logits become their gradients in place; log-sums (2,C), gold logits (2,C), divergences (C)."""
        _, C, V = logits_2CV.shape
        assert not C or 0 <= int(gold_C.min()) <= int(gold_C.max()) < V
        log_sums_2C, gold_logits_2C, apart_C = torch.empty(2, C), torch.empty(2, C), torch.empty(C)
        tensors = (gold_C.contiguous(), bias_V, logits_2CV, log_sums_2C, gold_logits_2C, apart_C)
        function = self._of["consistency_back", logits_2CV.dtype]
        function(C, V, real, gold_share, weight, *map(Tensor.data_ptr, tensors))
        return log_sums_2C, gold_logits_2C, apart_C

    def add_rows(self, out_VE: Tensor, ids_N: Tensor, rows_NE: Tensor, scale: float) -> None:
        """out[ids[n]] += scale * rows[n]; `out` is fp32."""
        pointers = (ids_N.data_ptr(), rows_NE.data_ptr(), scale, out_VE.data_ptr())
        self._of["add_rows", rows_NE.dtype](*rows_NE.shape, *pointers)

    def scaled(self, x_VE: Tensor, constant_E: Tensor, scale: float) -> Tensor:
        """(x - constant) * scale in fp32."""
        out_VE = torch.empty(x_VE.shape)
        pointers = (x_VE.data_ptr(), constant_E.data_ptr(), scale, out_VE.data_ptr())
        self._of["scaled", x_VE.dtype](*x_VE.shape, *pointers)
        return out_VE

    def gru_next(self, inputs_BG: Tensor, projected_BG: Tensor, before_BH: Tensor) -> Tensor:
        """The state after one step, (B,H); the rows of the inputs may lie apart."""
        after_BH = torch.empty_like(before_BH)
        tensors = (inputs_BG, projected_BG, before_BH, after_BH)
        assert inputs_BG.stride(1) == 1
        self._of["gru_next", before_BH.dtype](*before_BH.shape, inputs_BG.stride(0), *map(Tensor.data_ptr, tensors))
        return after_BH

    def best_words(
        self, logit_RV: Tensor, count: int, never: Sequence[int], own: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor]:
        """The best words' log-probabilities and ids, (R,C); see kernels_of.h. The logits may be changed."""
        R, V = logit_RV.shape
        best_RC, word_RC = torch.empty((R, count)), torch.empty((R, count), dtype=torch.int64)
        banned = (ctypes.c_int64 * len(never))(*never)
        held = () if own is None else tuple(one.contiguous() for one in own)  # until the call is over
        owned: list[int | None] = [one.data_ptr() for one in held] if held else [None, None]
        pointers = map(Tensor.data_ptr, (logit_RV, best_RC, word_RC))
        self._of["best_words", logit_RV.dtype](R, V, count, len(never), ctypes.addressof(banned), *owned, *pointers)
        return best_RC, word_RC

    def to_bytes(self, x_RI: Tensor) -> tuple[Tensor, Tensor]:
        """Rows as bytes around 128 (R,I), and each row's scale (R)."""
        bytes_RI, scale_R = torch.empty(x_RI.shape, dtype=torch.uint8), torch.empty(len(x_RI))
        self._of["to_bytes", x_RI.dtype](*x_RI.shape, *map(Tensor.data_ptr, (x_RI, bytes_RI, scale_R)))
        return bytes_RI, scale_R

    def rescale(self, y_RO: Tensor, scale_R: Tensor, bias_O: Tensor) -> None:
        """y = y * the row's scale + bias, in place."""
        self._of["rescale", y_RO.dtype](*y_RO.shape, *map(Tensor.data_ptr, (scale_R, bias_O, y_RO)))


def kernels_for(device: torch.device, dtype: torch.dtype) -> Kernels | None:
    """The kernels, if they are there and made for such numbers on such a device."""
    return load() if device.type == "cpu" and dtype in _SUFFIX else None


def products_for(device: torch.device, dtype: torch.dtype) -> Products | None:
    """Products with matrices that are laid out, if they are there for such numbers on such a device."""
    kernels = _in_fp32(device, dtype)
    return None if kernels is None else kernels.products


def beams_for(device: torch.device, dtype: torch.dtype, slots: int) -> Beams | None:
    """What keeps hypotheses between two steps, if it is there for so many of a sentence on such a device."""
    kernels = _in_fp32(device, dtype)
    return None if kernels is None or slots > kernels.beams.most_slots else kernels.beams


def _in_fp32(device: torch.device, dtype: torch.dtype) -> Kernels | None:
    return load() if device.type == "cpu" and dtype == torch.float32 else None


@functools.cache
def load() -> Kernels | None:
    """The kernels of this machine, compiled now if they never were; None where that cannot be done."""
    if os.environ.get("SEQ2SEQ_KERNELS") == "0":
        return None
    with contextlib.suppress(OSError, subprocess.SubprocessError, AttributeError):
        return Kernels(ctypes.CDLL(str(built())))
    return None
