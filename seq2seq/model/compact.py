"""A model for translating only: its matrices laid out once for many products, in fp32 or fewer bits.

Letters: R rows, I inputs of a layer, O outputs, B sentences, T steps, H hidden size, G = 3H the gates.

Training changes the weights at every update, so its products lay them out anew each time; here that is done once, which
makes the products of few rows up to twice as fast.

In 8 bits a number is a whole number from -127 to 127 times a scale. Weights have one scale per output (Wu et al. 2020,
section 3), inputs one per row: what a row gives depends on that row alone, as everywhere in search. The products are
oneDNN's, which multiply bytes and add up in 32 bits; all else stays in fp32. A processor without VNNI adds the products
of two neighbours in 16 bits first, which twice 255 · 127 overflows: there the scale of an output is as coarse as its
largest pair of neighbours asks, and the products are our own (kernels/products.c), where they are there.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from seq2seq.errors import DeviceError
from seq2seq.model.gru import GRU
from seq2seq.model.kernels import kernels_for, products_for
from seq2seq.model.known_words import KnownWords
from seq2seq.model.packed import PackedMatrix, can_pack, filled_up
from seq2seq.model.translation_model import TranslationModel

PRECISIONS = ("fp32", "bf16", "int8")
# A layer of fewer weights than this costs more to convert than to compute.
_SMALLEST = 2**14
# The products are fastest with inputs from 0 to 255, of which this stands for zero.
_ZERO = 128


def compact(model: TranslationModel, precision: str) -> TranslationModel:
    """A copy of the model for search, in the given precision; the model itself is left as it is.

    DeviceError where the machine has no products of bytes.
    """
    device = next(model.parameters()).device
    if precision == "int8" and not computes_in_int8(device):
        raise DeviceError("Precision int8 needs an x86 processor and PyTorch with oneDNN; use bf16 or fp32.")
    made = Int8Linear if precision == "int8" else PackedLinear
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    if made is PackedLinear and not can_pack(device, dtype):
        return model if precision == "fp32" else copy.deepcopy(model).eval().to(torch.bfloat16)
    smaller = copy.deepcopy(model).eval()
    if precision == "bf16":
        smaller = smaller.to(torch.bfloat16)
    _replace(smaller, made)
    _know_words(smaller)
    return smaller


def computes_in_int8(device: torch.device) -> bool:
    """Whether products of bytes are there."""
    return device.type == "cpu" and "onednn" in torch.backends.quantized.supported_engines


@functools.cache
def adds_in_32_bits() -> bool:
    """Whether products of bytes are added up without a limit that they can reach (VNNI). A trial tells."""
    width, largest = 64, 127
    weights_OI = torch.full((16, width), largest, dtype=torch.int8)
    found_RO = _products_of_bytes(
        torch.full((2, width), 255, dtype=torch.uint8),
        torch.ops.onednn.qlinear_prepack(weights_OI, None),
        torch.ones(16),
        torch.zeros(16, dtype=torch.int64),
    )
    return bool((found_RO == (255 - _ZERO) * largest * width).all())


def _sums_of_pairs(sizes_OI: Tensor) -> Tensor:
    """The sizes of neighbouring inputs' weights together: what is added in 16 bits, (O, half of I)."""
    even_OI = nn.functional.pad(sizes_OI, (0, sizes_OI.shape[1] % 2))
    return even_OI[:, 0::2] + even_OI[:, 1::2]


def _products_of_bytes(bytes_RI: Tensor, packed: Tensor, scale_O: Tensor, zero_O: Tensor) -> Tensor:
    y_RO: Tensor = torch.ops.onednn.qlinear_pointwise(
        bytes_RI, 1.0, _ZERO, packed, scale_O, zero_O, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return y_RO


_Maker = Callable[[Tensor, "Tensor | None"], Any]


def _replace(module: nn.Module, made: _Maker) -> None:
    for name, child in module.named_children():
        if sum(parameter.numel() for parameter in child.parameters()) < _SMALLEST:
            continue
        if isinstance(child, nn.Linear):
            setattr(module, name, made(child.weight, child.bias))
        elif isinstance(child, GRU):
            setattr(module, name, SteppedGRU(child, made))
        elif isinstance(child, nn.GRUCell):
            setattr(module, name, SteppedGRUCell(child, made))
        else:
            _replace(child, made)


def _know_words(model: TranslationModel) -> None:
    """Give the first layers a memory of what they make of each word."""
    scale, first, reader = model.embedding_scale, model.encoder.layers[0], model.decoder.word_reader
    inputs = [one.input for one in (first.forwards, first.backwards) if isinstance(one, SteppedGRU)]
    if len(inputs) == 2:
        model.known_source = KnownWords.worthwhile(model.source_embedding.weight.detach(), scale, inputs)
    if isinstance(reader, SteppedGRU):
        model.known_target = KnownWords.worthwhile(model.target_embedding.weight.detach(), scale, [reader.input])


class PackedLinear(nn.Module):
    """y = W x + b, with W laid out."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        super().__init__()
        self.weight_OI = weight_OI.detach().contiguous()
        self.bias_O = None if bias_O is None else bias_O.detach()
        self.out_features = len(weight_OI)
        self._matrix = PackedMatrix(self.weight_OI, self.bias_O, rows=1)

    def rows(self, outputs_o: Tensor) -> PackedLinear:
        """The layer for some of its outputs."""
        bias = None if self.bias_O is None else self.bias_O.index_select(0, outputs_o)
        return PackedLinear(self.weight_OI.index_select(0, outputs_o), bias)

    def forward(self, x: Tensor) -> Tensor:
        x_RI = x.reshape(-1, x.shape[-1]).to(self.weight_OI.dtype)
        return self._matrix.times(x_RI).view(*x.shape[:-1], -1)

    def gru_steps(self, inputs_BTG: Tensor, first_BH: Tensor) -> Tensor | None:
        """See PackedMatrix."""
        return self._matrix.gru_steps(inputs_BTG, first_BH)


class Int8Linear(nn.Module):
    """y = W x + b."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        super().__init__()
        largest_OI = weight_OI.detach().abs() if adds_in_32_bits() else _sums_of_pairs(weight_OI.detach().abs())
        scale_O = largest_OI.amax(dim=1).clamp(min=torch.finfo(torch.float32).tiny) / 127.0
        bytes_OI = (weight_OI.detach() / scale_O.unsqueeze(1)).round().to(torch.int8)
        self._set(bytes_OI, scale_O, torch.zeros_like(scale_O) if bias_O is None else bias_O.detach().clone())

    def _set(self, bytes_OI: Tensor, scale_O: Tensor, bias_O: Tensor) -> None:
        self.products = None if adds_in_32_bits() else products_for(bytes_OI.device, torch.float32)
        if self.products is None:
            self.packed = torch.ops.onednn.qlinear_prepack(bytes_OI, None)
        else:
            self.packed = self.products.lay_out_bytes(bytes_OI)
        self.bytes_OI, self.scale_O, self.bias_O = bytes_OI, scale_O, bias_O
        self.zero_O = torch.zeros(len(scale_O), dtype=torch.int64)
        self.out_features = len(scale_O)

    def rows(self, outputs_o: Tensor) -> Int8Linear:
        """The layer for some of its outputs."""
        part = Int8Linear.__new__(Int8Linear)
        nn.Module.__init__(part)
        part._set(*(every.index_select(0, outputs_o) for every in (self.bytes_OI, self.scale_O, self.bias_O)))
        return part

    def forward(self, x: Tensor) -> Tensor:
        x_RI = x.reshape(-1, x.shape[-1])
        if self.products is None:
            y_RO = self._by_onednn(x_RI)[: len(x_RI)]
        else:
            y_RO = self.products.multiply_bytes(x_RI, self.packed, self.scale_O, self.bias_O)
        return y_RO.view(*x.shape[:-1], -1)

    def gru_steps(self, inputs_BTG: Tensor, first_BH: Tensor) -> Tensor | None:
        """See PackedMatrix."""
        if self.products is None:
            return None
        return self.products.gru_steps_of_bytes(inputs_BTG, first_BH, self.packed, self.scale_O, self.bias_O)

    def _by_onednn(self, x_RI: Tensor) -> Tensor:
        x_RI = filled_up(x_RI)
        kernels = kernels_for(x_RI.device, x_RI.dtype)
        if kernels is not None:
            bytes_RI, scale_R = kernels.to_bytes(x_RI.contiguous())
        else:
            largest_R = x_RI.abs().amax(dim=1).clamp_(min=torch.finfo(torch.float32).tiny)
            moved_RI = (x_RI * (127.0 / largest_R).unsqueeze(1)).add_(_ZERO + 0.5)  # adding a half rounds
            bytes_RI, scale_R = moved_RI.to(torch.uint8), largest_R / 127.0
        y_RO = _products_of_bytes(bytes_RI, self.packed, self.scale_O, self.zero_O)
        if kernels is not None:
            kernels.rescale(y_RO, scale_R, self.bias_O)
        else:
            y_RO.mul_(scale_R.unsqueeze(1)).add_(self.bias_O)
        return y_RO


class SteppedGRU(nn.Module):
    """A GRU, step by step: the same equations as the model's own."""

    def __init__(self, gru: GRU, made: _Maker) -> None:
        super().__init__()
        weight_GI, weight_GH, bias_G, recurrent_bias_G = gru.parameters()
        self.input, self.recurrent = made(weight_GI, bias_G), made(weight_GH, recurrent_bias_G)
        self.hidden_size = gru.hidden_size

    def forward(self, x_BTI: Tensor, first_1BH: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.steps(self.input(x_BTI), first_1BH)

    def steps(self, inputs_BTG: Tensor, first_1BH: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The states, from what `input` makes of the tokens."""
        B = len(inputs_BTG)
        state_BH = inputs_BTG.new_zeros(B, self.hidden_size) if first_1BH is None else first_1BH[0]
        states_BTH: Tensor | None = self.recurrent.gru_steps(inputs_BTG, state_BH)
        if states_BTH is not None:
            return states_BTH, states_BTH[:, -1].unsqueeze(0)
        states = []
        for inputs_BG in inputs_BTG.unbind(1):
            state_BH = _next_state(inputs_BG, self.recurrent(state_BH), state_BH)
            states.append(state_BH)
        return torch.stack(states, dim=1), state_BH.unsqueeze(0)


class SteppedGRUCell(nn.Module):
    """One step of a GRU."""

    def __init__(self, cell: nn.GRUCell, made: _Maker) -> None:
        super().__init__()
        self.input, self.recurrent = made(cell.weight_ih, cell.bias_ih), made(cell.weight_hh, cell.bias_hh)

    def forward(self, x_BI: Tensor, state_BH: Tensor) -> Tensor:
        return _next_state(self.input(x_BI), self.recurrent(state_BH), state_BH)


def _next_state(inputs_BG: Tensor, recurrent_BG: Tensor, state_BH: Tensor) -> Tensor:
    kernels = kernels_for(state_BH.device, state_BH.dtype)
    if kernels is not None:
        return kernels.gru_next(inputs_BG, recurrent_BG, state_BH.contiguous())
    H = state_BH.shape[1]
    gates_BX = (inputs_BG[:, : 2 * H] + recurrent_BG[:, : 2 * H]).sigmoid_()
    candidate_BH = torch.addcmul(inputs_BG[:, 2 * H :], gates_BX[:, :H], recurrent_BG[:, 2 * H :]).tanh_()
    return torch.lerp(candidate_BH, state_BH, gates_BX[:, H:])
