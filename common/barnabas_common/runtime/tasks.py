"""Background tasks with an owner.

A `TaskScope` keeps a strong reference to each task, reports its failure, and cancels the tasks in
reverse order when it is closed. (`asyncio.TaskGroup` keeps a set, whose order differs from run to
run, and cannot outlive one `async with` block.)
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

logger = logging.getLogger(__name__)

OnFailure = Callable[[str, BaseException], None]


class TaskScope:
    """The tasks of one component, which closes the scope when it is closed itself.

    `on_failure(name, error)` is called once for every task that ends with an exception other than
    cancellation. Without it the failure is logged with its traceback.
    """

    def __init__(self, name: str, on_failure: OnFailure | None = None) -> None:
        self.name = name
        self._on_failure = on_failure
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._closed = False

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Start a task. After `close` it raises RuntimeError, and the coroutine does not run."""
        if self._closed:
            coroutine.close()
            raise RuntimeError(f"{self.name} is closed: cannot start {name}")
        task = asyncio.get_running_loop().create_task(coroutine, name=f"{self.name}/{name}")
        self._tasks[task] = None
        task.add_done_callback(self._done)
        return task

    def repeat(
        self,
        work: Callable[[], Awaitable[None]],
        seconds: float,
        name: str,
        first: float | None = None,
    ) -> None:
        """Start a task that does `work` every `seconds`, for the first time after `first` seconds.

        `first` is `seconds` by default. A failure is logged, and the work is repeated as planned,
        as in Kafka's scheduler: one error in one partition must not end the ISR checks, for
        example, of a broker that still serves.
        """
        self.spawn(self._repeat(work, seconds, name, seconds if first is None else first), name)

    async def _repeat(
        self, work: Callable[[], Awaitable[None]], seconds: float, name: str, first: float
    ) -> None:
        await asyncio.sleep(first)
        while True:
            try:
                await work()
            except Exception:
                logger.exception("%s/%s failed; next attempt in %g s", self.name, name, seconds)
            await asyncio.sleep(seconds)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            return
        if self._on_failure is not None:
            self._on_failure(task.get_name(), error)
        else:
            logger.error("task %s failed", task.get_name(), exc_info=error)

    async def close(self) -> None:
        """Cancel every task but the caller's own, the last started first, and wait for its end.

        The caller may be cancelled already, as at the end of an `async with`. Only another
        cancellation ends the wait; the tasks end all the same.
        """
        self._closed = True
        current = asyncio.current_task()
        cancellations = current.cancelling() if current is not None else 0
        tasks = [task for task in reversed(list(self._tasks)) if task is not current]
        for task in tasks:
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                if current is not None and current.cancelling() > cancellations:
                    for other in tasks:
                        other.cancel()
                    raise
            except Exception:  # already reported by _done
                pass
