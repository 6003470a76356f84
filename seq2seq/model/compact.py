"""A model for translating only, in fewer bits: bfloat16, or weights and inputs of 8 bits.

Letters: R rows, I inputs of a layer, O outputs, B sentences, T steps, H hidden size, G = 3H the gates.

In 8 bits a number is a whole number from -127 to 127 times a scale. Weights have one scale per output (Wu et al. 2020,
section 3), inputs one per row: what a row gives depends on that row alone, as everywhere in search. The products are
oneDNN's, which multiply bytes and add up in 32 bits; all else stays in fp32.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from seq2seq.errors import DeviceError
from seq2seq.model.gru import GRU
from seq2seq.model.translation_model import TranslationModel

PRECISIONS = ("fp32", "bf16", "int8")
# A layer of fewer weights than this costs more to convert than to compute.
_SMALLEST = 2**14


def compact(model: TranslationModel, precision: str) -> TranslationModel:
    """The model in the given precision, for search; the model itself is left as it is (fp32 is the model itself).

    DeviceError where the machine has no products of bytes.
    """
    if precision == "fp32":
        return model
    smaller = copy.deepcopy(model).eval()
    if precision == "bf16":
        return smaller.to(torch.bfloat16)
    if not computes_in_int8(next(model.parameters()).device):
        raise DeviceError("Precision int8 needs an x86 processor and PyTorch with oneDNN; use bf16 or fp32.")
    _replace(smaller)
    return smaller


def computes_in_int8(device: torch.device) -> bool:
    """Whether products of bytes are there."""
    return device.type == "cpu" and "onednn" in torch.backends.quantized.supported_engines


def _replace(module: nn.Module) -> None:
    for name, child in module.named_children():
        weights = sum(parameter.numel() for parameter in child.parameters())
        made = _MADE_OF.get(type(child))
        if made is None:
            _replace(child)
        elif weights >= _SMALLEST:
            setattr(module, name, made(child))


class Int8Linear(nn.Module):
    """y = W x + b."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        super().__init__()
        scale_O = weight_OI.detach().abs().amax(dim=1).clamp(min=torch.finfo(torch.float32).tiny) / 127.0
        bytes_OI = (weight_OI.detach() / scale_O.unsqueeze(1)).round().to(torch.int8)
        self._set(bytes_OI, scale_O, None if bias_O is None else bias_O.detach().clone())

    def _set(self, bytes_OI: Tensor, scale_O: Tensor, bias_O: Tensor | None) -> None:
        self.packed = torch.ops.onednn.qlinear_prepack(bytes_OI, None)
        self.bytes_OI, self.scale_O, self.bias_O = bytes_OI, scale_O, bias_O
        self.zero_O = torch.zeros(len(scale_O), dtype=torch.int64)
        self.out_features = len(scale_O)

    def rows(self, outputs_o: Tensor) -> Int8Linear:
        """The layer for some of its outputs."""
        part = Int8Linear.__new__(Int8Linear)
        nn.Module.__init__(part)
        bias = None if self.bias_O is None else self.bias_O.index_select(0, outputs_o)
        part._set(self.bytes_OI.index_select(0, outputs_o), self.scale_O.index_select(0, outputs_o), bias)
        return part

    @classmethod
    def of(cls, layer: nn.Linear) -> Int8Linear:
        return cls(layer.weight, layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        x_RI = x.reshape(-1, x.shape[-1])
        largest_R1 = x_RI.abs().amax(dim=1, keepdim=True).clamp_(min=torch.finfo(torch.float32).tiny)
        # The kernels are fastest with bytes from 0 to 255, so 128 stands for zero; adding a half rounds.
        bytes_RI = (x_RI * (127.0 / largest_R1)).add_(128.5).to(torch.uint8)
        y_RO: Tensor = torch.ops.onednn.qlinear_pointwise(
            bytes_RI, 1.0, 128, self.packed, self.scale_O, self.zero_O, None, 1.0, 0, torch.float32, "none", [], ""
        )
        y_RO.mul_(largest_R1 / 127.0)
        if self.bias_O is not None:
            y_RO += self.bias_O
        return y_RO.view(*x.shape[:-1], -1)


class Int8GRU(nn.Module):
    """A GRU, step by step: the same equations as the model's own."""

    def __init__(self, gru: GRU) -> None:
        super().__init__()
        weight_GI, weight_GH, bias_G, recurrent_bias_G = gru.parameters()
        self.input = Int8Linear(weight_GI, bias_G)
        self.recurrent = Int8Linear(weight_GH, recurrent_bias_G)
        self.hidden_size = gru.hidden_size

    def forward(self, x_BTI: Tensor, first_1BH: Tensor | None = None) -> tuple[Tensor, Tensor]:
        state_BH = x_BTI.new_zeros(len(x_BTI), self.hidden_size) if first_1BH is None else first_1BH[0]
        states = []
        for inputs_BG in self.input(x_BTI).unbind(1):
            state_BH = _next_state(inputs_BG, self.recurrent(state_BH), state_BH)
            states.append(state_BH)
        return torch.stack(states, dim=1), state_BH.unsqueeze(0)


class Int8GRUCell(nn.Module):
    """One step of a GRU."""

    def __init__(self, cell: nn.GRUCell) -> None:
        super().__init__()
        self.input = Int8Linear(cell.weight_ih, cell.bias_ih)
        self.recurrent = Int8Linear(cell.weight_hh, cell.bias_hh)

    def forward(self, x_BI: Tensor, state_BH: Tensor) -> Tensor:
        return _next_state(self.input(x_BI), self.recurrent(state_BH), state_BH)


def _next_state(inputs_BG: Tensor, recurrent_BG: Tensor, state_BH: Tensor) -> Tensor:
    H = state_BH.shape[1]
    gates_BX = (inputs_BG[:, : 2 * H] + recurrent_BG[:, : 2 * H]).sigmoid_()
    candidate_BH = torch.addcmul(inputs_BG[:, 2 * H :], gates_BX[:, :H], recurrent_BG[:, 2 * H :]).tanh_()
    return torch.lerp(candidate_BH, state_BH, gates_BX[:, H:])


_MADE_OF: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
    nn.Linear: Int8Linear.of,
    GRU: Int8GRU,
    nn.GRUCell: Int8GRUCell,
}
