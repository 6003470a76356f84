"""Several processes that translate one file: a processor of many cores is better used by many small products side by
side than by threads within one.

Each process has the whole model and a share of the cores. What a sentence becomes does not depend on the sentences
beside it, so the result is that of one process.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from seq2seq.errors import DecodingError
from seq2seq.translation.translator import Translation, Translator

# Parts for each process, longest sentences first: the last to end has little left to do.
_PARTS_EACH = 4

_own: Translator | None = None  # this process's, in a process that was made here


class SeveralProcesses:
    """As `Translator.translate`, by several processes; `load` makes the translator in each of them."""

    def __init__(self, load: Callable[[], Translator], processes: int) -> None:
        threads = max(1, (os.cpu_count() or 1) // processes)
        self._pool = ProcessPoolExecutor(
            processes, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(load, threads)
        )
        self._processes = processes

    def translate(self, lines: Sequence[str], *, batch_size: int, **how: Any) -> Iterator[Translation]:
        """Translate the lines, in their order. All of them are translated before the first comes back."""
        by_length = sorted(range(len(lines)), key=lambda number: len(lines[number]), reverse=True)
        size = max(batch_size, -(-len(lines) // (_PARTS_EACH * self._processes)))
        parts = [by_length[first : first + size] for first in range(0, len(lines), size)]
        waiting: list[tuple[list[int], Future[list[Translation]]]] = []
        found: dict[int, Translation] = {}
        try:
            for part in parts:
                texts = [lines[number] for number in part]
                waiting.append((part, self._pool.submit(_translated, texts, {"batch_size": batch_size, **how})))
            for part, future in waiting:
                found.update(zip(part, future.result(), strict=True))
        except BrokenProcessPool:
            raise DecodingError(
                "A process that translates has ended before its work was done; where memory does not suffice for "
                f"{self._processes} of them, use fewer --processes."
            ) from None
        for number in range(len(lines)):
            yield found[number]

    def end(self) -> None:
        """No further work: processes that are at work are stopped."""
        workers = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()


def _begin(load: Callable[[], Translator], threads: int) -> None:
    import torch

    from seq2seq.model.device import keep_freed_memory

    global _own
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes, and the first one decides
    torch.set_num_threads(threads)
    keep_freed_memory()
    _own = load()


def _translated(lines: list[str], how: dict[str, Any]) -> list[Translation]:
    assert _own is not None
    return list(_own.translate(lines, **how))
