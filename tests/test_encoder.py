"""Claims about the encoder: it is PyTorch's bidirectional GRU over packed sentences, without the packing.

Letters: B sentences, S source tokens, E embedding size, H width of the memory, L layers.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seq2seq.model.encoder import Encoder, turned_round

B, S, E, H = 3, 5, 7, 4
LENGTHS = (3, 5, 1)
each_depth = pytest.mark.parametrize("layers", [1, 2])


def mask_of(lengths: tuple[int, ...], longest: int = S) -> Tensor:
    return torch.arange(longest).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)


def encoder(layers: int, dropout: float = 0.0) -> Encoder:
    torch.manual_seed(2)
    return Encoder(E, H, layers, dropout).double()


def embedded(longest: int = S, seed: int = 1) -> Tensor:
    return torch.randn(B, longest, E, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-12)


def pytorchs(ours: Encoder) -> nn.GRU:
    """One GRU of PyTorch with the weights of all our layers."""
    theirs = nn.GRU(E, H // 2, len(ours.layers), batch_first=True, bidirectional=True).double()
    with torch.no_grad():
        for number, layer in enumerate(ours.layers):
            for direction, ending in ((layer.forwards, ""), (layer.backwards, "_reverse")):
                for name, parameter in direction.named_parameters():
                    getattr(theirs, name.replace("l0", f"l{number}{ending}")).copy_(parameter)
    return theirs


@each_depth
def test_the_encoder_equals_pytorchs_gru_over_packed_sentences(layers: int) -> None:
    ours, x_BSE, mask_BS = encoder(layers), embedded(), mask_of(LENGTHS)
    packed = pack_padded_sequence(x_BSE, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    states, last = pytorchs(ours)(packed)
    expected_BSH, _ = pad_packed_sequence(states, batch_first=True, total_length=S)
    encoded = ours(x_BSE, mask_BS)
    assert encoded.memory_BSH.shape == (B, S, H)
    same(encoded.memory_BSH[mask_BS], expected_BSH[mask_BS])
    same(encoded.summary_BH, torch.cat([last[-2], last[-1]], dim=1))
    assert encoded.mask_BS is mask_BS


@each_depth
def test_gradients_equal_those_of_pytorchs_gru(layers: int) -> None:
    ours, mask_BS = encoder(layers), mask_of(LENGTHS)
    x_BSE, their_x_BSE = embedded().requires_grad_(), embedded().requires_grad_()
    encoded = ours(x_BSE, mask_BS)
    (encoded.memory_BSH[mask_BS].square().sum() + encoded.summary_BH.sum()).backward()
    packed = pack_padded_sequence(their_x_BSE, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    states, last = pytorchs(ours)(packed)
    (states.data.square().sum() + last[-2:].sum()).backward()
    assert x_BSE.grad is not None and their_x_BSE.grad is not None
    same(x_BSE.grad, their_x_BSE.grad)
    assert (x_BSE.grad[~mask_BS] == 0.0).all()


@each_depth
def test_padding_never_changes_what_is_read(layers: int) -> None:
    ours, x_BSE = encoder(layers), embedded()
    encoded = ours(x_BSE, mask_of(LENGTHS))
    wider = torch.cat([x_BSE, 9.0 * embedded(2, seed=4)], dim=1)
    wider[0, 3:] = -7.0  # and other rubbish in the padding that was there before
    again = ours(wider, mask_of(LENGTHS, S + 2))
    for row, length in enumerate(LENGTHS):
        same(again.memory_BSH[row, :length], encoded.memory_BSH[row, :length])
    same(again.summary_BH, encoded.summary_BH)


@each_depth
def test_a_sentence_is_read_as_if_it_were_alone(layers: int) -> None:
    ours, x_BSE = encoder(layers), embedded()
    encoded = ours(x_BSE, mask_of(LENGTHS))
    for row, length in enumerate(LENGTHS):
        alone = ours(x_BSE[row : row + 1, :length], mask_of((length,), length))
        same(encoded.memory_BSH[row : row + 1, :length], alone.memory_BSH)
        same(encoded.summary_BH[row : row + 1], alone.summary_BH)


def test_every_state_has_seen_the_whole_sentence() -> None:
    ours, x_BSE, mask_BS = encoder(1), embedded(), mask_of(LENGTHS)
    before = ours(x_BSE, mask_BS).memory_BSH
    for changed in range(3):
        other = x_BSE.clone()
        other[0, changed] += 1.0
        after = ours(other, mask_BS).memory_BSH
        assert (after[0, :3] != before[0, :3]).any(dim=1).all()
        assert torch.equal(after[1:], before[1:])


def test_a_row_without_a_real_token_is_finite() -> None:
    encoded = encoder(2)(embedded(), mask_of((0, 5, 2)))
    assert encoded.memory_BSH.isfinite().all()
    assert encoded.summary_BH.isfinite().all()


def test_turning_round_is_its_own_inverse_and_leaves_padding() -> None:
    assert turned_round(torch.tensor([3, 5, 0]), S).tolist() == [[2, 1, 0, 3, 4], [4, 3, 2, 1, 0], [0, 1, 2, 3, 4]]


def test_dropout_acts_in_training_only() -> None:
    ours, x_BSE, mask_BS = encoder(2, dropout=0.5), embedded(), mask_of(LENGTHS)
    assert (ours(x_BSE, mask_BS).memory_BSH == 0.0).any()
    ours.eval()
    first, second = ours(x_BSE, mask_BS), ours(x_BSE, mask_BS)
    assert torch.equal(first.memory_BSH, second.memory_BSH)
    assert (first.memory_BSH != 0.0).all()
