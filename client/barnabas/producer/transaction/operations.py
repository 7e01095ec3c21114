"""What the application has asked for, one thing at a time, until it has learned the outcome.

An operation runs in the background. Its caller waits for `max_block_ms`, and can wait again by
calling it again, as in Kafka: a commit with an unknown outcome must not be taken for an abort.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from barnabas_common.errors import (
    ClientError,
    ClosedError,
    RequestTimedOutError,
    TransactionAbortedError,
)
from barnabas_common.runtime import TaskScope

Work = Callable[[], Coroutine[Any, Any, None]]


class _Operation(NamedTuple):
    name: str
    arguments: tuple[object, ...]
    task: asyncio.Task[None]


class Operations:
    """`seconds`: how long a caller waits. `last_failure`: the words for why it takes so long."""

    def __init__(
        self, tasks: TaskScope, seconds: float, last_failure: Callable[[], object]
    ) -> None:
        self._tasks = tasks
        self._seconds = seconds
        self._last_failure = last_failure
        self._current: _Operation | None = None
        self._abandoned: _Operation | None = None

    def is_new(self, name: str, *arguments: object) -> bool:
        """Whether this call starts an operation; False: it waits for one again.

        Raises `ClientError` while the outcome of another one is open.
        """
        current = self._current
        if current is None or _has_failed(current.task):
            self._current = None  # after a failure the producer's state says what is possible
            return True
        if (current.name, current.arguments) != (name, arguments):
            raise ClientError(
                f"{name}: the outcome of {current.name} is not known: call that again first"
            )
        return False

    async def run(self, work: Work, name: str, *arguments: object) -> None:
        """Wait for the operation, which begins with the first call. Raises what it raises."""
        if self._current is None:
            task = self._tasks.spawn(work(), name)
            self._current = _Operation(name, arguments, task)
        await self.wait()

    async def wait(self) -> None:
        """Wait for the operation that was begun, if there is one."""
        current = self._current
        if current is None:
            return
        try:
            async with asyncio.timeout(self._seconds):
                # Waits for the outcome alone: a caller that is cancelled does not end the work.
                await asyncio.shield(asyncio.gather(current.task, return_exceptions=True))
        except TimeoutError:
            raise RequestTimedOutError(
                f"{current.name} has not ended after {self._seconds:.1f} s: call it again; "
                f"last failure: {self._last_failure()}"
            ) from None
        if self._current is current:
            self._current = None
        if current is self._abandoned:
            raise TransactionAbortedError(f"{current.name}: the transaction was aborted meanwhile")
        if current.task.cancelled():
            raise ClosedError(f"{current.name}: the producer was closed, the outcome is not known")
        current.task.result()

    def is_open(self, name: str) -> bool:
        """Whether the application has not learned the outcome of this operation yet."""
        return self._current is not None and self._current.name == name

    async def abandon(self, *names: str) -> None:
        """End the operation, if it is one of these, without an outcome."""
        current = self._current
        if current is not None and current.name in names:
            self._abandoned = current
            current.task.cancel()
            await asyncio.gather(current.task, return_exceptions=True)
            self._current = None


def _has_failed(task: asyncio.Task[None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
