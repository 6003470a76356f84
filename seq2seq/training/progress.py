"""Where a training stands, in plain values: all that a resume needs beside weights, moments and random generators."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch import Tensor

from seq2seq.errors import CheckpointError
from seq2seq.training.team import Team

if TYPE_CHECKING:
    from seq2seq.training.validation import ValidationResult

_LARGEST = 2**53  # of what is counted; beyond it a float skips whole numbers


@dataclass
class Progress:
    """Counts are from the start of the run, resumes included."""

    step: int = 0  # updates made
    epoch: int = 0  # epochs completed
    position: int = 0  # batches of the current epoch that are used up
    target_tokens: int = 0
    elapsed_seconds: float = 0.0
    skipped: int = 0  # updates skipped because a number was not finite
    skipped_in_a_row: int = 0
    loss_scale: float = 1.0  # what the loss is multiplied by on its way back; for fp16, else 1
    updates_at_scale: int = 0
    risk_epoch: int | None = None  # the epoch, from 0, and the update after which minimum risk training began
    risk_step: int = 0
    # Validation
    validation_due: bool = False  # stopped after the update, before its validation
    best_score: float | None = None  # higher is better, whatever it is made of
    best_step: int = 0
    best_scores: dict[str, float | None] | None = None
    lowest_loss: float | None = None  # of any validation, be it the best or not
    validations_since_best: int = 0  # since the last one with a better score or a lower loss
    chosen_by: Literal["bleu", "chrf", "loss"] = "bleu"  # what best_score is
    judged_on: str = ""  # and on which validation set
    plateau_scale: float = 1.0
    plateau_waited: int = 0
    # What the next report will be made of
    interval_loss: float = 0.0
    interval_tokens: int = 0
    interval_seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Progress:
        """CheckpointError where a value is missing or of another kind."""
        from pydantic import TypeAdapter, ValidationError

        missing = [field.name for field in fields(cls) if field.name not in values]
        if missing:
            raise CheckpointError(f"The checkpoint says nothing of {missing[0]}; it cannot be resumed.")
        try:
            progress = TypeAdapter(cls).validate_python(dict(values), strict=False)
        except ValidationError as error:
            raise _impossible(".".join(map(str, error.errors()[0]["loc"]))) from None
        for name, value in asdict(progress).items():
            # All are counts, times or sums of losses, but for the score, where a loss counts as negative.
            if isinstance(value, (int, float)) and not (name == "best_score" or 0 <= value <= _LARGEST):
                raise _impossible(name)
        if not re.fullmatch("[0-9a-f]{64}|", progress.judged_on):
            raise _impossible("judged_on")
        return progress


def _impossible(name: str) -> CheckpointError:
    return CheckpointError(f"The checkpoint's {name} is nothing that it can be; it cannot be resumed.")


def gathered_states(team: Team, device: torch.device) -> dict[str, Tensor]:
    """The state of every random generator that a training draws from, of all its processes."""
    states = {"random.cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["random.cuda"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        states["random.mps"] = torch.mps.get_rng_state()
    everyone = team.collect(states)
    return {_of(name, rank): state for rank, one in enumerate(everyone) for name, state in one.items()}


def restore_random_states(team: Team, device: torch.device, states: Mapping[str, Tensor]) -> None:
    """Put the generators of this process back. Left alone are those of a device that is not used now, and those of a
    process that the training did not have before."""
    mine = {name: states.get(_of(name, team.rank)) for name in ("random.cpu", "random.cuda", "random.mps")}
    try:
        if mine["random.cpu"] is not None:
            torch.set_rng_state(mine["random.cpu"])
        if device.type == "cuda" and mine["random.cuda"] is not None:
            torch.cuda.set_rng_state(mine["random.cuda"], device)
        elif device.type == "mps" and mine["random.mps"] is not None:
            torch.mps.set_rng_state(mine["random.mps"])
    except (RuntimeError, TypeError):
        raise CheckpointError("The checkpoint's random generators cannot be put back; restore a copy.") from None


def _of(name: str, rank: int) -> str:
    return f"{name}.{rank}" if rank else name


@dataclass(frozen=True)
class Summary:
    """How a training ended."""

    reason: str  # epochs, max_steps, max_minutes, patience, or stopped
    step: int
    epochs: int
    best_step: int
    best_scores: dict[str, float | None] | None
    elapsed_seconds: float
    peak_memory_mb: float | None
    target_tokens: int
    skipped: int


class Listener(Protocol):
    """Who wants to know how a training goes. The trainer never prints."""

    def started(self, progress: Progress, total_updates: int) -> None:
        """Before the first update of this process."""

    def updated(self, progress: Progress, tokens: int) -> None:
        """After each update; `tokens` were real target tokens. Must be quick."""

    def validating(self, done: int, of: int) -> None:
        """So many lines of the validation set are translated, of so many."""

    def reported(self, event: Mapping[str, Any]) -> None:
        """An event of metrics.jsonl: train, validation or end."""

    def validated(self, step: int, result: ValidationResult) -> None:
        """After the event of a validation: all of its result, translations included."""

    def said(self, message: str) -> None:
        """A sentence for people."""


class Silent:
    """A listener that does not listen."""

    def started(self, progress: Progress, total_updates: int) -> None:
        pass

    def updated(self, progress: Progress, tokens: int) -> None:
        pass

    def validating(self, done: int, of: int) -> None:
        pass

    def reported(self, event: Mapping[str, Any]) -> None:
        pass

    def validated(self, step: int, result: ValidationResult) -> None:
        pass

    def said(self, message: str) -> None:
        pass


class Several:
    """A listener that passes everything on to others, in their order."""

    def __init__(self, *listeners: Listener) -> None:
        self.listeners = listeners

    def started(self, progress: Progress, total_updates: int) -> None:
        for listener in self.listeners:
            listener.started(progress, total_updates)

    def updated(self, progress: Progress, tokens: int) -> None:
        for listener in self.listeners:
            listener.updated(progress, tokens)

    def validating(self, done: int, of: int) -> None:
        for listener in self.listeners:
            listener.validating(done, of)

    def reported(self, event: Mapping[str, Any]) -> None:
        for listener in self.listeners:
            listener.reported(event)

    def validated(self, step: int, result: ValidationResult) -> None:
        for listener in self.listeners:
            listener.validated(step, result)

    def said(self, message: str) -> None:
        for listener in self.listeners:
            listener.said(message)
