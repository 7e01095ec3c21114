"""Processes that run work beside this one, and leave nothing behind when it is interrupted.

Not `multiprocessing.Pool`: its semaphores outlive a process that ends at once, and it waits forever
for a worker that has died.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.resource_tracker import ensure_running
from typing import Generic, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


class Worker(Generic[In, Out]):
    """Applies `work` to the tasks, in order and ahead of `next`; a new process every `per_process`
    tasks gives memory back."""

    def __init__(self, work: Callable[[In], Out], tasks: Sequence[In], per_process: int) -> None:
        self._work = work
        self._parts = [
            tasks[first : first + per_process] for first in range(0, len(tasks), per_process)
        ]
        self._left = 0
        self._start()

    def next(self) -> Out:
        """The next result; raises what the work raised, or EOFError if its process has died."""
        if self._left == 0:
            self.end()
            self._start()
        self._left -= 1
        result, error = self._receiver.recv()
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join()
        self._receiver.close()

    def _start(self) -> None:
        part = self._parts.pop(0) if self._parts else []
        self._left = len(part)
        context = get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(self._work, part, sender), daemon=True)
        with _deaf_to_interrupts():
            self._process.start()
        sender.close()


def _run(work: Callable[[In], Out], tasks: Sequence[In], sender: Connection) -> None:
    with suppress(BrokenPipeError):  # the process that wants the results has ended
        for task in tasks:
            try:
                result = work(task)
            except Exception as error:
                sender.send((None, error))
            else:
                sender.send((result, None))


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that are started in the block never get SIGINT.

    A shell sends it to all of them, and the one that started the others ends them.
    """
    ensure_running()  # it starts a process of its own, after which it unblocks SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
