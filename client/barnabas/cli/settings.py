"""What the global options say, and how a command fails; shared by every group of commands."""

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar, cast

import typer

T = TypeVar("T")

DEFAULT_BOOTSTRAP = "localhost:9092"


class Output(StrEnum):
    """How a command writes what it found."""

    TABLE = "table"
    JSON = "json"


@dataclass(frozen=True)
class Settings:
    """The global options, kept in typer's context."""

    bootstrap: str = DEFAULT_BOOTSTRAP
    output: Output = Output.TABLE
    bootstrap_given: bool = False

    @property
    def json(self) -> bool:
        return self.output is Output.JSON


class CommandFailed(Exception):
    """A command that cannot do its work: its one line goes to stderr, the exit code is 1."""


class UsageFailed(Exception):
    """A command that was called wrongly: its one line goes to stderr, the exit code is 2."""


def settings_of(context: typer.Context) -> Settings:
    """The global options of this call."""
    return cast(Settings, context.obj or Settings())


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine; Ctrl-C cancels it, then raises KeyboardInterrupt."""
    return asyncio.run(work)


def run_until_interrupted(work: Coroutine[Any, Any, None]) -> None:
    """Run what Ctrl-C is the usual end of, or the leaving of who reads our output through a pipe:
    it is cancelled and cleans up, however often one presses. Then raises KeyboardInterrupt, or
    BrokenPipeError."""

    async def run() -> BaseException | None:
        task = asyncio.ensure_future(work)
        why: BaseException | None = None

        def end(reason: BaseException) -> None:
            nonlocal why
            loop.remove_reader(sys.stdout.fileno())
            if why is None:
                why = reason
                task.cancel()

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, end, KeyboardInterrupt())
        if stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode):
            loop.add_reader(sys.stdout.fileno(), end, BrokenPipeError())  # all it can tell
        try:
            await task
        except asyncio.CancelledError:
            if why is None:
                raise
        return why

    why = asyncio.run(run())
    if why is not None:
        raise why


def parse_assignments(
    pairs: list[str], option: str = "--set", wanted: str = "name=value"
) -> dict[str, str]:
    """`name=value` options as a dictionary; raises UsageFailed for anything else."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name.strip():
            raise UsageFailed(f"{option} wants {wanted}, not {pair!r}")
        found[name.strip()] = value.strip()
    return found
