"""One GRU layer in one direction, which learns faster on a processor than PyTorch's own.

h_t = (1 - z_t) n_t + z_t h_{t-1}, with reset gate r, update gate z and candidate n = tanh(W x + r (U h)), as PyTorch
defines them (Cho et al. 2014, with the reset gate after the product, as cuDNN has it).

PyTorch's CPU layer leaves its backward pass to the engine: every step makes a gradient of the whole recurrent matrix
and adds it to the one before. Here the steps only carry the state's gradient back, and one product over all steps
gives the matrix its gradient. What stands between the products is one compiled function where the machine has a
compiler (kernels/), and PyTorch's operations elsewhere. Forward and backward are equal to PyTorch's but for rounding;
on a GPU, and where no gradient is wanted, it is PyTorch's layer itself.

Letters: B sentences, T steps, N = T·B rows, P the rows with some of zeros, to make whole steps, I input size, H hidden
size, G = 3H the gates in the order r, z, n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from seq2seq.model.device import autocast_dtype
from seq2seq.model.dropout import Dropout
from seq2seq.model.kernels import kernels_for
from seq2seq.model.packed import PackedMatrix, column_sums, whole_steps


class _Layer(torch.autograd.Function):
    """All steps of a layer: states (T,B,H) in `dtype`, from inputs, the first state and the weights in the order of
    nn.GRU's parameters."""

    @staticmethod
    def forward(
        ctx: Any,
        x_TBI: Tensor,
        first_BH: Tensor,
        weight_GI: Tensor,
        weight_GH: Tensor,
        bias_G: Tensor,
        recurrent_bias_G: Tensor,
        dtype: torch.dtype,
    ) -> Tensor:
        (T, B, _), H = x_TBI.shape, weight_GH.shape[1]
        N, P = T * B, whole_steps(T * B)
        cast_GI, cast_GH, cast_bias_G = weight_GI.to(dtype), weight_GH.to(dtype), recurrent_bias_G.to(dtype)
        x_PI = torch.empty((P, x_TBI.shape[2]), dtype=dtype)
        x_PI[:N].view(x_TBI.shape).copy_(x_TBI)
        x_PI[N:] = 0.0
        inputs_TBG = (x_PI @ cast_GI.t())[:N].view(T, B, 3 * H)
        wide_bias_G = bias_G.detach() if dtype == torch.float64 else bias_G.detach().float()
        states_PH = x_PI.new_empty(max(P, N + B), H)
        states_PH[N + B :] = 0.0
        states_TBH = states_PH[: N + B].view(T + 1, B, H)  # the first one included
        states_TBH[0] = first_BH
        gates_TBX = inputs_TBG.new_empty(T, B, 2 * H)  # r and z
        candidates_TBH, recurrent_TBH = (inputs_TBG.new_empty(T, B, H) for _ in range(2))
        weight = PackedMatrix(cast_GH, cast_bias_G, rows=B, times=T)
        steps = (kernels_for(inputs_TBG.device, dtype) or _PLAIN).gru_forward
        steps(weight, inputs_TBG, wide_bias_G, states_TBH, gates_TBX, candidates_TBH, recurrent_TBH)
        ctx.save_for_backward(x_PI, states_PH, gates_TBX, candidates_TBH, recurrent_TBH, cast_GI, cast_GH)
        ctx.x_dtype, ctx.first_dtype = x_TBI.dtype, first_BH.dtype
        return states_TBH[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_states_TBH: Tensor) -> tuple[Tensor | None, ...]:
        x_PI, states_PH, gates_TBX, candidates_TBH, recurrent_TBH, cast_GI, cast_GH = ctx.saved_tensors
        T, B, H = candidates_TBH.shape
        N, P = T * B, len(x_PI)
        states_TBH, grad_states_TBH = states_PH[: N + B].view(T + 1, B, H), grad_states_TBH.contiguous()
        grad_inputs_PG, grad_projected_PG = (x_PI.new_empty(P, 3 * H) for _ in range(2))
        grad_inputs_PG[N:], grad_projected_PG[N:] = 0.0, 0.0
        grad_inputs_TBG, grad_projected_TBG = (g[:N].view(T, B, 3 * H) for g in (grad_inputs_PG, grad_projected_PG))
        weight = PackedMatrix(cast_GH.t(), None, rows=B, times=T)
        steps = (kernels_for(gates_TBX.device, gates_TBX.dtype) or _PLAIN).gru_backward
        kept = (states_TBH, gates_TBX, candidates_TBH, recurrent_TBH)
        grad_BH = steps(weight, grad_states_TBH, *kept, grad_inputs_TBG, grad_projected_TBG)
        grad_x = (grad_inputs_PG @ cast_GI)[:N].view(T, B, -1).to(ctx.x_dtype) if ctx.needs_input_grad[0] else None
        grad_weights = (grad_inputs_PG.t() @ x_PI, grad_projected_PG.t() @ states_PH[:P])
        grad_biases = (column_sums(grad_inputs_PG), column_sums(grad_projected_PG))
        return grad_x, grad_BH.to(ctx.first_dtype), *grad_weights, *grad_biases, None


class _Plain:
    """The steps in PyTorch's operations: what kernels/ does where there is a compiler."""

    def gru_forward(
        self,
        weight: PackedMatrix,
        inputs_TBG: Tensor,
        bias_G: Tensor,
        states_TBH: Tensor,
        gates_TBX: Tensor,
        candidates_TBH: Tensor,
        recurrent_TBH: Tensor,
    ) -> None:
        H = states_TBH.shape[2]
        inputs_TBG += bias_G.to(inputs_TBG.dtype)
        for t, inputs_BG in enumerate(inputs_TBG):
            before_BH, gates_BX, recurrent_BH = states_TBH[t], gates_TBX[t], recurrent_TBH[t]
            projected_BG = weight.times(before_BH)
            torch.add(inputs_BG[:, : 2 * H], projected_BG[:, : 2 * H], out=gates_BX).sigmoid_()
            recurrent_BH.copy_(projected_BG[:, 2 * H :])
            candidate_BH = candidates_TBH[t]
            torch.addcmul(inputs_BG[:, 2 * H :], gates_BX[:, :H], recurrent_BH, out=candidate_BH).tanh_()
            torch.lerp(candidate_BH, before_BH, gates_BX[:, H:], out=states_TBH[t + 1])

    def gru_backward(
        self,
        weight: PackedMatrix,
        above_TBH: Tensor,
        states_TBH: Tensor,
        gates_TBX: Tensor,
        candidates_TBH: Tensor,
        recurrent_TBH: Tensor,
        grad_inputs_TBG: Tensor,
        grad_projected_TBG: Tensor,
    ) -> Tensor:
        T, _, H = above_TBH.shape
        reset_TBH, update_TBH = gates_TBX[..., :H], gates_TBX[..., H:]
        # What a change of the state means for each gate, before its squashing, for all steps at once.
        by_candidate_TBH = (1.0 - update_TBH) * (1.0 - candidates_TBH.square())
        by_update_TBH = (states_TBH[:-1] - candidates_TBH) * update_TBH * (1.0 - update_TBH)
        by_reset_TBH = recurrent_TBH * reset_TBH * (1.0 - reset_TBH)  # through the candidate
        grad_BH = torch.zeros_like(states_TBH[0])
        for t in reversed(range(T)):
            grad_BH = grad_BH + above_TBH[t]
            grad_BG, grad_candidate_BH = grad_projected_TBG[t], grad_inputs_TBG[t, :, 2 * H :]
            torch.mul(grad_BH, by_candidate_TBH[t], out=grad_candidate_BH)
            torch.mul(grad_candidate_BH, by_reset_TBH[t], out=grad_BG[:, :H])
            torch.mul(grad_BH, by_update_TBH[t], out=grad_BG[:, H : 2 * H])
            torch.mul(grad_candidate_BH, reset_TBH[t], out=grad_BG[:, 2 * H :])
            grad_BH = weight.times(grad_BG).add_(grad_BH * update_TBH[t])
        grad_inputs_TBG[..., : 2 * H] = grad_projected_TBG[..., : 2 * H]
        return grad_BH


_PLAIN = _Plain()


class GRU(nn.GRU):
    """nn.GRU of one layer, one direction, batch first: same parameters, same results.

    In training `drop_weights` sets a share of the recurrent weights to zero, the same at all steps (Merity et al. 2018,
    section 2): a dropout within the recurrence that leaves the steps as they are.
    """

    def __init__(self, input_size: int, hidden_size: int, dropped_weights: float = 0.0) -> None:
        super().__init__(input_size, hidden_size, batch_first=True)
        self.drop_weights = Dropout(dropped_weights)

    def forward(  # type: ignore[override]
        self, x_BTI: Tensor, first_1BH: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """States of all steps (B,T,H) and the last one (1,B,H); without `first_1BH` it begins from zeros."""
        slow = x_BTI.device.type != "cpu" or not torch.is_grad_enabled()
        if slow and not self.drop_weights.drops:
            states_BTH, last_1BH = super().forward(x_BTI, first_1BH)
            return states_BTH, last_1BH
        weight_GI, weight_GH, *biases = self.parameters()
        weights = [weight_GI, self.drop_weights(weight_GH), *biases]
        if first_1BH is None:
            first_1BH = x_BTI.new_zeros(1, len(x_BTI), self.hidden_size)
        if slow:  # has biases, one layer, no dropout between layers, training, one direction, batch first
            states_BTH, last_1BH = torch.gru(x_BTI, first_1BH, weights, True, 1, 0.0, True, False, True)
            return states_BTH, last_1BH
        dtype = autocast_dtype("cpu") or x_BTI.dtype
        with torch.autocast("cpu", enabled=False):
            states_TBH = _Layer.apply(  # type: ignore[no-untyped-call]
                x_BTI.transpose(0, 1), first_1BH[0], *weights, dtype
            )
        return states_TBH.transpose(0, 1), states_TBH[-1:]


class GRUCell(nn.GRUCell):
    """nn.GRUCell, with recurrent weights that may be dropped in training."""

    def __init__(self, input_size: int, hidden_size: int, dropped_weights: float = 0.0) -> None:
        super().__init__(input_size, hidden_size)
        self.drop_weights = Dropout(dropped_weights)

    def over_steps(self) -> Callable[[Tensor, Tensor], Tensor]:
        """The same for steps that are computed one after the other: they share the weights that are dropped."""
        if not self.drop_weights.drops:
            return self
        weight_GI, weight_GH, *biases = self.parameters()
        dropped_GH = self.drop_weights(weight_GH)
        return lambda x_BI, before_BH: torch.gru_cell(x_BI, before_BH, weight_GI, dropped_GH, *biases)


def stepped(layer: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    """The steps of a GRU whose inputs' products are made already; only a model for search has it (compact.py)."""
    steps: Callable[..., tuple[Tensor, Tensor]] = layer.steps  # type: ignore[assignment]
    return steps
