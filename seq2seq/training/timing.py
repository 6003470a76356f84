"""How long would a training take on this machine? Some of its updates are made, with a model that is thrown away."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from seq2seq.corpus.batches import Plan
from seq2seq.model.device import choose_precision, fast_products
from seq2seq.model.translation_model import build_model
from seq2seq.training.progress import Progress
from seq2seq.training.team import ALONE
from seq2seq.training.updates import Updates

if TYPE_CHECKING:
    from seq2seq.config.schema import Config
    from seq2seq.training.prepare import Prepared

# Updates that are made first and not counted: a library prepares itself for what it has not met yet.
_FIRST = 3
# So many are counted, or fewer where they take long.
_COUNTED, _SECONDS = 40, 20.0


def timed(work: Callable[[], object], device: torch.device) -> float:
    """Seconds of a piece of work, waiting for a GPU to be done with it."""
    wait: Callable[[], object] = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    began = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - began


def seconds_an_update(config: Config, prepared: Prepared, batches: Plan, device: torch.device) -> float:
    """The mean over some of the updates that an epoch of these batches would make."""
    settings, tokenizer = config.training, prepared.tokenizer
    model = build_model(config.model, tokenizer.source_size, tokenizer.target_size, seed=config.seed).to(device).train()
    precision = choose_precision(settings.precision, device)
    updates = Updates.configured(
        settings, model, prepared.train, device, precision, ALONE, lambda _: None, lambda _: None
    )
    progress, seconds, counted = Progress(loss_scale=updates.first_scale), 0.0, 0
    with fast_products():
        for number in range(_FIRST + _COUNTED):
            group, following = (
                [batches[place % len(batches)] for place in range(first, first + settings.accumulate)]
                for first in (number * settings.accumulate, (number + 1) * settings.accumulate)
            )
            # A learning rate of zero: what is not learnt takes as long.
            taken = timed(functools.partial(updates.make, progress, 0.0, group, following), device)
            if number >= _FIRST:
                seconds, counted = seconds + taken, counted + 1
            if seconds > _SECONDS:
                break
    return seconds / counted
