"""What the three blocking clients share: they wrap an asyncio client and wait for its answers."""

import os
from collections.abc import Coroutine
from typing import Any, TypeVar

from barnabas.errors import ClientError, ClosedError
from barnabas.sync.loop_thread import LoopThread

T = TypeVar("T")


class Blocking:
    """Guards against use after close and after a fork."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._thread = LoopThread.shared()
        self._closed = False

    def _check_usable(self) -> None:
        if self._thread.process != os.getpid():
            raise ClientError(
                f"this {self._what} was made in process {self._thread.process} and the process was "
                f"forked since: make a new {self._what} in each process"
            )
        if self._closed:
            raise ClosedError(f"this {self._what} is closed")

    def _call(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        try:
            self._check_usable()
        except ClientError:
            coroutine.close()
            raise
        return self._thread.call(coroutine, timeout)
