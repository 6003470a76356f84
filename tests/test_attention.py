"""Claims about attention: it computes what the papers and PyTorch compute, and padding has no part in it.

Letters: B sentences, T target steps, S source tokens, N heads, H hidden size. c068 in a name: a failure that users of
comparable tools reported.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from conftest import run_python
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import seq2seq
from seq2seq.config.schema import AttentionConfig
from seq2seq.errors import ConfigError
from seq2seq.model import attention as room
from seq2seq.model.attention import (
    KINDS,
    AdditiveAttention,
    Attention,
    DotAttention,
    GeneralAttention,
    MultiHeadAttention,
    MyAttention,
    NoAttention,
    QKVAttention,
    TanhAttention,
    build_attention,
    masked_softmax,
)

B, T, S, N, H = 2, 3, 5, 2, 4
SIZES = {"query_size": 3, "key_size": 4, "value_size": 6, "output_size": 7}
NAMES = (
    "MyAttention",
    "AdditiveAttention",
    "TanhAttention",
    "QKVAttention",
    "MultiHeadAttention",
    "DotAttention",
    "GeneralAttention",
    "NoAttention",
)
VECTORS = json.loads((Path(__file__).parent / "data" / "attention_vectors.json").read_text(encoding="utf-8"))
MASK_BS = torch.tensor([[True, True, True, False, False], [True] * 5])


@dataclass(frozen=True)
class Called:
    """A module as a person calls it, and the shapes that must come back of one step and of all T."""

    make: Callable[[], Attention]
    one_query: tuple[int, ...]  # shape of the query of one step
    source_sizes: tuple[int, ...]  # widths of what else goes in
    one_step: tuple[tuple[int, ...], tuple[int, ...]]
    all_steps: tuple[tuple[int, ...], tuple[int, ...]]
    query_last: bool = False  # (encoder_outputs, hidden_state) instead of (Q, K, V)

    def inputs(self, steps: int | None) -> list[Tensor]:
        generator = torch.Generator().manual_seed(5)
        shape = self.one_query if steps is None else (B, steps, self.one_query[-1])
        query = torch.randn(shape, generator=generator)
        others = [torch.randn(B, S, size, generator=generator) for size in self.source_sizes]
        return [*others, query] if self.query_last else [query, *others]


CALLED = {
    "MyAttention": Called(
        lambda: MyAttention(3, 4, 6, 7), (B, 1, 3), (4, 6), ((B, 1, 7), (B, 1, S)), ((B, T, 7), (B, T, S))
    ),
    "AdditiveAttention": Called(
        lambda: AdditiveAttention(3, 4, 6, 7), (B, 1, 3), (4, 6), ((B, 1, 7), (B, 1, S)), ((B, T, 7), (B, T, S))
    ),
    "TanhAttention": Called(lambda: TanhAttention(H), (B, H), (H,), ((B, H), (B, S)), ((B, T, H), (B, T, S)), True),
    "QKVAttention": Called(lambda: QKVAttention(H), (B, H), (H,), ((B, H), (B, 1, S)), ((B, T, H), (B, T, S)), True),
    "MultiHeadAttention": Called(
        lambda: MultiHeadAttention(H, N), (B, H), (H,), ((B, 1, H), (B, N, 1, S)), ((B, T, H), (B, N, T, S)), True
    ),
    "DotAttention": Called(lambda: DotAttention(4), (B, 1, 4), (4, 6), ((B, 1, 6), (B, 1, S)), ((B, T, 6), (B, T, S))),
    "GeneralAttention": Called(
        lambda: GeneralAttention(3, 4, 6), (B, 1, 3), (4, 6), ((B, 1, 6), (B, 1, S)), ((B, T, 6), (B, T, S))
    ),
    "NoAttention": Called(lambda: NoAttention(6), (B, 1, 3), (4, 6), ((B, 1, 6), (B, 1, S)), ((B, T, 6), (B, T, S))),
}
each_class = pytest.mark.parametrize("name", NAMES)
each_kind = pytest.mark.parametrize("kind", KINDS)


def of_kind(kind: str, size: int = H, dtype: torch.dtype = torch.float64, seed: int = 3) -> Attention:
    torch.manual_seed(seed)
    return build_attention(AttentionConfig.model_validate({"kind": kind, "heads": N}), size).to(dtype)


def numbers(*shape: int, seed: int = 7, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def same(found: Tensor, expected: Tensor, atol: float = 1e-12) -> None:
    torch.testing.assert_close(found, expected, rtol=0.0, atol=atol)


# ---- the modules as a lesson uses them


@each_class
def test_every_class_comes_from_the_package_and_is_the_one_the_decoder_trains_with(name: str) -> None:
    assert getattr(seq2seq, name) is getattr(room, name)
    assert name in seq2seq.__all__
    built = {type(of_kind(kind)) for kind in KINDS}
    assert getattr(seq2seq, name) in built


def test_the_package_loads_torch_only_when_a_module_is_asked_for() -> None:
    code = (
        "import sys, seq2seq\n"
        "print('torch' in sys.modules)\n"
        "from seq2seq import MyAttention\n"
        "print('torch' in sys.modules, MyAttention.__module__)\n"
    )
    done = run_python("-c", code)
    assert (done.status, done.out.splitlines()) == (0, ["False", "True seq2seq.model.attention"])


def test_a_misspelt_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="YourAttention"):
        seq2seq.YourAttention  # noqa: B018 - asking is the test


@pytest.mark.parametrize(
    ("name", "constructor", "call"),
    [
        ("MyAttention", ["query_size", "key_size", "value_size", "output_size"], ["Q", "K", "V", "mask"]),
        ("AdditiveAttention", ["query_size", "key_size", "value_size", "output_size"], ["Q", "K", "V", "mask"]),
        ("TanhAttention", ["hidden_dim"], ["encoder_outputs", "hidden_state", "mask"]),
        ("QKVAttention", ["hidden_dim"], ["encoder_outputs", "hidden_state", "mask"]),
        ("MultiHeadAttention", ["hidden_dim", "num_heads"], ["encoder_outputs", "hidden_state", "mask"]),
    ],
)
def test_signatures_are_those_of_the_lesson(name: str, constructor: list[str], call: list[str]) -> None:
    cls = getattr(room, name)
    made = inspect.signature(cls).parameters.values()
    assert [p.name for p in made if p.kind is p.POSITIONAL_OR_KEYWORD] == constructor
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in made if p.name not in constructor)
    asked = inspect.signature(cls.forward).parameters
    assert list(asked) == ["self", *call]
    assert asked["mask"].default is None


def test_the_size_of_the_additive_comparison_is_a_keyword() -> None:
    module = AdditiveAttention(3, 4, 6, 7, attention_size=9)
    assert {name: tuple(p.shape) for name, p in module.named_parameters()} == {
        "query_layer.weight": (9, 3),
        "query_layer.bias": (9,),
        "key_layer.weight": (9, 4),
        "score_layer.weight": (1, 9),
        "output_layer.weight": (7, 6),
        "output_layer.bias": (7,),
    }


@pytest.mark.parametrize(
    ("module", "parameters"),
    [
        (MyAttention(**SIZES), "query_layer.weight query_layer.bias output_layer.weight output_layer.bias"),
        (TanhAttention(H), "W.weight"),
        (QKVAttention(H), "W_q.weight W_k.weight W_v.weight"),
        (MultiHeadAttention(H, N), "W_q.weight W_k.weight W_v.weight W_o.weight"),
        (DotAttention(H), ""),
        (NoAttention(H), ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_parameters_have_the_names_of_the_lesson(module: nn.Module, parameters: str) -> None:
    assert list(module.state_dict()) == parameters.split()


@pytest.mark.parametrize("name", sorted(VECTORS))
def test_reference_numbers_are_reproduced(name: str) -> None:
    vector = VECTORS[name]
    cls = {"my_attention": MyAttention, "qkv_attention": QKVAttention, "multi_head_attention": MultiHeadAttention}[name]
    module = cls(**vector["constructor"])
    module.load_state_dict({key: torch.tensor(value) for key, value in vector["state_dict"].items()})
    found = module(**{key: torch.tensor(value) for key, value in vector["inputs"].items()})
    for tensor, expected in zip(found, vector["outputs"].values(), strict=True):
        assert tensor.dtype == torch.float32
        same(tensor, torch.tensor(expected), atol=1e-5)


def test_the_worked_example_of_the_lesson_holds() -> None:
    attention = MyAttention(4, 4, 4, 64)
    output, weights = attention(torch.randn(1, 1, 4), torch.randn(1, 32, 4), torch.randn(1, 32, 4))
    assert output.shape == (1, 1, 64)
    assert weights.shape == (1, 1, 32)
    same(weights.sum(), torch.tensor(1.0), atol=1e-6)


def test_the_file_runs_as_a_program_and_shows_each_module() -> None:
    done = run_python("-m", "seq2seq.model.attention")
    assert (done.status, done.err) == (0, "")
    assert "MyAttention(4, 4, 4, 64)" in done.out
    assert "out     (1, 1, 64)   weights (1, 1, 32)" in done.out
    assert all(f"{name}(" in done.out for name in NAMES)
    assert done.out.count("they sum to 1.000000") == len(NAMES)


@each_class
def test_one_step_and_all_steps_have_the_shapes_of_the_lesson(name: str) -> None:
    called = CALLED[name]
    module = called.make()
    for steps, expected in ((None, called.one_step), (T, called.all_steps)):
        output, weights = module(*called.inputs(steps))
        assert (tuple(output.shape), tuple(weights.shape)) == expected
        same(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-6)


@each_class
def test_all_steps_in_one_call_equal_single_calls(name: str) -> None:
    called = CALLED[name]
    module = called.make().double()
    inputs = [tensor.double() for tensor in called.inputs(T)]
    place = -1 if called.query_last else 0
    output_BTO, weights = module(*inputs, mask=MASK_BS)
    for step in range(T):
        query = inputs[place][:, step] if called.query_last else inputs[place][:, step : step + 1]
        single = [*inputs[:-1], query] if called.query_last else [query, *inputs[1:]]
        one_output, one_weights = module(*single, mask=MASK_BS)
        same(one_output.reshape(B, -1), output_BTO[:, step])
        same(one_weights.reshape(weights.select(-2, step).shape), weights.select(-2, step))


@each_class
def test_a_mask_may_be_named_or_come_last(name: str) -> None:
    module, inputs = CALLED[name].make(), CALLED[name].inputs(T)
    by_name, by_place = module(*inputs, mask=MASK_BS), module(*inputs, MASK_BS)
    assert all(torch.equal(a, b) for a, b in zip(by_name, by_place, strict=True))


@each_class
def test_latest_weights_can_be_read_and_change_no_later_answer(name: str) -> None:
    module, inputs = CALLED[name].make(), CALLED[name].inputs(T)
    assert module.attn_weights is None
    parameters = list(module.state_dict())
    first_output, first_weights = module(*inputs)
    assert module.attn_weights is not None
    assert not module.attn_weights.requires_grad
    assert torch.equal(module.attn_weights, first_weights)
    module(*(tensor.flip(0) * 2.0 for tensor in inputs), mask=MASK_BS)
    again_output, again_weights = module(*inputs)
    assert torch.equal(again_output, first_output)
    assert torch.equal(again_weights, first_weights)
    assert list(module.state_dict()) == parameters


@pytest.mark.parametrize(("hidden_dim", "num_heads"), [(30, 4), (6, 0), (3, 5)])
def test_heads_that_do_not_divide_the_width_are_refused_with_both_numbers(hidden_dim: int, num_heads: int) -> None:
    with pytest.raises(ConfigError, match=rf"\b{hidden_dim}\b.*\b{num_heads}\b"):
        MultiHeadAttention(hidden_dim, num_heads)


# ---- outside authorities


def test_multi_head_equals_pytorchs_with_the_same_weights() -> None:
    ours = MultiHeadAttention(6, 3).double()
    theirs = nn.MultiheadAttention(6, 3, bias=False, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.W_q.weight, ours.W_k.weight, ours.W_v.weight]))
        theirs.out_proj.weight.copy_(ours.W_o.weight)
    source_BSH, query_BTH = numbers(B, S, 6), numbers(B, T, 6, seed=8)
    for mask_BS in (None, MASK_BS):
        output, weights = ours(source_BSH, query_BTH, mask_BS)
        padding = None if mask_BS is None else ~mask_BS
        expected, expected_weights = theirs(
            query_BTH, source_BSH, source_BSH, key_padding_mask=padding, average_attn_weights=False
        )
        same(output, expected)
        same(weights, expected_weights)


def test_the_mean_over_heads_equals_pytorchs() -> None:
    ours = MultiHeadAttention(6, 3).double()
    source_BSH, query_BTH = numbers(B, S, 6), numbers(B, T, 6, seed=8)
    memory = ours.remember(source_BSH, source_BSH, MASK_BS)
    context, weights_BTS = ours.attend(query_BTH, memory)
    same_context, weights_BNTS = ours.attend_heads(query_BTH, memory)
    assert weights_BNTS.shape == (B, 3, T, S)
    same(weights_BTS, weights_BNTS.mean(1))
    assert torch.equal(context, same_context)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("mask_BS", [None, MASK_BS], ids=["no-mask", "mask"])
def test_dot_product_kinds_equal_pytorchs_own_attention(mask_BS: Tensor | None, scaled: bool) -> None:
    """The kinds differ in what they project; what follows is `scaled_dot_product_attention` with their scale."""
    attn_mask = None if mask_BS is None else mask_BS.unsqueeze(1)
    query, keys, values = numbers(B, T, 3), numbers(B, S, 4, seed=8), numbers(B, S, 6, seed=9)

    def authority(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scale = 1.0 / math.sqrt(k.shape[-1]) if scaled else 1.0
        return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, scale=scale)

    my = MyAttention(**SIZES, scaled=scaled).double()
    expected = my.output_layer(authority(my.query_layer(query), keys, values))
    same(my(query, keys, values, mask_BS)[0], expected)
    qkv = QKVAttention(4, scaled=scaled).double()
    state = numbers(B, T, 4, seed=6)
    same(qkv(keys, state, mask_BS)[0], authority(qkv.W_q(state), qkv.W_k(keys), qkv.W_v(keys)))
    general = GeneralAttention(3, 4, 6, scaled=scaled).double()
    same(general(query, keys, values, mask_BS)[0], authority(query, general.key_layer(keys), values))
    dot = DotAttention(4, scaled=scaled).double()
    same(dot(state, keys, values, mask_BS)[0], authority(state, keys, values))
    tanh = TanhAttention(4, scaled=scaled).double()
    same(tanh(keys, state, mask_BS)[0], authority(state, tanh.W(keys).tanh(), keys))


@pytest.mark.parametrize("kind", ["my", "tanh", "qkv", "dot", "general", "multi_head"])
def test_scores_of_the_decoder_keep_their_size_whatever_the_width(kind: str) -> None:
    """Unless told otherwise: a dot product of H numbers has H times the variance of one."""
    deviations = {}
    for size in (16, 1024):
        attention = of_kind(kind, size)
        memory = attention.remember(numbers(B, 40, size), numbers(B, 40, size))
        deviations[size] = attention.scores(numbers(B, T, size, seed=8), memory).std().item()
    assert 0.5 < deviations[1024] / deviations[16] < 2.0
    plain = build_attention(AttentionConfig.model_validate({"kind": kind, "heads": N, "scaled": False}), 16)
    assert plain.scale == pytest.approx((16 / N) ** -0.5 if kind == "multi_head" else 1.0)


def test_additive_scores_are_those_of_the_paper() -> None:
    module = AdditiveAttention(3, 4, 6, 7, attention_size=5).double()
    query, keys, values = numbers(B, T, 3), numbers(B, S, 4, seed=8), numbers(B, S, 6, seed=9)
    output, weights = module(query, keys, values)
    W_q, W_k, v = module.query_layer, module.key_layer, module.score_layer.weight[0]
    for b in range(B):
        for t in range(T):
            scores = torch.stack([v @ torch.tanh(W_q(query[b, t]) + W_k(keys[b, s])) for s in range(S)])
            same(weights[b, t], scores.softmax(0))
            same(output[b, t], module.output_layer(sum(scores.softmax(0)[s] * values[b, s] for s in range(S))))


def test_tanh_scores_are_those_of_the_lesson() -> None:
    module = TanhAttention(H).double()
    outputs_BSH, state_BH = numbers(B, S, H), numbers(B, H, seed=8)
    context, weights = module(outputs_BSH, state_BH)
    for b in range(B):
        scores = torch.stack([torch.tanh(module.W.weight @ outputs_BSH[b, s]) @ state_BH[b] for s in range(S)])
        same(weights[b], scores.softmax(0))
        same(context[b], scores.softmax(0) @ outputs_BSH[b])


def test_no_attention_is_the_mean_of_the_real_values_whatever_the_query() -> None:
    values = numbers(B, S, 6)
    context, weights = NoAttention(6)(numbers(B, T, 3, seed=8), values, values, MASK_BS)
    for b in range(B):
        mean = values[b, MASK_BS[b]].mean(0)
        for t in range(T):
            same(context[b, t], mean)
    same(weights[0, 0], torch.tensor([1 / 3, 1 / 3, 1 / 3, 0.0, 0.0]).double(), atol=1e-7)


@each_kind
@pytest.mark.parametrize("mask_BS", [None, MASK_BS], ids=["no-mask", "mask"])
def test_gradients_are_those_of_finite_differences(kind: str, mask_BS: Tensor | None) -> None:
    module = of_kind(kind)
    names = [name for name, _ in module.named_parameters()]

    def attended(query: Tensor, source: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        class Asked(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = module

            def forward(self) -> tuple[Tensor, Tensor]:
                return self.inner.attend(query, self.inner.remember(source, source, mask_BS))

        replaced = {f"inner.{name}": parameter for name, parameter in zip(names, parameters, strict=True)}
        found: tuple[Tensor, Tensor] = torch.func.functional_call(Asked(), replaced, ())
        return found

    inputs = [numbers(B, T, H), numbers(B, S, H, seed=8), *(p.detach().clone() for p in module.parameters())]
    assert torch.autograd.gradcheck(attended, [tensor.requires_grad_() for tensor in inputs])


# ---- padding, and rows that share a memory


@each_kind
def test_padding_changes_nothing_and_has_weight_exactly_zero(kind: str) -> None:
    module = of_kind(kind)
    query, source = numbers(B, T, H), numbers(B, S, H, seed=8)
    context, weights = module.attend(query, module.remember(source, source))
    padded = torch.cat([source, 50.0 * numbers(B, 2, H, seed=9)], dim=1)
    mask = torch.tensor([[True] * S + [False] * 2] * B)
    padded_context, padded_weights = module.attend(query, module.remember(padded, padded, mask))
    same(padded_context, context)
    same(padded_weights[..., :S], weights)
    assert (padded_weights[..., S:] == 0.0).all()


@each_kind
def test_a_row_does_not_depend_on_its_neighbours(kind: str) -> None:
    module = of_kind(kind)
    query, source = numbers(B, T, H), numbers(B, S, H, seed=8)
    context, weights = module.attend(query, module.remember(source, source, MASK_BS))
    alone, alone_weights = module.attend(query[:1], module.remember(source[:1, :3], source[:1, :3]))
    same(context[:1], alone)
    same(weights[:1, :, :3], alone_weights)


@each_kind
def test_weights_are_b_t_s_for_every_kind_and_per_head_on_demand(kind: str) -> None:
    module = of_kind(kind)
    memory = module.remember(numbers(B, S, H), numbers(B, S, H), MASK_BS)
    context, weights = module.attend(numbers(B, T, H, seed=8), memory)
    assert context.shape == (B, T, module.context_size)
    assert weights.shape == (B, T, S)
    heads = N if kind == "multi_head" else 1
    assert module.attend_heads(numbers(B, T, H, seed=8), memory)[1].shape == (B, heads, T, S)


@each_kind
def test_steps_asked_at_once_equal_steps_asked_one_by_one(kind: str) -> None:
    module = of_kind(kind)
    query = numbers(B, T, H)
    memory = module.remember(numbers(B, S, H, seed=8), numbers(B, S, H, seed=8), MASK_BS)
    at_once = module.attend(query, memory)
    singly = [module.attend(query[:, t : t + 1], memory) for t in range(T)]
    for found, parts in zip(at_once, zip(*singly, strict=True), strict=True):
        same(found, torch.cat(parts, dim=1))


@each_kind
def test_selected_and_repeated_sentences_answer_as_before(kind: str) -> None:
    module = of_kind(kind)
    query, source = numbers(B, T, H), numbers(B, S, H, seed=8)
    for mask in (None, MASK_BS):
        memory = module.remember(source, source, mask)
        context, weights = module.attend(query, memory)
        chosen = torch.tensor([1, 0, 1, 1])
        found, found_weights = module.attend(query[chosen], memory.select(chosen))
        same(found, context[chosen])
        same(found_weights, weights[chosen])


@each_kind
def test_asking_leaves_nothing_behind(kind: str) -> None:
    module = of_kind(kind)
    query, memory = numbers(B, T, H), module.remember(numbers(B, S, H, seed=8), numbers(B, S, H, seed=8), MASK_BS)
    first, _ = module.attend(query, memory)
    module.attend(query.flip(0), memory)
    assert module.attn_weights is None
    assert torch.equal(module.attend(query, memory)[0], first)


# ---- rows without a real token


@each_kind
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_c068_a_row_masked_everywhere_gives_finite_outputs_and_gradients(kind: str, dtype: torch.dtype) -> None:
    module = of_kind(kind, dtype=dtype)
    query = numbers(B, T, H, dtype=dtype).requires_grad_()
    source = numbers(B, S, H, seed=8, dtype=dtype).requires_grad_()
    mask = torch.tensor([[False] * S, [True] * 4 + [False]])
    context, weights = module.attend(query, module.remember(source, source, mask))
    assert context.isfinite().all()
    assert (weights[0] == 0.0).all()
    same(weights[1].double().sum(-1), torch.ones(T).double(), atol=1e-2)
    (context.square().sum() + weights.square().sum()).backward()
    for tensor in (query, source, *module.parameters()):
        assert tensor.grad is None or tensor.grad.isfinite().all()
    assert source.grad is not None
    assert (source.grad[0] == 0.0).all()
    assert (source.grad[1, :4] != 0.0).any()


@each_class
def test_c068_a_person_may_mask_everything_too(name: str) -> None:
    module, inputs = CALLED[name].make(), CALLED[name].inputs(T)
    output, weights = module(*inputs, mask=torch.zeros(B, S, dtype=torch.bool))
    assert output.isfinite().all()
    assert (weights == 0.0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_padding_has_no_part_however_low_the_real_scores_are(dtype: torch.dtype) -> None:
    scores = torch.tensor([[[-1e30, -1e30, 1e30]], [[-1e8, 0.0, 0.0]]], dtype=dtype)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert masked_softmax(scores, mask).tolist() == [[[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0]]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_c068_scores_at_the_edge_of_half_precision_stay_finite(dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max
    scores = torch.tensor([[[largest, -largest, 0.0]], [[-largest, -largest, -largest]]], dtype=dtype)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    weights = masked_softmax(scores, mask)
    assert weights.isfinite().all()
    assert weights[0, 0].tolist() == [1.0, 0.0, 0.0]
    assert (weights[1, 0, 1:] == 0.0).all()


# ---- whatever the shapes


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    steps=st.integers(1, 4),
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    halves=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_weights_are_a_distribution_over_the_real_tokens(
    kind: str, steps: int, lengths: list[int], halves: int, seed: int
) -> None:
    rows, longest, size = len(lengths), max(1, *lengths), N * halves
    module = of_kind(kind, size, seed=seed)
    mask = torch.arange(longest).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)
    source, query = numbers(rows, longest, size, seed=seed), 3.0 * numbers(rows, steps, size, seed=seed + 1)
    context, weights = module.attend_heads(query, module.remember(source, source, mask))
    assert context.shape == (rows, steps, size)
    assert context.isfinite().all()
    assert (weights >= 0.0).all()
    for row, length in enumerate(lengths):
        assert (weights[row, ..., length:] == 0.0).all()
        sums = weights[row].sum(-1)
        same(sums, torch.full_like(sums, 1.0 if length else 0.0))
