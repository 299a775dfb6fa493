"""Leaving early: a signal asks a process to leave, and the work under way is given up as if it had not begun.

Signals are the process's own, and so is what they asked: nobody has to hand it on.
"""

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from dpvision.errors import Interrupted
from dpvision.training.devices import Devices

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)  # a cluster sends the last ahead of a time limit

Piece = TypeVar("Piece")

_received: list[int] = []


@contextmanager
def leaving_on_signals() -> Iterator[None]:
    """Take signals inside as a request to leave; outside they end the process, as ever."""
    before = {number: signal.signal(number, lambda number, _: _received.append(number)) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _received.clear()


def asked_to_leave() -> int:
    """Return the first signal that asked this process to leave; 0 where none did."""
    return _received[0] if _received else 0


def until_asked_to_leave(pieces: Iterable[Piece], devices: Devices) -> Iterator[Piece]:
    """Yield the pieces of some work until this process is asked to leave; then raise Interrupted in all processes of the run.

    The processes agree after the last piece alone: between two pieces none waits for another.
    """
    asked = False
    for piece in pieces:
        if asked := bool(asked_to_leave()):
            break
        yield piece
    if any(devices.largest(asked)):
        raise Interrupted
