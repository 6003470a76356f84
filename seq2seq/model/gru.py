"""One GRU layer in one direction, which learns faster on a processor than PyTorch's own.

h_t = (1 - z_t) n_t + z_t h_{t-1}, with reset gate r, update gate z and candidate n = tanh(W x + r (U h)), as PyTorch
defines them (Cho et al. 2014, with the reset gate after the product, as cuDNN has it).

PyTorch's CPU layer leaves its backward pass to the engine: every step makes a gradient of the whole recurrent matrix
and adds it to the one before. Here the steps only carry the state's gradient back, and one product over all steps
gives the matrix its gradient. Forward and backward are equal to PyTorch's but for rounding; on a GPU, and where no
gradient is wanted, it is PyTorch's layer itself.

Letters: B sentences, T steps, I input size, H hidden size, G = 3H the gates in the order r, z, n.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from seq2seq.model.device import autocast_dtype


class _Recurrence(torch.autograd.Function):
    """All steps from the projected inputs: states (T,B,H)."""

    @staticmethod
    def forward(ctx: Any, inputs_TBG: Tensor, first_BH: Tensor, weight_GH: Tensor, bias_G: Tensor) -> Tensor:
        T, B, G = inputs_TBG.shape
        H = G // 3
        states_TBH = inputs_TBG.new_empty(T + 1, B, H)  # the first one included
        states_TBH[0] = first_BH
        gates_TBX = inputs_TBG.new_empty(T, B, 2 * H)  # r and z
        candidates_TBH, recurrent_TBH = (inputs_TBG.new_empty(T, B, H) for _ in range(2))
        projected_BG, weight_HG = inputs_TBG.new_empty(B, G), weight_GH.t()
        for t in range(T):
            torch.addmm(bias_G, states_TBH[t], weight_HG, out=projected_BG)
            gates_BX, candidate_BH, recurrent_BH = gates_TBX[t], candidates_TBH[t], recurrent_TBH[t]
            torch.add(inputs_TBG[t, :, : 2 * H], projected_BG[:, : 2 * H], out=gates_BX).sigmoid_()
            recurrent_BH.copy_(projected_BG[:, 2 * H :])
            torch.addcmul(inputs_TBG[t, :, 2 * H :], gates_BX[:, :H], recurrent_BH, out=candidate_BH).tanh_()
            torch.lerp(candidate_BH, states_TBH[t], gates_BX[:, H:], out=states_TBH[t + 1])
        ctx.save_for_backward(states_TBH, gates_TBX, candidates_TBH, recurrent_TBH, weight_GH)
        return states_TBH[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_states_TBH: Tensor) -> tuple[Tensor, ...]:
        states_TBH, gates_TBX, candidates_TBH, recurrent_TBH, weight_GH = ctx.saved_tensors
        T, B, H = candidates_TBH.shape
        reset_TBH, update_TBH = gates_TBX[..., :H], gates_TBX[..., H:]
        # What a change of the state means for each gate, before its squashing, for all steps at once.
        by_candidate_TBH = (1.0 - update_TBH) * (1.0 - candidates_TBH.square())
        by_update_TBH = (states_TBH[:-1] - candidates_TBH) * update_TBH * (1.0 - update_TBH)
        by_reset_TBH = recurrent_TBH * reset_TBH * (1.0 - reset_TBH)  # through the candidate
        grad_inputs_TBG = torch.empty((T, B, 3 * H), dtype=gates_TBX.dtype)
        grad_projected_TBG = torch.empty_like(grad_inputs_TBG)
        grad_BH = torch.zeros_like(states_TBH[0])
        for t in reversed(range(T)):
            grad_BH = grad_BH + grad_states_TBH[t]
            grad_BG, grad_candidate_BH = grad_projected_TBG[t], grad_inputs_TBG[t, :, 2 * H :]
            torch.mul(grad_BH, by_candidate_TBH[t], out=grad_candidate_BH)
            torch.mul(grad_candidate_BH, by_reset_TBH[t], out=grad_BG[:, :H])
            torch.mul(grad_BH, by_update_TBH[t], out=grad_BG[:, H : 2 * H])
            torch.mul(grad_candidate_BH, reset_TBH[t], out=grad_BG[:, 2 * H :])
            grad_BH = torch.addmm(grad_BH * update_TBH[t], grad_BG, weight_GH)
        grad_inputs_TBG[..., : 2 * H] = grad_projected_TBG[..., : 2 * H]
        flat_NG = grad_projected_TBG.view(T * B, 3 * H)
        grad_weight_GH = flat_NG.t() @ states_TBH[:-1].reshape(T * B, H)
        return grad_inputs_TBG, grad_BH, grad_weight_GH, flat_NG.sum(dim=0)


class GRU(nn.GRU):
    """nn.GRU of one layer, one direction, batch first: same parameters, same results."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size, batch_first=True)

    def forward(  # type: ignore[override]
        self, x_BTI: Tensor, first_1BH: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """States of all steps (B,T,H) and the last one (1,B,H); without `first_1BH` it begins from zeros."""
        if x_BTI.device.type != "cpu" or not torch.is_grad_enabled():
            states_BTH, last_1BH = super().forward(x_BTI, first_1BH)
            return states_BTH, last_1BH
        dtype = autocast_dtype("cpu") or x_BTI.dtype
        if first_1BH is None:
            first_1BH = x_BTI.new_zeros(1, len(x_BTI), self.hidden_size)
        with torch.autocast("cpu", enabled=False):
            weight_GI, weight_GH, bias_G, recurrent_bias_G = (weight.to(dtype) for weight in self.parameters())
            inputs_TBG = nn.functional.linear(x_BTI.to(dtype).transpose(0, 1).contiguous(), weight_GI, bias_G)
            states_TBH = _Recurrence.apply(  # type: ignore[no-untyped-call]
                inputs_TBG, first_1BH[0].to(dtype), weight_GH, recurrent_bias_G
            )
        return states_TBH.transpose(0, 1), states_TBH[-1:]
