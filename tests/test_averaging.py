"""Claims about averaged weights: they are what a pencil gives, and the training goes on with its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from conftest import in_process
from safetensors.torch import load_file
from torch import Tensor, nn

from seq2seq.config.schema import TrainingConfig
from seq2seq.errors import CheckpointError
from seq2seq.training.averaging import Averaging, build_averaging


def averaging(**settings: object) -> tuple[nn.Linear, Averaging]:
    torch.manual_seed(1)
    model = nn.Linear(3, 2)
    return model, build_averaging(model, TrainingConfig.model_validate(settings))


@torch.no_grad()
def moved(model: nn.Module, seed: int) -> list[Tensor]:
    """Every weight somewhere else; returns copies in float64."""
    torch.manual_seed(seed)
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter))
    return [parameter.double().clone() for parameter in model.parameters()]


def close(found: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=0.0, atol=1e-6)


def test_a_moving_average_is_the_recurrence_by_hand() -> None:
    model, kept = averaging(average="ema", average_decay=0.6, average_warmup=4)
    expected = [parameter.detach().double().clone() for parameter in model.parameters()]
    for step, decay in enumerate((2 / 5, 3 / 6, 4 / 7, 0.6, 0.6), start=1):
        weights = moved(model, step)
        kept.updated(step)
        expected = [decay * old + (1 - decay) * new for old, new in zip(expected, weights, strict=True)]
        close(kept.average(), expected)


def test_without_a_warmup_the_decay_is_whole_from_the_first_update() -> None:
    model, kept = averaging(average="ema", average_decay=0.75, average_warmup=1)
    before = [parameter.detach().double().clone() for parameter in model.parameters()]
    weights = moved(model, 1)
    kept.updated(1)
    close(kept.average(), [0.75 * old + 0.25 * new for old, new in zip(before, weights, strict=True)])


def test_the_mean_of_the_last_is_of_so_many_and_of_fewer_at_first() -> None:
    model, kept = averaging(average="last", average_last=3)
    seen = []
    for number in range(1, 6):
        seen.append(moved(model, number))
        kept.updated(number)
        close(kept.average(), [sum(some[-3:]) / len(some[-3:]) for some in zip(*seen, strict=True)])
        kept.validated()
    assert len(kept.tensors()) == 2 * 2


@pytest.mark.parametrize("kind", ["none", "ema", "last"])
def test_the_model_has_the_average_for_a_while_and_then_its_own_weights_to_the_bit(kind: str) -> None:
    model, kept = averaging(average=kind)
    for step in (1, 2):
        moved(model, step)
        kept.updated(step)
        kept.validated()
    own = [parameter.detach().clone() for parameter in moved(model, 3)]
    kept.updated(3)
    with pytest.raises(ZeroDivisionError), kept.in_place():
        assert all(map(torch.equal, model.parameters(), kept.average())) or kind == "last"
        assert all(torch.equal(p.double(), w) for p, w in zip(model.parameters(), own, strict=True)) == (kind == "none")
        raise ZeroDivisionError
    assert all(torch.equal(p.double(), w) for p, w in zip(model.parameters(), own, strict=True))


@pytest.mark.parametrize("kind", ["ema", "last"])
def test_a_resumed_average_goes_on_to_the_bit(kind: str) -> None:
    (model, kept), (other, resumed) = averaging(average=kind), averaging(average=kind)
    for step in range(1, 8):
        moved(model, step)
        moved(other, step)
        kept.updated(step)
        if step == 4:
            resumed.restore({name: tensor.clone() for name, tensor in kept.tensors().items()})
        elif step > 4:
            resumed.updated(step)
        assert step < 4 or all(map(torch.equal, kept.average(), resumed.average()))
        kept.validated()
        if step >= 4:
            resumed.validated()


@pytest.mark.parametrize("kind", ["ema", "last"])
def test_a_damaged_average_is_refused(kind: str) -> None:
    model, kept = averaging(average=kind)
    moved(model, 1)
    kept.updated(1)
    kept.validated()
    tensors = kept.tensors()
    name = min(tensors)
    for spoilt in (tensors[name][:1], tensors[name].double(), tensors[name] * float("nan"), None):
        forged = {key: value for key, value in (tensors | {name: spoilt}).items() if value is not None}
        with pytest.raises(CheckpointError, match="averaged weights"):
            kept.restore(forged)
    kept.restore({})


def test_the_best_is_the_average_and_the_last_is_not(tiny: Path) -> None:
    settings = ("data.test=null", "training.average=ema", "training.epochs=1", "training.choose_by=loss")
    done = in_process("train", tiny / "tiny.yaml", *[word for setting in settings for word in ("--set", setting)])
    assert done.status == 0, done.err
    files = [tiny / "run" / name for name in ("best/weights", "last/weights", "last/training")]
    best, last, training = (load_file(file.with_suffix(".safetensors")) for file in files)
    for name, weight in best.items():
        assert torch.equal(weight, training[f"average.ema.{name}"])
        assert not torch.equal(weight, last[name])
