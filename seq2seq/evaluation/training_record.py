"""What the record of a training (metrics.jsonl) says of how it ended: too early, too late, or in time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Validations that must have been, before anything is said about their course.
_FEWEST = 3


@dataclass(frozen=True)
class TrainingRecord:
    """The course of a training in a few numbers; losses in nats a target piece."""

    reason: str | None  # why it ended: epochs, max_steps, max_minutes, patience, stopped; None where it has not
    best_loss: float | None
    last_loss: float | None
    still_gaining: float | None  # what the last third of the validations has added to the best BLEU, in points
    still_falling: float | None  # by how much the last third of them has lowered the loss, in nats
    lowest_at: int | None  # step of the lowest validation loss
    last_step: int


def training_record(events: Sequence[Mapping[str, Any]]) -> TrainingRecord | None:
    """The record in short. None where there were too few validations to see a course."""
    validations = [event for event in events if event["event"] == "validation"]
    losses = [(loss, event["step"]) for event in validations if (loss := number(event, "loss")) is not None]
    scores = [bleu for event in validations if (bleu := number(event, "bleu")) is not None]
    if min(len(losses), len(scores)) < _FEWEST:
        return None
    ends = [event for event in events if event["event"] == "end"]
    before, loss_before = max(scores[: -(len(scores) // 3)]), min(losses[: -(len(losses) // 3)])[0]
    lowest, lowest_at = min(losses)
    return TrainingRecord(
        reason=str(ends[-1].get("reason")) if ends else None,
        best_loss=lowest,
        last_loss=losses[-1][0],
        still_gaining=max(0.0, max(scores) - before),
        still_falling=max(0.0, loss_before - lowest),
        lowest_at=lowest_at,
        last_step=losses[-1][1],
    )


def number(event: Mapping[str, Any], key: str) -> float | None:
    """A finite number of an event; None for what is missing, null or not finite."""
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)
