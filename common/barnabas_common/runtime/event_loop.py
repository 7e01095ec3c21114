"""The event loop of programs: asyncio's own, but silent when it is dropped without being closed.

Ctrl-C may interrupt the creation or the closing of a loop, and when the interpreter ends the loop's
sockets may be closed before the loop. asyncio's `__del__` then prints a traceback although nothing
is lost, because the process ends and the kernel closes its sockets.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class ProgramLoop(asyncio.SelectorEventLoop):
    """asyncio's default loop on POSIX systems, with a silent `__del__`."""

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            if not self.is_closed() and not self.is_running():
                self.close()


def program_runner() -> asyncio.Runner:
    """A runner whose loop is a `ProgramLoop`."""
    return asyncio.Runner(loop_factory=ProgramLoop)


def run_program(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine as `asyncio.run` does, on a `ProgramLoop`."""
    with program_runner() as runner:
        return runner.run(work)
