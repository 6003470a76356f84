"""Signals while a training runs: the first one asks for an end between two updates, the second one ends at once."""

from __future__ import annotations

import signal
from types import FrameType

from seq2seq.cli.main import Terminated


class StopRequest:
    """Within its `with` block SIGINT and SIGTERM are a request that `asked` tells of."""

    def __init__(self) -> None:
        self._signal: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopRequest:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self._before[number] = signal.signal(number, self._ask)
            except ValueError:  # not the main thread: signals are someone else's business
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _ask(self, number: int, _frame: FrameType | None) -> None:
        if self._signal is not None:
            self._raise(number)
        self._signal = number

    def asked(self) -> bool:
        """Whether a signal has come."""
        return self._signal is not None

    def end_as_asked(self) -> None:
        """Leave as the signal would have made us leave; does nothing where none has come."""
        if self._signal is not None:
            self._raise(self._signal)

    @staticmethod
    def _raise(number: int) -> None:
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated
