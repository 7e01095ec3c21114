"""The event loop of programs: asyncio's own, but silent when it is dropped without being closed.

Ctrl-C may come while a loop is created or closed, and at the interpreter's end its sockets may be
gone before it. asyncio's `__del__` then prints a traceback although nothing is lost: the process
ends, and the kernel closes the rest.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class ProgramLoop(asyncio.SelectorEventLoop):
    """asyncio's default loop on POSIX systems."""

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            if not self.is_closed() and not self.is_running():
                self.close()


def program_runner() -> asyncio.Runner:
    """A runner of such a loop."""
    return asyncio.Runner(loop_factory=ProgramLoop)


def run_program(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`."""
    with program_runner() as runner:
        return runner.run(work)
