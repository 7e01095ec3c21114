"""Lets commands clean up after any termination signal: members leave, records are delivered."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C.

    What is ignored stays ignored: `nohup` does that to SIGHUP. A shell makes the background
    processes of a script ignore SIGINT, but they are ended by SIGTERM nevertheless.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    before: list[tuple[int, Any]] = [
        (number, signal.signal(number, interrupt))
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    ]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
