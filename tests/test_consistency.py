"""Claims about R-Drop: its loss is what the paper's formula gives, its gradient is right, two readings differ.

Letters: N real target tokens, E embedding size, V vocabulary.
"""

from __future__ import annotations

import pytest
import torch
from test_translation_model import batch, model
from torch import Tensor
from torch.nn import functional as F

from seq2seq.model import consistency, packed
from seq2seq.model.consistency import consistent_loss
from seq2seq.model.loss import output_loss
from seq2seq.model.regularisation import Regularisation

N, E, V = 23, 6, 11
# Numbers in a chunk and rows in a step: all tokens at once, one at a time, chunks that do and do not divide N.
each_chunking = pytest.mark.parametrize(("chunk", "step"), [(2**22, 64), (1, 1), (10 * V, 1), (16 * V, 4)])


def readings() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x_2NE, weight_VE, bias_V = (
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((2, N, E), (V, E), (V,))
    )
    return x_2NE, weight_VE, bias_V, torch.randint(V, (N,), generator=generator)


def by_the_formula(
    x_2NE: Tensor, weight_VE: Tensor, bias_V: Tensor, gold_N: Tensor, smoothing: float, strength: float
) -> Tensor:
    """Half of equation 4, with PyTorch's own parts."""
    first_NV, second_NV = F.linear(x_2NE, weight_VE, bias_V).unbind()
    ours = sum(F.cross_entropy(x, gold_N, reduction="sum", label_smoothing=smoothing) for x in (first_NV, second_NV))
    p_NV, q_NV = first_NV.log_softmax(1), second_NV.log_softmax(1)
    apart = F.kl_div(p_NV, q_NV, reduction="sum", log_target=True)
    apart = (apart + F.kl_div(q_NV, p_NV, reduction="sum", log_target=True)) / 2
    return (ours + strength * apart) / 2


def chunks_of(monkeypatch: pytest.MonkeyPatch, chunk: int, step: int) -> None:
    monkeypatch.setitem(consistency._CHUNK, "cpu", chunk)
    monkeypatch.setattr(packed, "_STEP", step)


@each_chunking
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_loss_and_gradients_are_those_of_the_formula(
    monkeypatch: pytest.MonkeyPatch, chunk: int, step: int, smoothing: float
) -> None:
    chunks_of(monkeypatch, chunk, step)
    given = readings()
    loss, nll = consistent_loss(*given, smoothing, 1.7)
    expected = by_the_formula(*given, smoothing, 1.7)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(nll, by_the_formula(*given, 0.0, 0.0), rtol=0, atol=1e-10)
    for found, right in zip(
        torch.autograd.grad(loss, given[:3]), torch.autograd.grad(expected, given[:3]), strict=True
    ):
        torch.testing.assert_close(found, right, rtol=0, atol=1e-10)


def test_the_gradient_is_that_of_small_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks_of(monkeypatch, 10 * V, 1)
    x_2NE, weight_VE, bias_V, gold_N = readings()

    def loss(*given: Tensor) -> Tensor:
        return consistent_loss(*given, gold_N, 0.1, 2.5)[0]

    assert torch.autograd.gradcheck(loss, (x_2NE, weight_VE, bias_V))


def test_two_equal_readings_have_the_plain_loss() -> None:
    x_2NE, weight_VE, bias_V, gold_N = readings()
    twice_2NE = x_2NE[:1].expand(2, -1, -1)
    for found, plain in zip(
        consistent_loss(twice_2NE, weight_VE, bias_V, gold_N, 0.1, 5.0),
        output_loss(x_2NE[0], weight_VE, bias_V, gold_N, 0.1),
        strict=True,
    ):
        torch.testing.assert_close(found, plain, rtol=0, atol=1e-10)


def test_bf16_is_the_same_but_for_rounding() -> None:
    given = [
        tensor.detach().float().requires_grad_() if tensor.is_floating_point() else tensor for tensor in readings()
    ]
    exact, _ = consistent_loss(*given, 0.1, 5.0)
    with torch.autocast("cpu", torch.bfloat16):
        rough, _ = consistent_loss(*given, 0.1, 5.0)
    assert rough.dtype == torch.float32
    assert rough.item() == pytest.approx(exact.item(), rel=0.02)


def test_a_batch_is_read_twice_under_masks_of_its_own() -> None:
    made, pairs = model(dropout=0.4), batch()
    harder = Regularisation(consistency=5.0)
    torch.manual_seed(4)
    loss, nll = made.loss(pairs, 0.0, harder)
    assert loss > nll, "the readings differ"
    made.eval()
    for found, plain in zip(made.loss(pairs, 0.1, harder), made.loss(pairs, 0.1), strict=True):
        torch.testing.assert_close(found, plain, rtol=1e-5, atol=1e-5)
