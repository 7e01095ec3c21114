"""Lets commands that own processes clean up after any termination signal."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C, so that the command cleans up."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    before: list[tuple[int, Any]] = [
        (number, signal.signal(number, interrupt)) for number in (signal.SIGTERM, signal.SIGHUP)
    ]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
