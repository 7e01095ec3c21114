"""What the global options say, and how a command fails; shared by every group of commands."""

import asyncio
import signal
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
    """Run what Ctrl-C is the usual end of: it is cancelled and cleans up, however often one
    presses. Then raises KeyboardInterrupt."""

    async def run() -> bool:
        task = asyncio.ensure_future(work)
        interrupted = False

        def interrupt() -> None:
            nonlocal interrupted
            if not interrupted:
                interrupted = True
                task.cancel()

        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
        try:
            await task
        except asyncio.CancelledError:
            if not interrupted:
                raise
        return interrupted

    if asyncio.run(run()):
        raise KeyboardInterrupt


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
