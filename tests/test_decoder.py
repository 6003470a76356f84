"""Claims about the decoder: all steps at once, step by step and many hypotheses a sentence all give the same numbers.

Letters: B sentences, R rows (hypotheses), T target steps, S source tokens, E embedding size, H hidden size, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from seq2seq.config.schema import ModelConfig
from seq2seq.model.attention import KINDS
from seq2seq.model.decoder import Decoder, DecoderState, build_decoder
from seq2seq.model.encoder import Encoded

B, T, S, E, H = 2, 3, 5, 6, 4
MASK_BS = torch.tensor([[True, True, True, False, False], [True] * 5])
EMBEDDED_BSE = torch.randn(B, S, E, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


@dataclass(frozen=True)
class Form:
    """One form of the decoder, as the settings name it."""

    kind: str
    layers: int
    attend: str = "after"
    lexical: bool = False

    def __str__(self) -> str:
        return f"{self.kind}-{self.layers}-{self.attend}" + ("-lexical" if self.lexical else "")


FORMS = (
    Form("parallel", 1),
    Form("parallel", 2),
    Form("parallel", 2, "between"),
    Form("parallel", 3, "between"),
    Form("step", 1),
    Form("step", 2),
    Form("parallel", 1, lexical=True),
    Form("step", 1, lexical=True),
)
each_form = pytest.mark.parametrize("form", FORMS, ids=str)
each_kind = pytest.mark.parametrize("kind", KINDS)


def decoder(form: Form, kind: str = "general", dropout: float = 0.0) -> Decoder:
    settings = ModelConfig.model_validate(
        {
            "embedding_size": E,
            "hidden_size": H,
            "decoder": {"kind": form.kind, "layers": form.layers, "attend": form.attend},
            "attention": {"kind": kind, "heads": 2},
            "dropout": dropout,
            "lexical_model": form.lexical,
        }
    )
    torch.manual_seed(4)
    return build_decoder(settings).double()


def numbers(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def encoded() -> Encoded:
    return Encoded(numbers(B, S, H, seed=2), numbers(B, H, seed=3), MASK_BS, EMBEDDED_BSE)


def repeated(source: Encoded, times: int) -> Encoded:
    """The same sentences, each several times, as if they were different ones."""
    tensors = (source.memory_BSH, source.summary_BH, source.mask_BS, source.embedded_BSE)
    return Encoded(*(tensor.repeat_interleave(times, dim=0) for tensor in tensors))


def same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-12)


def same_state(found: DecoderState, expected: DecoderState) -> None:
    same(found.hidden_LRH, expected.hidden_LRH)
    assert (found.feed_RE is None) == (expected.feed_RE is None)
    if found.feed_RE is not None and expected.feed_RE is not None:
        same(found.feed_RE, expected.feed_RE)


@each_form
@each_kind
def test_all_steps_at_once_equal_single_steps(form: Form, kind: str) -> None:
    module, target_BTE = decoder(form, kind), numbers(B, T, E)
    state = module.start(encoded())
    readouts, weights, last = module(target_BTE, state)
    assert readouts.shape == (B, T, E)
    assert weights.shape == (B, T, S)
    assert last.hidden_LRH.shape == (form.layers, B, H)
    for t in range(T):
        readout, weight, state = module(target_BTE[:, t : t + 1], state)
        same(readout, readouts[:, t : t + 1])
        same(weight, weights[:, t : t + 1])
    same_state(state, last)


@each_form
@each_kind
def test_hypotheses_that_share_a_memory_equal_separate_sentences(form: Form, kind: str) -> None:
    K = 3
    module, target_RTE = decoder(form, kind), numbers(B * K, T, E)
    start = module.start(encoded())
    shared = start.select(torch.arange(B).repeat_interleave(K))
    assert shared.memory is start.memory, "nothing of the memory is copied per hypothesis"
    apart = module.start(repeated(encoded(), K))
    found, expected = module(target_RTE, shared), module(target_RTE, apart)
    same(found[0], expected[0])
    same(found[1], expected[1])
    same_state(found[2], expected[2])


@each_form
@each_kind
def test_selected_rows_and_sentences_go_on_as_before(form: Form, kind: str) -> None:
    """Beam search drops a sentence and exchanges the hypotheses of another; what remains must not notice."""
    K = 2
    module, first_RTE = decoder(form, kind), numbers(B * K, T, E)
    state = module.start(encoded()).select(torch.arange(B).repeat_interleave(K))
    _, _, state = module(first_RTE, state)
    next_R1E = numbers(B * K, 1, E, seed=6)
    readout, weights, after = module(next_R1E, state)
    rows, sentences = torch.tensor([3, 3]), torch.tensor([1])
    chosen = state.select(rows, sentences)
    assert chosen.memory.values.shape[0] == 1
    found, found_weights, found_after = module(next_R1E[rows], chosen)
    same(found, readout[rows])
    same(found_weights, weights[rows])
    same_state(found_after, after.select(rows))


@each_form
def test_a_later_target_word_never_changes_an_earlier_readout(form: Form) -> None:
    module, target_BTE = decoder(form), numbers(B, T, E)
    before, weights_before, _ = module(target_BTE, module.start(encoded()))
    for changed in range(T):
        other = target_BTE.clone()
        other[:, changed] += 1.0
        after, weights_after, _ = module(other, module.start(encoded()))
        assert torch.equal(after[:, :changed], before[:, :changed])
        assert torch.equal(weights_after[:, :changed], weights_before[:, :changed])
        assert (after[:, changed:] != before[:, changed:]).any(dim=2).all(), "and every later one depends on it"


@each_form
@each_kind
def test_the_source_is_read_and_its_padding_is_not(form: Form, kind: str) -> None:
    module, target_BTE = decoder(form, kind), numbers(B, T, E)
    before, weights, _ = module(target_BTE, module.start(encoded()))
    assert (weights[~MASK_BS.unsqueeze(1).expand(B, T, S)] == 0.0).all()
    padding, token = numbers(B, S, H, seed=2), numbers(B, S, H, seed=2)
    padding[~MASK_BS] = 9.0
    token[:, 1] += 1.0
    embedded_BSE = EMBEDDED_BSE.masked_fill(~MASK_BS.unsqueeze(2), 9.0)
    for memory_BSH, changes in ((padding, False), (token, True)):
        source = Encoded(memory_BSH, numbers(B, H, seed=3), MASK_BS, embedded_BSE)
        after, _, _ = module(target_BTE, module.start(source))
        assert (after != before).any(dim=2).all() if changes else torch.equal(after, before)


@each_form
@each_kind
def test_gradients_reach_every_parameter(form: Form, kind: str) -> None:
    module = decoder(form, kind)
    memory_BSH, summary_BH = numbers(B, S, H, seed=2).requires_grad_(), numbers(B, H, seed=3).requires_grad_()
    source = Encoded(memory_BSH, summary_BH, MASK_BS, EMBEDDED_BSE)
    target_BTE = numbers(B, T, E).requires_grad_()
    readouts, _, _ = module(target_BTE, module.start(source))
    readouts.square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad != 0.0).any(), name
    for tensor in (source.memory_BSH, source.summary_BH, target_BTE):
        assert tensor.grad is not None
    assert source.memory_BSH.grad is not None
    assert (source.memory_BSH.grad[~MASK_BS] == 0.0).all()
    assert (source.memory_BSH.grad[MASK_BS] != 0.0).any(dim=1).all()


@pytest.mark.parametrize("kind", ["my", "additive", "tanh", "qkv", "multi_head", "general"])
def test_a_source_of_one_word_teaches_the_comparison_nothing(kind: str) -> None:
    """With one word the weight is 1 whatever the score: the parameters that score get a gradient, and it is zero."""
    module = decoder(FORMS[0], kind)
    mask_BS = torch.tensor([[True] + [False] * (S - 1)] * B)
    source = Encoded(numbers(B, S, H, seed=2), numbers(B, H, seed=3), mask_BS, EMBEDDED_BSE)
    readouts, weights, _ = module(numbers(B, T, E), module.start(source))
    assert (weights[:, :, 0] == 1.0).all()
    readouts.square().sum().backward()
    scoring = ("query_layer", "key_layer", "score_layer", "W.", "W_q", "W_k")
    for name, parameter in module.attention.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad != 0.0).any() == (not name.startswith(scoring)), name


@each_form
def test_every_layer_starts_from_the_summary(form: Form) -> None:
    module = decoder(form)
    state = module.start(encoded())
    expected = torch.tanh(module.first_state(encoded().summary_BH))
    assert state.hidden_LRH.shape == (form.layers, B, H)
    same(state.hidden_LRH.transpose(0, 1).flatten(1), expected)
    assert (state.feed_RE is None) == (form.kind == "parallel")


@pytest.mark.parametrize("form", [form for form in FORMS if form.lexical], ids=str)
def test_a_lexical_model_adds_what_the_source_words_say_where_attention_looks(form: Form) -> None:
    """Nguyen & Chiang's equations; an output matrix W on the sum is W on each, as theirs are with equal matrices."""
    module, target_BTE = decoder(form), numbers(B, T, E)
    plain = decoder(Form(form.kind, form.layers, form.attend))
    plain.load_state_dict({name: value for name, value in module.state_dict().items() if "lexical" not in name})
    readouts, weights, _ = module(target_BTE, module.start(encoded()))
    without, same_weights, _ = plain(target_BTE, plain.start(encoded()))
    same(weights, same_weights)
    assert module.lexical is not None
    layer = module.lexical.layer
    for b in range(B):
        for t in range(T):
            f = torch.tanh(sum(weights[b, t, s] * EMBEDDED_BSE[b, s] for s in range(S)))
            same(readouts[b, t] - without[b, t], torch.tanh(layer.weight @ f + layer.bias) + f)


@each_form
def test_dropout_acts_in_training_only(form: Form) -> None:
    module, target_BTE = decoder(form, dropout=0.5), numbers(B, T, E)
    readouts, _, _ = module(target_BTE, module.start(encoded()))
    assert (readouts == 0.0).any()
    module.eval()
    first, second = (module(target_BTE, module.start(encoded()))[0] for _ in range(2))
    assert torch.equal(first, second)
    assert (first != 0.0).all()
