"""Several processes, one training: who is who, and what they tell each other.

`torchrun` starts the same program several times, on one machine or on many, and gives every process a number. All have
the same weights; each computes a share of every update's batches, and the gradients are added up, so the weights stay
the same. Process 0 leads: it alone writes files and talks to people. One process without torchrun is a team of one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from seq2seq.errors import DeviceError, TrainingError

Thing = TypeVar("Thing")
# Longer than the leader takes to prepare a corpus or to write a checkpoint; a process that dies is noticed by torchrun.
_LONGEST_WAIT = timedelta(hours=12)


@dataclass(frozen=True)
class Team:
    """The processes of a training: `rank` of `size`; `restarts` counts how often torchrun has begun anew."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    restarts: int = 0

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def add_up(self, *tensors: Tensor) -> None:
        """Replace each tensor by its sum over all processes."""
        if self.size == 1:
            return
        for tensor in tensors:
            with _together():
                total = tensor.clone() if tensor.is_inference() else tensor
                dist.all_reduce(total)
            if total is not tensor:
                tensor.copy_(total)

    def collect(self, thing: Thing) -> list[Thing]:
        """What each process holds, in the order of their numbers."""
        if self.size == 1:
            return [thing]
        things: list[Any] = [None] * self.size
        with _together():
            dist.all_gather_object(things, thing)
        return things

    def wait(self) -> None:
        """Go on when all have come here. A signal is heard meanwhile, as it is not within a library of C++."""
        if self.size == 1:
            return
        with _together():
            met = dist.all_reduce(torch.zeros(1, device=self.device("cpu")), async_op=True)
            while not met.is_completed():
                time.sleep(0.02)
            met.wait()

    def share(self, batches: Sequence[Any]) -> list[Any]:
        """This process's part of a list of work."""
        return list(batches[self.rank :: self.size])

    def device(self, name: str) -> str:
        """What a device means for this process: of several GPUs in a machine, its own."""
        if self.size == 1 or not torch.cuda.is_available() or dist.get_backend() != "nccl":
            return name
        return f"cuda:{self.local_rank}"


ALONE = Team()


@contextlib.contextmanager
def _together() -> Iterator[None]:
    """TrainingError where another process has gone.

    Outside of inference mode, to whose tensors the threads of PyTorch 2.3 cannot write.
    """
    try:
        with torch.inference_mode(False):
            yield
    except RuntimeError as error:
        raise TrainingError(
            f"Another process of this training has ended ({str(error).splitlines()[0][:200]})."
        ) from None


def started_by_torchrun() -> bool:
    """Whether this process is one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextlib.contextmanager
def joined(device: str) -> Iterator[Team]:
    """The team that torchrun has started, or a team of one. `device` is the setting; several GPUs need it to be auto or
    cuda, since each process takes one of its own."""
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    if not started_by_torchrun():
        yield Team(restarts=restarts)
        return
    rank, size, local_rank = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    on_gpus = device in ("auto", "cuda") and torch.cuda.is_available()
    if on_gpus and local_rank >= torch.cuda.device_count():
        raise DeviceError(
            f"torchrun started at least {local_rank + 1} processes, and there are {torch.cuda.device_count()} GPUs; "
            "start one for each GPU (--nproc-per-node), or set training.device=cpu."
        )
    if not on_gpus and device not in ("auto", "cpu"):
        raise DeviceError(f"Several processes cannot share training.device {device}; set it to auto, cuda or cpu.")
    if on_gpus:
        torch.cuda.set_device(local_rank)
    # Whoever waits in a library of C++ hears no signal through Python; torchrun must be able to end it.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    store, _, _ = next(rendezvous("env://", rank, size, timeout=_LONGEST_WAIT))
    store.set_timeout(_LONGEST_WAIT)
    # torchrun keeps one store through all its restarts, and with it the addresses that dead processes have left there.
    # Under a name of their own the new ones find each other; otherwise they may call the dead and wait.
    named = dist.PrefixStore(f"seq2seq/restart {restarts} of {size}", store)  # type: ignore[attr-defined]
    backend = "nccl" if on_gpus else "gloo"
    dist.init_process_group(backend, store=named, rank=rank, world_size=size, timeout=_LONGEST_WAIT)
    try:
        yield Team(rank, size, local_rank, restarts)
    finally:
        with contextlib.suppress(RuntimeError):  # the others may be gone
            dist.destroy_process_group()
