"""Sums over the processes of one machine, through memory that all of them can see.

Messages between processes copy every number into the kernel and out of it again, on the very cores that could be
computing. Here each process lays its numbers where the others read them and adds up its share of the sums; what is
sent is only word that it is ready.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from seq2seq.training.team import Team

_FOLDER = Path("/dev/shm")  # Linux keeps it in memory
_FLOAT = 4


class SharedSums:
    """Room for `count` fp32 numbers of each process and for their sums. `shared_sums` makes it."""

    def __init__(self, team: Team, memory: mmap.mmap, count: int) -> None:
        self._team = team
        rows = torch.frombuffer(memory, dtype=torch.float32).view(team.size + 1, count)
        self._own, self._sums = rows[team.rank], rows[team.size]
        first, last = (count * rank // team.size for rank in (team.rank, team.rank + 1))
        self._share, self._of_share = self._sums[first:last], [row[first:last] for row in rows[: team.size]]

    def add_up(self, parts: Sequence[Tensor], counts: Tensor) -> Tensor:
        """The sums of all processes' `parts`, laid end to end, each process its own copy, which stays until the next
        call. `counts` becomes its sum.

        Everyone's numbers are there when all have sent their counts, and the sums at the second meeting. Nobody lays
        down new numbers before that one, nor new sums before the next first one, when all are done with the old.
        """
        torch.cat([part.flatten() for part in parts], out=self._own)
        self._team.add_up(counts)
        self._share.copy_(self._of_share[0])
        for others in self._of_share[1:]:
            self._share += others
        self._team.add_up(torch.zeros(1))
        return self._own.copy_(self._sums)  # whoever gets them may change them, by clipping for one


def shared_sums(team: Team, count: int) -> SharedSums | None:
    """Memory for the sums of `count` numbers; None where the processes are not on one machine, or where it has no such
    memory to spare. All of them must call it."""
    if team.size == 1 or int(os.environ.get("LOCAL_WORLD_SIZE", "0")) != team.size:
        return None
    size, path = (team.size + 1) * count * _FLOAT, ""
    with contextlib.ExitStack() as when_all_have_it:
        if team.leads:
            with contextlib.suppress(OSError):
                handle, path = tempfile.mkstemp(prefix="seq2seq-", dir=_FOLDER)
                when_all_have_it.callback(os.unlink, path)
                with os.fdopen(handle, "r+b") as file:
                    os.posix_fallocate(file.fileno(), 0, size)  # what is promised and not there would kill a process
        path = team.collect(path)[0]
        memory = None
        with contextlib.suppress(OSError, ValueError), Path(path).open("r+b") as file:
            memory = mmap.mmap(file.fileno(), size)  # ValueError: there was no room, and the file is shorter
        everyone = all(team.collect(memory is not None))
    return SharedSums(team, memory, count) if everyone and memory is not None else None
