"""Signals: how a command ends that was asked to, and how a training is asked to end after the update in hand.

SIGINT (Ctrl-C), SIGTERM and SIGHUP (a terminal that closes) become exceptions, so that files are closed and the status
is ours. Never in the middle of an import: libraries of C++ swallow an exception that comes while they load, or are left
half loaded; so there a signal waits.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_AGAIN = 0.02  # seconds after which a signal that had to wait is looked at again


class Terminated(BaseException):
    """A signal other than SIGINT arrived. Not an Exception, so that nothing takes it for a failure of its own."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__(number)
        self.number = number


def end_by(number: int) -> NoReturn:
    """Unwind the stack as the signal asks."""
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within its `with` block an ending signal unwinds the stack, though never in the middle of an import."""
    waiting: list[int] = []

    def deliver(number: int, frame: FrameType | None) -> None:
        if number not in _ENDING:  # the clock: one had to wait
            number = waiting[0]
        if _is_importing(frame) and hasattr(signal, "setitimer"):
            waiting[:] = waiting or [number]
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
            return
        waiting.clear()
        end_by(number)

    with contextlib.ExitStack() as stack:
        alarm = (signal.SIGALRM,) if hasattr(signal, "SIGALRM") else ()
        for number in (*_ENDING, *alarm):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as by nohup
                stack.enter_context(_handled(number, deliver))
        yield


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def _handled(number: int, handler: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    try:
        before = signal.signal(number, handler)
    except ValueError:  # not the main thread: signals are someone else's business
        yield
        return
    try:
        yield
    finally:
        signal.signal(number, before)


class StopRequest:
    """Within its `with` block an ending signal is a request that `asked` tells of; the second one ends at once."""

    def __init__(self) -> None:
        self._signal: int | None = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> StopRequest:
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGINT:
                self._stack.enter_context(_handled(number, self._ask))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _ask(self, number: int, _frame: FrameType | None) -> None:
        if self._signal is not None:
            end_by(number)
        self._signal = number

    def asked(self) -> bool:
        """Whether a signal has come."""
        return self._signal is not None

    def end_as_asked(self) -> None:
        """Leave as the signal would have made us leave; does nothing where none has come."""
        if self._signal is not None:
            end_by(self._signal)
