"""Claims about what is hidden in training: variational dropout, dropout by place, words.

Letters: B sentences, T steps, X width.
"""

from __future__ import annotations

import pytest
import torch
from test_translation_model import batch, model, settings

from seq2seq.model.decoder import build_decoder
from seq2seq.model.dropout import Dropout
from seq2seq.model.regularisation import Regularisation, hide_words

B, T, X = 5, 7, 301


def test_a_variational_mask_is_the_same_at_all_steps_and_another_for_each_sentence() -> None:
    torch.manual_seed(1)
    dropped_BTX = Dropout(0.4, variational=True)(torch.ones(B, T, X))
    assert torch.equal(dropped_BTX, dropped_BTX[:, :1].expand(-1, T, -1))
    assert not torch.equal(dropped_BTX[0], dropped_BTX[1])
    share = (dropped_BTX[:, 0] == 0.0).double().mean().item()
    assert abs(share - 0.4) < 5 * (0.24 / (B * X)) ** 0.5
    assert dropped_BTX.max().item() == pytest.approx(256 / (256 - round(0.4 * 256)))


def test_steps_one_after_the_other_share_a_variational_mask_and_no_other() -> None:
    torch.manual_seed(1)
    for variational in (True, False):
        drop = Dropout(0.4, variational).over_steps()
        first, second = drop(torch.ones(B, X)), drop(torch.full((B, X), 2.0))
        assert torch.equal(2.0 * first, second) == variational


def test_a_new_reading_has_a_new_mask() -> None:
    torch.manual_seed(1)
    dropout = Dropout(0.4, variational=True)
    assert not torch.equal(dropout(torch.ones(B, T, X)), dropout(torch.ones(B, T, X)))
    assert not torch.equal(dropout.over_steps()(torch.ones(B, X)), dropout.over_steps()(torch.ones(B, X)))


def test_variational_dropout_does_nothing_in_evaluation() -> None:
    x_BTX, dropout = torch.randn(B, T, X), Dropout(0.4, variational=True).eval()
    assert dropout(x_BTX) is x_BTX
    assert dropout.over_steps()(x_BTX[:, 0]).equal(x_BTX[:, 0])


@pytest.mark.parametrize("kind", ["parallel", "step"])
def test_a_variational_decoder_hides_the_same_part_of_every_readout(kind: str) -> None:
    made = model(variational_dropout=True, dropout_readout=0.5, decoder={"kind": kind, "layers": 2})
    pairs = batch()
    state = made.decoder.start(made.encode(pairs.src_BS, pairs.src_mask_BS))
    readout_BTE, _, _ = made.decode(pairs.tgt_in_BT, state)
    hidden_BTE = readout_BTE == 0.0
    assert torch.equal(hidden_BTE, hidden_BTE[:, :1].expand_as(hidden_BTE))
    assert 0 < hidden_BTE.sum() < hidden_BTE.numel()


def test_a_place_without_a_dropout_of_its_own_has_the_model_s() -> None:
    made = settings(dropout=0.2, dropout_states=0.0, dropout_readout=0.4)
    assert [made.dropout_of(place) for place in ("embeddings", "states", "readout")] == [0.2, 0.0, 0.4]
    decoder = build_decoder(made)
    assert (decoder.dropout.share, decoder.readout_dropout.share) == (0.0, 0.4)
    whole = model(dropout=0.2, dropout_states=0.1)
    assert (whole.dropout.share, whole.encoder.dropout.share) == (0.2, 0.1)


# ---- words


def test_words_are_hidden_whole_in_the_share_that_was_asked_for() -> None:
    torch.manual_seed(1)
    hidden_BTX = hide_words(torch.ones(50, 101, 3), 0.3)
    assert torch.equal(hidden_BTX, hidden_BTX[..., :1].expand_as(hidden_BTX))
    share = (hidden_BTX[..., 0] == 0.0).double().mean().item()
    assert abs(share - 0.3) < 5 * (0.21 / (50 * 101)) ** 0.5
    assert hidden_BTX.max().item() == pytest.approx(1 / 0.7)


@pytest.mark.parametrize("side", ["source", "target"])
def test_each_side_hides_its_own_words_and_only_when_it_is_asked_to(side: str) -> None:
    made, pairs = model(tie_embeddings="none"), batch()
    harder = Regularisation(**{f"{side}_words": 0.999999})
    made.loss(pairs, 0.1, harder)[0].backward()
    grads = {"source": made.source_embedding.weight.grad, "target": made.target_embedding.weight.grad}
    for name, grad in grads.items():
        assert grad is not None
        assert (grad.abs().max() == 0.0) == (name == side)


def test_nothing_is_hidden_where_nobody_asks() -> None:
    made, pairs = model(), batch()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    plain = made.loss(pairs, 0.1)[0]
    assert torch.equal(torch.get_rng_state(), before), "no random number is drawn"
    assert torch.equal(plain, made.loss(pairs, 0.1, Regularisation())[0])
    assert not torch.equal(plain, made.loss(pairs, 0.1, Regularisation(source_words=0.5))[0])
