"""Averages of the weights: what a training validates and keeps as its best, while it goes on from the weights.

The last steps of a training jump about a good place; their mean lies nearer to it than any of them does.

`ema`: an exponential moving average, brought up to date after every update (Polyak & Juditsky 1992; as Tan & Le 2019
    and many others use it).
`last`: the mean of the weights at the last so many validations (Vaswani et al. 2017, section 6.1).

All processes of a team have the same weights and so the same averages; last/ keeps them for a resume.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from seq2seq.errors import CheckpointError

if TYPE_CHECKING:
    from seq2seq.config.schema import TrainingConfig

_PREFIX = "average."


class Averaging(ABC):
    """What the trainer asks of every kind. `model` is the one that is trained."""

    def __init__(self, model: nn.Module) -> None:
        self.names = [name for name, _ in model.named_parameters()]
        self.weights: list[Tensor] = [parameter.detach() for parameter in model.parameters()]

    @abstractmethod
    def updated(self, step: int) -> None:
        """After update `step`, counted from 1; nothing waits for a GPU here."""

    @abstractmethod
    def validated(self) -> None:
        """After a validation that has come to its end."""

    @abstractmethod
    def average(self) -> list[Tensor]:
        """The average as it stands, in the order of the parameters."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What a resume needs, by name."""

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `tensors` gave; a checkpoint of a training that did not average yet has nothing of it.

        CheckpointError where it does not fit the model.
        """

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Within, the model has the average for its weights; afterwards its own again, to the bit."""
        average = self.average()
        own = [weight.clone() for weight in self.weights]
        torch._foreach_copy_(self.weights, average)
        try:
            yield
        finally:
            torch._foreach_copy_(self.weights, own)

    def _named(self, kind: str, tensors: list[Tensor]) -> dict[str, Tensor]:
        return {f"{_PREFIX}{kind}.{name}": tensor for name, tensor in zip(self.names, tensors, strict=True)}

    def _found(self, kind: str, tensors: Mapping[str, Tensor]) -> list[Tensor] | None:
        """Copies of the tensors that were named so; None where there are none."""
        found = [tensors.get(f"{_PREFIX}{kind}.{name}") for name in self.names]
        if all(tensor is None for tensor in found):
            return None
        fitting = []
        for name, tensor, weight in zip(self.names, found, self.weights, strict=True):
            if tensor is None or tensor.shape != weight.shape or tensor.dtype != weight.dtype:
                raise CheckpointError(
                    f"The checkpoint's averaged weights do not fit the model ({name}); restore a copy."
                )
            if not tensor.isfinite().all():
                raise CheckpointError(f"The checkpoint's averaged weights are not finite ({name}); restore a copy.")
            fitting.append(tensor.clone().to(weight.device))
        return fitting


class NoAveraging(Averaging):
    """The weights themselves."""

    def updated(self, step: int) -> None:
        pass

    def validated(self) -> None:
        pass

    def average(self) -> list[Tensor]:
        return self.weights

    def tensors(self) -> dict[str, Tensor]:
        return {}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        pass

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        yield


class MovingAverage(Averaging):
    """a_n = d_n a_{n-1} + (1 - d_n) w_n, with d_n = min(decay, (1 + n) / (warmup + n)) at update n.

    The rising d_n lets the first weights, which are chance, be forgotten soon.
    """

    def __init__(self, model: nn.Module, decay: float, warmup: int) -> None:
        super().__init__(model)
        self.decay, self.warmup = decay, warmup
        self._average = [weight.clone() for weight in self.weights]

    def updated(self, step: int) -> None:
        decay = min(self.decay, (1 + step) / (self.warmup + step))
        torch._foreach_lerp_(self._average, self.weights, 1.0 - decay)

    def validated(self) -> None:
        pass

    def average(self) -> list[Tensor]:
        return self._average

    def tensors(self) -> dict[str, Tensor]:
        return self._named("ema", self._average)

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        found = self._found("ema", tensors)
        self._average = [weight.clone() for weight in self.weights] if found is None else found


class MeanOfLast(Averaging):
    """The mean of the weights now and at the `count` - 1 validations before; of fewer, at the beginning."""

    def __init__(self, model: nn.Module, count: int) -> None:
        super().__init__(model)
        self.count = count
        self._kept: list[list[Tensor]] = []  # the oldest first; without those of now

    def updated(self, step: int) -> None:
        pass

    def validated(self) -> None:
        self._kept.append([weight.clone() for weight in self.weights])
        self._kept = self._kept[max(0, len(self._kept) - self.count + 1) :]

    def average(self) -> list[Tensor]:
        mean = [weight.clone() for weight in self.weights]
        for kept in reversed(self._kept):
            torch._foreach_add_(mean, kept)
        torch._foreach_div_(mean, float(1 + len(self._kept)))
        return mean

    def tensors(self) -> dict[str, Tensor]:
        return {
            name: tensor
            for age, kept in enumerate(reversed(self._kept), start=1)
            for name, tensor in self._named(f"last{age}", kept).items()
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        found = [self._found(f"last{age}", tensors) for age in range(1, self.count)]
        self._kept = [kept for kept in reversed(found) if kept is not None]


def build_averaging(model: nn.Module, settings: TrainingConfig) -> Averaging:
    """The kind that `training.average` names."""
    match settings.average:
        case "ema":
            return MovingAverage(model, settings.average_decay, settings.average_warmup)
        case "last":
            return MeanOfLast(model, settings.average_last)
        case _:
            return NoAveraging(model)
