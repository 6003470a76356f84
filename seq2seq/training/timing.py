"""How long would a training take on this machine? Some of its updates are made, with a model that is thrown away."""

from __future__ import annotations

import functools
import itertools
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

# Batches that come first and are not counted, since a library prepares itself for what it has not met yet, and those
# that are counted; fewer of either where they take so many seconds.
_FIRST, _COUNTED = 3, 40
_SECONDS = 10.0


def timed(work: Callable[[], object], device: torch.device) -> float:
    """Seconds of a piece of work, waiting for a GPU to be done with it."""
    wait: Callable[[], object] = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    began = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - began


def seconds_a_batch(config: Config, prepared: Prepared, batches: Plan, device: torch.device) -> float:
    """The mean over some of the batches, each made an update of its own. It takes half a minute, or two batches."""
    settings, tokenizer = config.training, prepared.tokenizer
    model = build_model(config.model, tokenizer.source_size, tokenizer.target_size, seed=config.seed).to(device).train()
    precision = choose_precision(settings.precision, device)
    updates = Updates.configured(
        settings, model, prepared.train, device, precision, ALONE, lambda _: None, lambda _: None
    )
    progress, places = Progress(loss_scale=updates.first_scale), itertools.count()

    def mean(most: int) -> float:
        seconds, count = 0.0, 0
        while count < most and seconds < _SECONDS:
            place = next(places)
            batch, following = batches[place % len(batches)], batches[(place + 1) % len(batches)]
            # A learning rate of zero: what is not learnt takes as long.
            seconds += timed(functools.partial(updates.make, progress, 0.0, [batch], [following]), device)
            count += 1
        return seconds / count

    with fast_products():
        mean(_FIRST)
        return mean(_COUNTED)
