"""Claims about the whole model: its loss is PyTorch's, its dropout is fair, its weights begin as they should.

Letters: N real target tokens, E embedding size, V vocabulary, B sentences, T target steps, S source tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import settings as how_often
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from seq2seq.config.schema import ModelConfig
from seq2seq.corpus.batches import Batch
from seq2seq.corpus.tokenizer import BOS, EOS, PAD
from seq2seq.errors import DeviceError
from seq2seq.model import device as device_room
from seq2seq.model import loss as loss_room
from seq2seq.model import packed
from seq2seq.model.best_words import best_words
from seq2seq.model.device import choose_device, choose_precision, computes_in_bf16, precision_context
from seq2seq.model.dropout import Dropout
from seq2seq.model.loss import output_loss
from seq2seq.model.translation_model import TranslationModel, build_model, empty_model

N, E, V = 23, 6, 11
SOURCES = [[5, 6, 7], [8], [9, 4, 5, 6]]
TARGETS = [[4, 5], [6, 7, 8, 9, 10], [5]]
# Numbers in a chunk and rows in a step: all tokens at once, one at a time, chunks that do and do not divide N.
each_chunking = pytest.mark.parametrize(("chunk", "step"), [(2**22, 64), (1, 1), (5 * V, 1), (8 * V, 4), (23 * V, 23)])
each_smoothing = pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])


def settings(**changes: object) -> ModelConfig:
    basic: dict[str, object] = {"embedding_size": E, "hidden_size": 8, "dropout": 0.0, "tie_embeddings": "all"}
    return ModelConfig.model_validate(basic | changes)


def model(seed: int = 1, **changes: object) -> TranslationModel:
    return build_model(settings(**changes), V, V, seed=seed)


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])
    mask = torch.tensor([[True] * len(row) + [False] * (longest - len(row)) for row in rows])
    return ids, mask


def batch(sources: Sequence[Sequence[int]] = SOURCES, targets: Sequence[Sequence[int]] = TARGETS) -> Batch:
    src_BS, src_mask_BS = padded([[*row, EOS] for row in sources])
    tgt_out_BT, tgt_mask_BT = padded([[*row, EOS] for row in targets])
    tgt_in_BT, _ = padded([[BOS, *row] for row in targets])
    return Batch(src_BS, src_mask_BS, tgt_in_BT, tgt_out_BT, tgt_mask_BT, int(tgt_mask_BT.sum()))


def same(found: Tensor, expected: Tensor, atol: float = 1e-12) -> None:
    torch.testing.assert_close(found, expected, rtol=0.0, atol=atol)


# ---- loss


def readouts(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Readouts, output weights and bias that ask for gradients, and gold words with some of them repeated."""
    generator = torch.Generator().manual_seed(3)
    x_NE, weight_VE, bias_V = (
        torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in ((N, E), (V, E), (V,))
    )
    return x_NE, weight_VE, bias_V, torch.randint(V, (N,), generator=generator)


def chunks_of(monkeypatch: pytest.MonkeyPatch, chunk: int, step: int) -> None:
    monkeypatch.setitem(loss_room._CHUNK, "cpu", chunk)
    monkeypatch.setattr(packed, "_STEP", step)


@each_chunking
@each_smoothing
def test_the_loss_and_its_gradients_are_pytorchs(
    monkeypatch: pytest.MonkeyPatch, smoothing: float, chunk: int, step: int
) -> None:
    chunks_of(monkeypatch, chunk, step)
    *ours, gold_N = readouts()
    *theirs, _ = readouts()
    loss, nll = output_loss(*ours, gold_N, smoothing)
    logits_NV = theirs[0] @ theirs[1].T + theirs[2]
    expected = F.cross_entropy(logits_NV, gold_N, label_smoothing=smoothing, reduction="sum")
    same(loss, expected)
    same(nll, F.cross_entropy(logits_NV, gold_N, reduction="sum"))
    assert not nll.requires_grad
    (loss * 0.3).backward()  # scaled, as a mean over tokens is
    (expected * 0.3).backward()
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.grad is not None and other.grad is not None
        same(mine.grad, other.grad)


@each_smoothing
def test_gradients_of_the_loss_are_those_of_finite_differences(smoothing: float) -> None:
    *inputs, gold_N = readouts()
    assert torch.autograd.gradcheck(lambda *leaves: output_loss(*leaves, gold_N, smoothing)[0], inputs)


@each_chunking
@each_smoothing
def test_the_loss_is_the_same_where_no_gradient_is_wanted(
    monkeypatch: pytest.MonkeyPatch, smoothing: float, chunk: int, step: int
) -> None:
    chunks_of(monkeypatch, chunk, step)
    *inputs, gold_N = readouts()
    with_gradient = output_loss(*inputs, gold_N, smoothing)
    with torch.no_grad():
        without = output_loss(*inputs, gold_N, smoothing)
    for found, expected in zip(without, with_gradient, strict=True):
        assert not found.requires_grad
        same(found, expected.detach())


def test_only_the_gradients_that_are_asked_for_come_back() -> None:
    x_NE, weight_VE, bias_V, gold_N = readouts()
    output_loss(x_NE, weight_VE.detach(), bias_V.detach(), gold_N, 0.1)[0].backward()
    assert x_NE.grad is not None
    assert weight_VE.grad is None and bias_V.grad is None


@each_smoothing
def test_the_loss_in_bf16_is_close_to_the_one_in_fp32(smoothing: float) -> None:
    *exact, gold_N = readouts(torch.float32)
    *rough, _ = readouts(torch.float32)
    loss, nll = output_loss(*exact, gold_N, smoothing)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough_loss, rough_nll = output_loss(*rough, gold_N, smoothing)
    assert rough_loss.dtype == rough_nll.dtype == torch.float32
    for found, expected in ((rough_loss, loss), (rough_nll, nll)):
        assert found.item() == pytest.approx(expected.item(), rel=0.01)
    loss.backward()
    rough_loss.backward()
    for mine, other in zip(rough, exact, strict=True):
        assert mine.grad is not None and other.grad is not None
        assert mine.grad.dtype == torch.float32
        assert (mine.grad - other.grad).norm() < 0.02 * other.grad.norm()


def test_a_hopeless_gold_word_costs_a_finite_amount() -> None:
    x_NE, weight_VE = torch.tensor([[300.0]]), torch.tensor([[1.0], [-1.0], [0.0]], requires_grad=True)
    loss, nll = output_loss(x_NE, weight_VE, torch.zeros(3), torch.tensor([1]), 0.1)
    loss.backward()
    assert loss.isfinite() and nll.isfinite()
    assert weight_VE.grad is not None
    same(weight_VE.grad, 300.0 * torch.tensor([[1.0 - 0.1 / 3], [-1.0 + 0.2 / 3], [-0.1 / 3]]), atol=1e-3)


def test_no_token_costs_nothing() -> None:
    x_NE, weight_VE, bias_V, gold_N = readouts()
    loss, nll = output_loss(x_NE[:0], weight_VE, bias_V, gold_N[:0], 0.1)
    loss.backward()
    assert (loss.item(), nll.item()) == (0.0, 0.0)
    assert weight_VE.grad is not None
    assert (weight_VE.grad == 0.0).all()


@each_smoothing
def test_the_loss_of_a_batch_counts_real_target_tokens_only(smoothing: float) -> None:
    made, pairs = model().double(), batch()
    loss, nll = made.loss(pairs, smoothing)
    state = made.start(pairs.src_BS, pairs.src_mask_BS)
    logits_BTV = made.output_layer(made.decode(pairs.tgt_in_BT, state)[0])
    gold_BT = pairs.tgt_out_BT.masked_fill(~pairs.tgt_mask_BT, -100)
    arguments = (logits_BTV.flatten(0, 1), gold_BT.flatten())
    same(loss, F.cross_entropy(*arguments, label_smoothing=smoothing, reduction="sum"))
    same(nll, F.cross_entropy(*arguments, reduction="sum"))


@pytest.mark.parametrize("kind", ["parallel", "step"])
def test_the_loss_of_a_batch_is_the_sum_over_its_pairs(kind: str) -> None:
    made = model(decoder={"kind": kind}, encoder={"layers": 2}).double()
    loss, nll = made.loss(batch(), 0.1)
    alone = [made.loss(batch([source], [target]), 0.1) for source, target in zip(SOURCES, TARGETS, strict=True)]
    same(loss, sum((pair[0] for pair in alone), torch.zeros(()).double()))
    same(nll, sum((pair[1] for pair in alone), torch.zeros(()).double()))


@pytest.mark.parametrize("tying", ["all", "decoder", "none"])
def test_the_loss_teaches_every_parameter(tying: str) -> None:
    made = model(tie_embeddings=tying)
    made.loss(batch(), 0.1)[0].backward()
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad != 0.0).any(), name


@pytest.mark.parametrize("kind", ["parallel", "step"])
def test_steps_of_the_search_are_what_the_loss_is_made_of(kind: str) -> None:
    """The log-probabilities of single steps, added up, are the negative log-likelihood of training."""
    made, pairs = model(decoder={"kind": kind}).double(), batch()
    _, nll = made.loss(pairs, 0.0)
    state = made.start(pairs.src_BS, pairs.src_mask_BS)
    total = torch.zeros(())
    for t in range(pairs.tgt_in_BT.shape[1]):
        logit_BV, following = made.logits(pairs.tgt_in_BT[:, t], state)
        log_probability_BV = logit_BV.log_softmax(1)
        best_BC, word_BC, state = made.step(pairs.tgt_in_BT[:, t], state, 4)
        assert best_BC.dtype == torch.float32
        same(best_BC, log_probability_BV.gather(1, word_BC), atol=1e-5)
        same(following.hidden_LRH, state.hidden_LRH)
        said = log_probability_BV.gather(1, pairs.tgt_out_BT[:, t : t + 1]).squeeze(1)
        total = total + said[pairs.tgt_mask_BT[:, t]].sum()
    same(total.double(), -nll, atol=1e-4)


@how_often(max_examples=60, deadline=None)
@given(rows=st.integers(1, 4), words=st.integers(3, 2000), count=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_the_best_words_are_those_of_a_whole_sort(rows: int, words: int, count: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    # Few different numbers, so that equal ones are common.
    logit_RV = torch.randint(-20, 20, (rows, words), generator=generator).float()
    count, never = min(count, words), (0, 2)
    log_probability_RV = logit_RV.log_softmax(1)
    log_probability_RV[:, list(never)] = -torch.inf
    expected_RC = log_probability_RV.topk(count, dim=1).values
    best_RC, word_RC = best_words(logit_RV.clone(), count, never)
    same(best_RC, expected_RC, atol=1e-5)
    same(log_probability_RV.gather(1, word_RC), expected_RC, atol=1e-5)
    assert all(len(set(row)) == count for row in word_RC.tolist())


# ---- dropout


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_dropout_drops_its_share_and_keeps_the_mean(share: float) -> None:
    torch.manual_seed(6)
    count = 200_003  # not a multiple of eight: the last draw is used in part
    dropped = Dropout(share)(torch.ones(count))
    rounded = round(share * 256) / 256
    deviation = math.sqrt(rounded * (1 - rounded) / count)
    assert abs((dropped == 0.0).double().mean().item() - rounded) < 5 * deviation
    assert abs(rounded - share) <= 1 / 512
    assert set(dropped.unique().tolist()) == {0.0, dropped.max().item()}
    assert dropped.max().item() == pytest.approx(1 / (1 - rounded), rel=1e-6)
    assert dropped.double().mean().item() == pytest.approx(1.0, abs=5 * deviation / (1 - rounded))


def test_neighbours_are_dropped_independently() -> None:
    """Eight activations share one draw; none of them may tell anything of another."""
    torch.manual_seed(6)
    zeros_DK = (Dropout(0.5)(torch.ones(20_000, 8)) == 0.0).double()
    correlations = torch.corrcoef(zeros_DK.T) - torch.eye(8)
    assert correlations.abs().max() < 5 / math.sqrt(20_000)


def test_dropout_does_nothing_in_evaluation_or_with_a_share_of_zero() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_dropout_is_the_same_for_the_same_seed() -> None:
    x, dropout, results = torch.ones(4, 33), Dropout(0.4), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(dropout(x))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_what_dropout_dropped_gets_no_gradient(dtype: torch.dtype) -> None:
    torch.manual_seed(6)
    x = torch.rand(7, 9, dtype=dtype).add_(1.0).requires_grad_()
    dropped = Dropout(0.4)(x)
    assert dropped.dtype == dtype and dropped.shape == x.shape
    dropped.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad == 0.0, dropped == 0.0)
    same(x.grad[dropped != 0].float(), torch.full_like(x.grad[dropped != 0], 256 / (256 - 102)).float(), atol=1e-2)


@pytest.mark.parametrize("shape", [(0, 4), (1,), (2, 3, 5)])
def test_dropout_takes_every_shape(shape: tuple[int, ...]) -> None:
    torch.manual_seed(6)
    turned = torch.ones(shape).transpose(0, -1)  # not contiguous
    assert Dropout(0.5)(turned).shape == turned.shape


# ---- how the weights begin


def test_equal_seeds_give_equal_weights_and_others_give_others() -> None:
    first, second, other = model(seed=1), model(seed=1), model(seed=2)
    torch.manual_seed(77)  # what was drawn before does not matter
    third = model(seed=1)
    for name, parameter in first.named_parameters():
        assert torch.equal(parameter, second.get_parameter(name)), name
        assert torch.equal(parameter, third.get_parameter(name)), name
        if parameter.dim() > 1:
            assert not torch.equal(parameter, other.get_parameter(name)), name


@pytest.mark.parametrize("kind", ["parallel", "step"])
def test_recurrent_matrices_are_orthogonal_gate_by_gate_and_biases_zero(kind: str) -> None:
    made = model(decoder={"kind": kind, "layers": 2}, encoder={"layers": 2})
    recurrent = [parameter for name, parameter in made.named_parameters() if "weight_hh" in name]
    assert len(recurrent) == 2 * 2 + 2
    for matrix in recurrent:
        for gate in matrix.detach().chunk(3):
            same(gate @ gate.T, torch.eye(len(gate)), atol=1e-5)
    assert all((parameter == 0.0).all() for name, parameter in made.named_parameters() if "bias" in name)


@pytest.mark.parametrize("tying", ["all", "decoder", "none"])
@pytest.mark.parametrize("size", [16, 128])
def test_the_first_softmax_is_nearly_flat(tying: str, size: int) -> None:
    vocabulary = 500
    made = build_model(
        settings(embedding_size=size, hidden_size=size, tie_embeddings=tying), vocabulary, vocabulary, seed=1
    )
    many = torch.randint(4, vocabulary, (30, 10)).tolist()
    _, nll = made.loss(batch(many, many), 0.0)
    assert nll.item() / batch(many, many).tokens == pytest.approx(math.log(vocabulary), rel=0.06)
    state = made.start(*padded(SOURCES))
    log_probability_BV = made.logits(torch.full((len(SOURCES),), BOS), state)[0].log_softmax(1)
    entropy_B = -(log_probability_BV.exp() * log_probability_BV).sum(1)
    assert (entropy_B > 0.95 * math.log(vocabulary)).all()


@pytest.mark.parametrize("tying", ["all", "decoder", "none"])
def test_a_word_vector_is_about_one_long_per_number_as_an_input(tying: str) -> None:
    made = build_model(settings(embedding_size=64, tie_embeddings=tying), 300, 300, seed=1)
    for embedding in (made.source_embedding, made.target_embedding):
        assert (embedding.weight * made.embedding_scale).std().item() == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize(
    ("tying", "source", "matrices"),
    [("all", V, V), ("decoder", V + 2, V + 2 + V), ("none", V + 2, V + 2 + 2 * V)],
)
def test_a_tied_matrix_is_one_and_counts_once(tying: str, source: int, matrices: int) -> None:
    made = build_model(settings(tie_embeddings=tying), source, V, seed=1)
    read, written = made.source_embedding.weight, made.target_embedding.weight
    assert (read.data_ptr() == written.data_ptr()) == (tying == "all")
    assert (made.output_layer.weight.data_ptr() == written.data_ptr()) == (tying != "none")
    rest = sum(
        parameter.numel()
        for name, parameter in made.named_parameters()
        if "embedding" not in name and name != "output_layer.weight"
    )
    assert made.parameter_count() == rest + matrices * E


def test_the_parameters_of_a_small_model_can_be_counted_by_hand() -> None:
    """E=6, H=8, V=11, general attention: what the formulas of the papers say."""
    embeddings_and_output = 11 * 6 + 11
    encoder = 2 * 3 * 4 * (6 + 4 + 2)  # two directions of three gates of width 4, each with two biases
    decoder = 3 * 8 * (6 + 8 + 2) + (8 * 8 + 8) + 8 * 8 + (6 * (8 + 8 + 6) + 6)  # GRU, first state, attention, readout
    counted = model(attention={"kind": "general"}).parameter_count()
    assert counted == embeddings_and_output + encoder + decoder


def test_a_model_without_memory_has_the_same_count() -> None:
    weightless = empty_model(settings(), V, V)
    assert all(parameter.device.type == "meta" for parameter in weightless.parameters())
    assert weightless.parameter_count() == model().parameter_count()


# ---- device and precision


def test_the_processor_is_always_there() -> None:
    assert choose_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"), [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")]
)
def test_auto_takes_the_fastest_device(monkeypatch: pytest.MonkeyPatch, cuda: bool, mps: bool, expected: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert choose_device("auto") == torch.device(expected)


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:1", "mps"])
def test_a_device_that_is_not_there_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(DeviceError, match=f"device {name} was asked for.*use cpu"):
        choose_device(name)


@pytest.mark.parametrize("name", ["cuda:2", "cuda:128", "cuda:256", "cuda:999"])
def test_a_gpu_beyond_the_last_is_refused_with_their_number(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """From 128 on torch.device itself takes the number for another one."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(DeviceError, match=f"{name} .*there are 2"):
        choose_device(name)


@pytest.mark.parametrize(
    "name", ["", "gpu", "CPU", "cuda:", "cuda:01", "cuda:-1", "cuda:one", "cpu:0", "meta", "cuda\n"]
)
def test_a_misspelt_device_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(DeviceError, match="auto, cpu, cuda, cuda:N"):
        choose_device(name)


def test_precision_is_what_was_asked_for_or_what_the_processor_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    assert choose_precision("fp32", cpu) == torch.float32
    assert choose_precision("bf16", cpu) == torch.bfloat16
    for computes, expected in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(device_room, "computes_in_bf16", lambda _, computes=computes: computes)
        assert choose_precision("auto", cpu) == expected
        assert choose_precision("fp32", cpu) == torch.float32


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_gpus_compute_in_bf16_from_ampere_on(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], expected: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert computes_in_bf16(torch.device("cuda")) is expected


def test_fp16_is_for_gpus_that_have_nothing_better(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match="needs a CUDA GPU"):
        choose_precision("fp16", torch.device("cpu"))
    for capability, expected in (((6, 1), torch.float32), ((7, 5), torch.float16), ((8, 0), torch.bfloat16)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _, found=capability: found)
        assert choose_precision("auto", torch.device("cuda")) == expected
    assert choose_precision("fp16", torch.device("cuda")) == torch.float16


@pytest.mark.parametrize("kind", ["meta", "mps"])
def test_a_device_of_which_nothing_is_known_computes_in_fp32(kind: str) -> None:
    assert choose_precision("auto", torch.device(kind)) == torch.float32


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16], ids=str)
def test_weights_stay_in_fp32_whatever_the_precision_of_products(precision: torch.dtype) -> None:
    made = model()
    with precision_context(torch.device("cpu"), precision):
        assert (made.output_layer(torch.zeros(2, E))).dtype == precision
        loss, _ = made.loss(batch(), 0.1)
    loss.backward()
    assert loss.dtype == torch.float32
    for parameter in made.parameters():
        assert parameter.grad is not None
        assert parameter.dtype == parameter.grad.dtype == torch.float32


@pytest.mark.parametrize("kind", ["my", "additive", "tanh", "qkv", "multi_head", "dot", "general", "none"])
@pytest.mark.parametrize("decoder", ["parallel", "step"])
def test_bf16_is_close_to_fp32_for_every_attention(kind: str, decoder: str) -> None:
    made = model(attention={"kind": kind}, decoder={"kind": decoder})
    exact, _ = made.loss(batch(), 0.1)
    with precision_context(torch.device("cpu"), torch.bfloat16):
        rough, _ = made.loss(batch(), 0.1)
    assert rough.item() == pytest.approx(exact.item(), rel=0.01)
