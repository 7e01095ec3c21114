"""A worker (`worker`, `copier`) as the process that it is: what it has said, and its end."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from types import TracebackType
from typing import Self

from barnabas_common.runtime import TaskScope

_FOLDER = "barnabas_tools.labs.framework"


class WorkerProcess:
    """Runs for as long as its `async with` block lasts, unless it is killed before."""

    def __init__(self, *arguments: str, program: str = "worker") -> None:
        self.worked: list[str] = []
        """The values of the records that it has worked on, in order."""
        self.stuck = False
        """Whether it works on a record without ever ending."""
        self._arguments = arguments
        self._program = program
        self._tasks = TaskScope("worker")

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            f"{_FOLDER}.{self._program}",
            *self._arguments,
            stdin=PIPE,
            stdout=PIPE,
            start_new_session=True,  # Ctrl-C is for the lab, which then ends it
        )
        self._tasks.spawn(self._read(), "output")
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.kill()
        await self._tasks.close()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            word, _, value = line.decode().strip().partition(" ")
            if word == "worked":
                self.worked.append(value)
            elif word == "works":
                self.stuck = True

    async def kill(self) -> None:
        """kill -9."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def is_stuck(self) -> bool:
        return self.stuck

    async def has_worked_on(self, value: str) -> bool:
        return value in self.worked
