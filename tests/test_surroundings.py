"""Claims about layer normalisation and residual connections: they stand around layers, and not in them.

Letters: B sentences, T target steps, S source tokens, E embedding size, H hidden size.
"""

from __future__ import annotations

import pytest
import torch
from test_decoder import FORMS, MASK_BS, B, E, Form, H, S, T, encoded, numbers, same, same_state
from test_translation_model import batch, model, settings
from torch import Tensor

from seq2seq.model.compact import compact
from seq2seq.model.decoder import Decoder, build_decoder
from seq2seq.model.encoder import Encoder, turned_round

each_form = pytest.mark.parametrize("form", FORMS, ids=str)


def decoder(form: Form) -> Decoder:
    chosen = settings(
        embedding_size=E,
        hidden_size=H,
        decoder={"kind": form.kind, "layers": form.layers, "attend": form.attend},
        attention={"kind": "general"},
        layer_norm=True,
        residual=form.layers > 1,
    )
    torch.manual_seed(4)
    made = build_decoder(chosen).double()
    for norm in made.surroundings.norms:  # a gain and a bias that show
        torch.nn.init.normal_(norm.weight)
        torch.nn.init.normal_(norm.bias)
    return made


@each_form
def test_all_steps_at_once_equal_single_steps(form: Form) -> None:
    module, target_BTE = decoder(form), numbers(B, T, E)
    state = module.start(encoded())
    readouts, weights, last = module(target_BTE, state)
    for t in range(T):
        readout, weight, state = module(target_BTE[:, t : t + 1], state)
        same(readout, readouts[:, t : t + 1])
        same(weight, weights[:, t : t + 1])
    same_state(state, last)


def test_both_kinds_of_decoder_stand_in_the_same_surroundings() -> None:
    """A step decoder whose fed readout is never read is the parallel one, layer by layer."""
    parallel, step = decoder(Form("parallel", 2)), decoder(Form("step", 2))
    with torch.no_grad():
        for cell, layer in zip(step.layers, parallel.layers, strict=True):
            weight_ih, *others = layer.parameters()
            cell.weight_ih.zero_()
            cell.weight_ih[:, : weight_ih.shape[1]] = weight_ih
            for own, other in zip(list(cell.parameters())[1:], others, strict=True):
                own.copy_(other)
        for name in ("attention", "first_state", "readout", "surroundings"):
            getattr(step, name).load_state_dict(getattr(parallel, name).state_dict())
    target_BTE = numbers(B, T, E)
    for found, expected in zip(
        *(made(target_BTE, made.start(encoded()))[:2] for made in (step, parallel)), strict=True
    ):
        same(found, expected)


def test_an_encoder_s_layers_are_passed_by_and_normalised_by_hand() -> None:
    torch.manual_seed(2)
    made = Encoder(E, H, 3, 0.0, layer_norm=True, residual=True).double()
    x_BSE = numbers(B, S, E)
    lengths_B = MASK_BS.sum(dim=1)
    turn_BS = turned_round(lengths_B, S)
    states: Tensor = x_BSE
    for number, (layer, norm) in enumerate(zip(made.layers, made.surroundings.norms, strict=True)):
        said, summary_BH = layer(states, turn_BS, lengths_B - 1)
        states = said + states if number else said
        mean = states.mean(dim=2, keepdim=True)
        spread = states.var(dim=2, unbiased=False, keepdim=True)
        states = (states - mean) / (spread + norm.eps).sqrt()
    found = made(x_BSE, MASK_BS)
    same(found.memory_BSH, states)
    same(found.summary_BH, summary_BH)


def test_padding_never_changes_a_normalised_sentence() -> None:
    torch.manual_seed(2)
    made = Encoder(E, H, 2, 0.0, layer_norm=True, residual=True).double()
    x_BSE = numbers(B, S, E)
    alone = made(x_BSE[:1, :3], MASK_BS[:1, :3])
    same(made(x_BSE, MASK_BS).memory_BSH[:1, :3], alone.memory_BSH)


def test_norms_begin_as_ones_and_what_is_off_adds_no_weights() -> None:
    deep = {"encoder": {"layers": 2}, "decoder": {"layers": 2}}
    plain, around = model(**deep), model(**deep, layer_norm=True, residual=True)
    names = [{name for name, _ in made.named_parameters()} for made in (plain, around)]
    added = {name for name in names[1] - names[0] if ".surroundings.norms." in name}
    assert names[1] - names[0] == added and len(added) == 8
    for name in added:
        expected = torch.ones(8) if name.endswith("weight") else torch.zeros(8)
        assert torch.equal(around.get_parameter(name).detach(), expected)
    for name in names[0]:  # and draws no random number
        assert torch.equal(plain.get_parameter(name), around.get_parameter(name))


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_a_compact_model_keeps_its_norms(precision: str) -> None:
    if precision == "int8" and "onednn" not in torch.backends.quantized.supported_engines:
        pytest.skip("this PyTorch multiplies no bytes")
    made, pairs = model(layer_norm=True).eval(), batch()
    smaller = compact(made, precision)
    with torch.inference_mode():
        wide, narrow = (some.encode(pairs.src_BS, pairs.src_mask_BS).memory_BSH.float() for some in (made, smaller))
    torch.testing.assert_close(wide, narrow, rtol=0.0, atol=0.1)
