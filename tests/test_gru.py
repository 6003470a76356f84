"""The GRU layer equals PyTorch's own, forward and backward, and its gradient is that of its formula."""

import pytest
import torch

from seq2seq.model.gru import GRU, GRUCell

B, T, D, H = 2, 5, 3, 4


def layers(dtype: torch.dtype) -> tuple[GRU, torch.nn.GRU]:
    torch.manual_seed(1)
    ours, theirs = GRU(D, H).to(dtype), torch.nn.GRU(D, H, batch_first=True).to(dtype)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("begins_with_a_state", [True, False])
def test_states_and_all_gradients_are_pytorchs(dtype: torch.dtype, tolerance: float, begins_with_a_state: bool) -> None:
    ours, theirs = layers(dtype)
    x_BTD = torch.randn(B, T, D, dtype=dtype, requires_grad=True)
    first_1BH = torch.randn(1, B, H, dtype=dtype, requires_grad=True) if begins_with_a_state else None
    weights_BTH = torch.randn(B, T, H, dtype=dtype)
    results = []
    for layer in (ours, theirs):
        states_BTH, last_1BH = layer(x_BTD, first_1BH)
        wanted = [x_BTD, *layer.parameters()] + ([first_1BH] if first_1BH is not None else [])
        loss = (states_BTH * weights_BTH).sum() + last_1BH.square().sum()
        results.append([states_BTH, last_1BH, *torch.autograd.grad(loss, wanted)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_the_gradient_is_that_of_the_formula() -> None:
    ours, _ = layers(torch.float64)
    x_BTD = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    first_1BH = torch.randn(1, B, H, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, first: ours(x, first)[0], (x_BTD, first_1BH))


def test_training_and_translating_compute_the_same_states() -> None:
    ours, _ = layers(torch.float32)
    x_BTD = torch.randn(B, T, D)
    with torch.no_grad():
        quiet, _ = ours(x_BTD)
    torch.testing.assert_close(ours(x_BTD)[0], quiet, rtol=0, atol=1e-6)


def test_bf16_stays_close_to_fp32() -> None:
    ours, _ = layers(torch.float32)
    x_BTD = torch.randn(B, T, D)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough, _ = ours(x_BTD)
    assert rough.dtype == torch.bfloat16
    torch.testing.assert_close(rough.float(), ours(x_BTD)[0], rtol=0, atol=0.03)


def test_steps_one_by_one_are_the_steps_at_once() -> None:
    ours, _ = layers(torch.float64)
    x_BTD = torch.randn(B, T, D, dtype=torch.float64)
    together, _ = ours(x_BTD)
    state_1BH, alone = None, []
    for t in range(T):
        states_B1H, state_1BH = ours(x_BTD[:, t : t + 1], state_1BH)
        alone.append(states_B1H)
    torch.testing.assert_close(torch.cat(alone, dim=1), together)


# -- weights that are dropped ----------------------------------------------------------------------------------------


def dropped(layer: torch.nn.Module, state: torch.Tensor) -> torch.Tensor:
    """The recurrent weights that the layer uses from this state of the generator on."""
    torch.set_rng_state(state)
    return layer.drop_weights(layer.weight_hh_l0 if isinstance(layer, GRU) else layer.weight_hh)


def test_dropped_weights_are_the_same_at_all_steps_and_others_in_the_next_batch() -> None:
    torch.manual_seed(1)
    ours, theirs = GRU(D, H, dropped_weights=0.5), torch.nn.GRU(D, H, batch_first=True)
    x_BTD, state = torch.randn(B, T, D), torch.get_rng_state()
    found, _ = ours(x_BTD)
    theirs.load_state_dict(ours.state_dict() | {"weight_hh_l0": dropped(ours, state)})
    torch.testing.assert_close(found, theirs(x_BTD)[0])
    assert 0 < (theirs.weight_hh_l0 == 0).sum() < theirs.weight_hh_l0.numel()
    assert not torch.allclose(ours(x_BTD)[0], found)


def test_what_a_gpu_would_call_gives_the_same() -> None:
    torch.manual_seed(1)
    ours = GRU(D, H, dropped_weights=0.5)
    x_BTD, state = torch.randn(B, T, D), torch.get_rng_state()
    found, _ = ours(x_BTD)
    torch.set_rng_state(state)
    with torch.no_grad():  # PyTorch's own layer, as on any other device
        torch.testing.assert_close(ours(x_BTD)[0], found)


def test_a_cell_shares_its_dropped_weights_over_the_steps() -> None:
    torch.manual_seed(1)
    ours, theirs = GRUCell(D, H, dropped_weights=0.5), torch.nn.GRUCell(D, H)
    x_BD, before_BH, state = torch.randn(B, D), torch.randn(B, H), torch.get_rng_state()
    step = ours.over_steps()
    found = step(x_BD, before_BH)
    torch.testing.assert_close(step(x_BD, before_BH), found)
    theirs.load_state_dict(ours.state_dict() | {"weight_hh": dropped(ours, state)})
    torch.testing.assert_close(theirs(x_BD, before_BH), found)


@pytest.mark.parametrize("layer", [GRU(D, H, dropped_weights=0.5), GRUCell(D, H, dropped_weights=0.5)])
def test_no_weight_is_dropped_in_translation(layer: torch.nn.Module) -> None:
    layer.eval()
    x = torch.randn(B, T, D) if isinstance(layer, GRU) else torch.randn(B, D)
    one, other = (layer(x) if isinstance(layer, GRU) else layer.over_steps()(x, torch.ones(B, H)) for _ in range(2))
    assert torch.equal(one[0], other[0])
