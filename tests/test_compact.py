"""Claims about models in fewer bits: nearly the same numbers, and still nothing depends on the neighbours."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from seq2seq.config.schema import ModelConfig
from seq2seq.corpus.batches import collate_sources
from seq2seq.corpus.tokenizer import BOS
from seq2seq.errors import DeviceError
from seq2seq.model import compact as compact_room
from seq2seq.model.attention import KINDS
from seq2seq.model.compact import (
    Int8Linear,
    PackedLinear,
    SteppedGRU,
    SteppedGRUCell,
    adds_in_32_bits,
    compact,
    computes_in_int8,
)
from seq2seq.model.gru import GRU
from seq2seq.model.packed import can_pack
from seq2seq.model.translation_model import TranslationModel, build_model

V = 300
int8_only = pytest.mark.skipif(not computes_in_int8(torch.device("cpu")), reason="no products of bytes on this machine")
SOURCES = [[7, 8, 9, 10], [11, 12], [5, 6, 7, 8, 9, 10, 11]]


def made(**changes: object) -> TranslationModel:
    sizes: dict[str, object] = {"embedding_size": 128, "hidden_size": 144, "tie_embeddings": "all"}
    model = build_model(ModelConfig.model_validate(sizes | changes), V, V, seed=1).eval()
    with torch.no_grad():  # a softmax that is sure of something, as after training
        model.output_layer.bias.normal_(0.0, 3.0)
    return model


@torch.inference_mode()
def first_words(model: TranslationModel, sources: list[list[int]]) -> Tensor:
    """Log-probabilities of the first two words of each source, (B,2V)."""
    state = model.start(*collate_sources(sources))
    first, state = model.logits(torch.full((len(sources),), BOS), state)
    second, _ = model.logits(first.argmax(1), state)
    return torch.cat([first.log_softmax(1), second.log_softmax(1)], dim=1)


FORMS = [
    *({"attention": {"kind": kind}} for kind in KINDS),
    {"decoder": {"kind": "step", "layers": 2}},
    {"decoder": {"layers": 2, "attend": "between"}, "encoder": {"layers": 2}},
    {"lexical_model": True},
]


@int8_only
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_eight_bits_say_nearly_the_same(form: dict[str, object]) -> None:
    model = made(**form)
    small = compact(model, "int8")
    difference = first_words(small, SOURCES) - first_words(model, SOURCES)
    assert 0.0 < difference.abs().max() < 0.1
    replaced = [module for module in small.modules() if isinstance(module, (Int8Linear, SteppedGRU, SteppedGRUCell))]
    assert len(replaced) >= 5


@int8_only
def test_eight_bits_say_the_same_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    model = made()
    with_kernels = first_words(compact(model, "int8"), SOURCES)
    monkeypatch.setattr(compact_room, "kernels_for", lambda device, dtype: None)
    monkeypatch.setattr(compact_room, "products_for", lambda device, dtype: None)
    torch.testing.assert_close(first_words(compact(model, "int8"), SOURCES), with_kernels, atol=1e-2, rtol=0)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_bfloat16_says_nearly_the_same(form: dict[str, object]) -> None:
    model = made(**form)
    difference = first_words(compact(model, "bf16"), SOURCES) - first_words(model, SOURCES)
    assert 0.0 < difference.abs().max() < 0.3


@int8_only
def test_in_eight_bits_a_row_does_not_depend_on_the_others() -> None:
    small = compact(made(), "int8")
    together = first_words(small, [[7, 8, 9, 10], [11, 12, 13, 14], [5, 6, 7, 8]])
    alone = torch.cat([first_words(small, [row]) for row in ([7, 8, 9, 10], [11, 12, 13, 14], [5, 6, 7, 8])])
    torch.testing.assert_close(together, alone, rtol=0.0, atol=1e-4)


@int8_only
def test_a_layer_of_eight_bits_is_right_to_a_hundredth() -> None:
    torch.manual_seed(1)
    layer = nn.Linear(200, 150)
    x = torch.randn(4, 7, 200) * torch.logspace(-3, 3, 28).view(4, 7, 1)  # each row of another size
    small, exact = Int8Linear(layer.weight, layer.bias)(x), layer(x)
    assert small.shape == exact.shape
    error = (small - exact).square().mean(-1).sqrt() / (exact - layer.bias).square().mean(-1).sqrt()
    assert error.max() < 0.02
    assert torch.equal(Int8Linear(layer.weight, layer.bias)(torch.zeros(1, 200)), layer.bias.detach().unsqueeze(0))


@int8_only
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("inputs", [64, 201])
def test_no_sum_of_bytes_runs_over(wide: bool, inputs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor without VNNI adds two products in 16 bits; 255 times 127 does not go into them twice."""
    if wide and not adds_in_32_bits():
        pytest.skip("this processor has no VNNI")
    monkeypatch.setattr(compact_room, "adds_in_32_bits", lambda: wide)
    torch.manual_seed(1)
    largest = torch.ones(3, inputs)  # as bytes: 255 all over
    for weight in (torch.ones(5, inputs), torch.randn(5, inputs), torch.full((5, inputs), -0.25)):
        layer = Int8Linear(weight, None)
        assert torch.equal(layer.bytes_OI.abs().amax(1) > 30, torch.ones(5, dtype=torch.bool))
        exact = (127 * layer.bytes_OI.double().sum(1)) * layer.scale_O.double() / 127
        torch.testing.assert_close(layer(largest).double(), exact.expand(3, 5), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(layer(largest), largest @ weight.T, rtol=0.02, atol=0.5)


@int8_only
@pytest.mark.parametrize("form", FORMS[:2], ids=str)
def test_eight_bits_say_nearly_the_same_where_sums_are_narrow(
    form: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compact_room, "adds_in_32_bits", lambda: False)
    model = made(**form)
    assert (first_words(compact(model, "int8"), SOURCES) - first_words(model, SOURCES)).abs().max() < 0.15


@int8_only
def test_a_recurrent_layer_of_eight_bits_stays_on_course() -> None:
    torch.manual_seed(2)
    gru, cell = GRU(96, 128), nn.GRUCell(96, 128)
    x = torch.randn(3, 40, 96)
    with torch.inference_mode():
        (exact, last), (small, small_last) = gru(x), SteppedGRU(gru, Int8Linear)(x)
        assert (small - exact).abs().max() < 0.05
        assert torch.equal(small[:, -1], small_last[0])
        state = torch.randn(3, 128).tanh()
        assert (SteppedGRUCell(cell, Int8Linear)(x[:, 0], state) - cell(x[:, 0], state)).abs().max() < 0.05
        assert torch.equal(last[0], exact[:, -1])


def test_the_model_itself_is_left_as_it_is() -> None:
    model = made()
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    for precision in ("fp32", "bf16", "int8") if computes_in_int8(torch.device("cpu")) else ("fp32", "bf16"):
        compact(model, precision)
        assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


def test_a_machine_without_products_of_bytes_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact_room, "computes_in_int8", lambda device: False)
    with pytest.raises(DeviceError, match="bf16 or fp32"):
        compact(made(), "int8")


@pytest.mark.skipif(not can_pack(torch.device("cpu"), torch.float32), reason="this PyTorch lays no matrices out")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("inputs", "outputs"), [(64, 100), (192, 576), (512, 300)])
def test_what_a_row_gives_never_depends_on_the_rows_beside_it(dtype: torch.dtype, inputs: int, outputs: int) -> None:
    """To the last bit, which is why a translation is the same in any company."""
    if not can_pack(torch.device("cpu"), dtype):
        pytest.skip("this processor knows no bfloat16")
    torch.manual_seed(1)
    layer = PackedLinear(torch.randn(outputs, inputs).to(dtype), torch.randn(outputs).to(dtype))
    x_RI = torch.randn(320, inputs).to(dtype)
    whole_RO = layer(x_RI)
    for rows in (1, 2, 3, 5, 8, 17, 33, 64, 150):
        assert torch.equal(layer(x_RI[:rows]), whole_RO[:rows])
