"""The compiled kernels compute what PyTorch's operations compute, and their absence is no error.

Letters: B sentences, T steps, I inputs, H hidden size, C tokens, V vocabulary, E embedding size.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from seq2seq.model import consistency, dropout, gru, kernels, loss, tied
from seq2seq.model.consistency import consistent_loss
from seq2seq.model.dropout import Dropout
from seq2seq.model.gru import GRU
from seq2seq.model.loss import output_loss
from seq2seq.model.packed import PackedMatrix
from seq2seq.model.tied import TiedMatrix

B, T, IN, H, V, E = 3, 5, 6, 20, 37, 8
BOTH = pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-6), (torch.bfloat16, 0.03)])


@pytest.fixture(autouse=True)
def compiled() -> Iterator[None]:
    if kernels.load() is None:
        pytest.skip("no C compiler here, or SEQ2SEQ_KERNELS=0")
    yield


def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (gru, loss, tied, dropout, consistency):
        monkeypatch.setattr(module, "kernels_for", lambda device, dtype: None)


def both_ways(monkeypatch: pytest.MonkeyPatch, compute: object) -> list[list[Tensor]]:
    with_them = compute()  # type: ignore[operator]
    with monkeypatch.context() as patch:
        without_kernels(patch)
        return [with_them, compute()]  # type: ignore[operator]


def agree(results: list[list[Tensor]], tolerance: float) -> None:
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@BOTH
def test_a_gru_layer_is_the_same_with_and_without_them(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, tolerance: float
) -> None:
    torch.manual_seed(1)
    layer, weights_BTH = GRU(IN, H), torch.randn(B, T, H)
    x_BTI = torch.randn(B, T, IN, requires_grad=True)
    first_1BH = torch.randn(1, B, H, requires_grad=True)

    def compute() -> list[Tensor]:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
            states_BTH, _ = layer(x_BTI, first_1BH)
        wanted = [x_BTI, first_1BH, *layer.parameters()]
        return [states_BTH, *torch.autograd.grad((states_BTH.float() * weights_BTH).sum(), wanted)]

    agree(both_ways(monkeypatch, compute), 2 * tolerance)


@BOTH
def test_the_loss_is_the_same_with_and_without_them(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, tolerance: float
) -> None:
    torch.manual_seed(1)
    leaves = [torch.randn(shape, requires_grad=True) for shape in ((B * T, E), (V, E), (V,))]
    gold_N = torch.randint(0, V, (B * T,))

    def compute() -> list[Tensor]:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
            summed, nll = output_loss(*leaves, gold_N, 0.1)
        return [summed / 100, nll / 100, *torch.autograd.grad(summed, leaves)]

    agree(both_ways(monkeypatch, compute), 2 * tolerance)


@BOTH
def test_two_readings_agree_the_same_with_and_without_them(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, tolerance: float
) -> None:
    torch.manual_seed(1)
    leaves = [torch.randn(shape, requires_grad=True) for shape in ((2, B * T, E), (V, E), (V,))]
    gold_N = torch.randint(0, V, (B * T,))

    def compute() -> list[Tensor]:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
            summed, nll = consistent_loss(*leaves, gold_N, 0.1, 3.0)
        return [summed / 100, nll / 100, *torch.autograd.grad(summed, leaves)]

    agree(both_ways(monkeypatch, compute), 4 * tolerance)


def test_dropout_is_the_same_to_the_bit_with_and_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    drop, x_BTE = Dropout(0.3).train(), torch.randn(B, T, E, requires_grad=True)

    def compute() -> list[Tensor]:
        torch.manual_seed(4)
        dropped_BTE = drop(x_BTE)
        return [dropped_BTE, *torch.autograd.grad(dropped_BTE.square().sum(), [x_BTE])]

    agree(both_ways(monkeypatch, compute), 0.0)


@pytest.mark.parametrize("with_them", [True, False])
def test_a_tied_matrix_gets_the_gradient_of_all_its_uses(monkeypatch: pytest.MonkeyPatch, with_them: bool) -> None:
    if not with_them:
        without_kernels(monkeypatch)
    weight_VE = torch.randn(V, E, requires_grad=True)
    source, target = torch.randint(0, V, (B, T)), torch.randint(0, V, (B, T + 1))
    factors_VE = torch.randn(V, E)
    ties = TiedMatrix(weight_VE)
    ours = ties.look_up(source, 3.0).square().sum() + (ties.whole_VE * factors_VE).sum()
    ours = ours + ties.look_up(target, 0.5).sin().sum()
    looked = torch.nn.functional.embedding
    theirs = (3.0 * looked(source, weight_VE)).square().sum() + (weight_VE * factors_VE).sum()
    theirs = theirs + (0.5 * looked(target, weight_VE)).sin().sum()
    torch.testing.assert_close(ours, theirs)
    (found_VE,), (expected_VE,) = torch.autograd.grad(ours, weight_VE), torch.autograd.grad(theirs, weight_VE)
    torch.testing.assert_close(found_VE, expected_VE, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_stays_so_and_is_noticed(number: float) -> None:
    x_NE, weight_VE, bias_V = torch.randn(4, E), torch.randn(V, E, requires_grad=True), torch.zeros(V)
    x_NE[2, 1] = number
    summed, _ = output_loss(x_NE, weight_VE, bias_V, torch.tensor([1, 2, 3, 4]), 0.1)
    assert not torch.isfinite(summed)
    layer, x_BTI = GRU(IN, H), torch.zeros(B, T, IN)
    x_BTI[1, 2, 3] = float("nan")
    states_BTH, _ = layer(x_BTI)
    assert states_BTH[1, 2:].isnan().any() and not states_BTH[0].isnan().any() and not states_BTH[1, :2].isnan().any()


@pytest.mark.parametrize("large", [50.0, 1e4, 1e30])
def test_large_numbers_saturate_and_do_not_overflow(large: float) -> None:
    layer, x_BTI = GRU(IN, H), large * torch.randn(B, T, IN)
    states_BTH, _ = layer(x_BTI)
    expected_BTH, _ = torch.nn.GRU.forward(layer, x_BTI)
    torch.testing.assert_close(states_BTH, expected_BTH, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_packed_matrix_gives_the_product_of_a_plain_one(dtype: torch.dtype) -> None:
    weight_OI, bias_O, x_RI = torch.randn(H, IN).to(dtype), torch.randn(H).to(dtype), torch.randn(B, IN).to(dtype)
    for bias in (bias_O, None):
        packed = PackedMatrix(weight_OI, bias, rows=B, times=9)
        expected = torch.nn.functional.linear(x_RI, weight_OI, bias)
        torch.testing.assert_close(packed.times(x_RI), expected, rtol=0.02, atol=0.02)


def test_without_a_compiler_there_are_no_kernels_and_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    assert kernels.load.__wrapped__() is None
    monkeypatch.setenv("CC", "false")  # one that fails
    assert kernels.load.__wrapped__() is None
    monkeypatch.delenv("CC")
    monkeypatch.setenv("SEQ2SEQ_KERNELS", "0")
    assert kernels.load.__wrapped__() is None


def test_they_are_compiled_once_into_a_folder_of_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kernels.load.__wrapped__() is not None
    (made,) = (tmp_path / "seq2seq" / "kernels").iterdir()
    assert made.suffix == ".so"
    monkeypatch.setattr(subprocess, "run", None)  # a second compilation would fail
    assert kernels.load.__wrapped__() is not None
    (tmp_path / "seq2seq" / "kernels").chmod(0o777)  # where others may write, nothing is loaded from
    assert kernels.load.__wrapped__() is None
