"""The global options, how a command runs, and how it fails; shared by all commands."""

import asyncio
import os
import select
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar, cast

import typer
from barnabas_common.runtime.event_loop import run_program
from barnabas_common.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas import Admin

T = TypeVar("T")

DEFAULT_BOOTSTRAP = "localhost:9092"
_MAX_INT32 = 2**31 - 1


class Output(StrEnum):
    """The format of a command's results."""

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
    """The command failed: its one line goes to stderr, the exit code is 1."""


class UsageFailed(Exception):
    """The command was called wrongly: its one line goes to stderr, the exit code is 2."""


def settings_of(context: typer.Context) -> Settings:
    """Return the global options of this call."""
    return cast(Settings, context.obj or Settings())


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine; Ctrl-C cancels it, then raises KeyboardInterrupt."""
    return run_program(work)


def run_admin(settings: Settings, work: "Callable[[Admin], Awaitable[T]]") -> T:
    """Run `work` with an admin client of the cluster; returns its result."""

    async def run() -> T:
        from barnabas import Admin

        async with Admin(bootstrap_servers=settings.bootstrap) as admin:
            return await work(admin)

    return run_async(run())


def run_for_each(
    settings: Settings, names: Iterable[str], work: "Callable[[Admin, str], Awaitable[T]]"
) -> dict[str, T | BaseException]:
    """Run `work` for several names at the same time; returns the result or the error of each."""

    async def every(admin: "Admin") -> dict[str, T | BaseException]:
        unique = list(dict.fromkeys(names))
        found = await asyncio.gather(*(work(admin, n) for n in unique), return_exceptions=True)
        return dict(zip(unique, found, strict=True))

    return run_admin(settings, every)


def run_until_interrupted(work: Coroutine[Any, Any, None]) -> None:
    """Run work that usually ends with Ctrl-C, or when the reader of its output closes the pipe.

    The work is cancelled once and cleans up, even after several Ctrl-C. Raises KeyboardInterrupt
    or BrokenPipeError afterwards.
    """

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
        if _stdout_is_a_pipe():
            loop.add_reader(sys.stdout.fileno(), end, BrokenPipeError())
        try:
            await task
        except asyncio.CancelledError:
            if why is None:
                raise
        return why

    why = run_program(run())
    if why is not None:
        raise why


def check_reader() -> None:
    """Raise BrokenPipeError if stdout is a pipe whose reader has closed it."""
    if _stdout_is_a_pipe() and select.select([sys.stdout.fileno()], [], [], 0)[0]:
        raise BrokenPipeError


def _stdout_is_a_pipe() -> bool:
    """Whether it is one: its writing end becomes readable once the reader has closed the pipe."""
    return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)


async def in_any_case(cleaning_up: Coroutine[Any, Any, None]) -> None:
    """Clean up to the end, even if the work is cancelled only then.

    A closed pipe fails a write, and cancels the work a moment later.
    """
    task = asyncio.ensure_future(cleaning_up)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def parse_assignments(
    pairs: list[str], option: str = "--set", wanted: str = "name=value"
) -> dict[str, str]:
    """Parse `name=value` options; raises UsageFailed for anything else."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name.strip():
            raise UsageFailed(f"{option} wants {wanted}, not {pair!r}")
        found[name.strip()] = value.strip()
    return found


def parse_partition(text: str) -> TopicPartition:
    """Parse the name of a partition, such as flights-0; raises UsageFailed for anything else."""
    topic, _, number = text.rpartition("-")
    if not topic or not is_int32(number):
        raise UsageFailed(f"a partition is TOPIC-NUMBER, a name like flights-0, not {text!r}")
    return TopicPartition(topic, int(number))


def checked_states(given: Iterable[str] | None, states: Iterable[str]) -> list[str]:
    """The states as Kafka spells them, whatever their case; raises UsageFailed for others."""
    known = {state.lower(): state for state in states}
    for state in given or ():
        if state.lower() not in known:
            raise UsageFailed(f"--state wants one of {', '.join(known.values())}, not {state!r}")
    return [known[state.lower()] for state in given or ()]


def is_int32(text: str) -> bool:
    """Whether a text is a non-negative 32-bit integer in ASCII digits."""
    return text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _MAX_INT32


def check_seconds(option: str, seconds: float) -> None:
    """Raise UsageFailed unless it is a time, 0 s or longer."""
    if not seconds >= 0:  # `nan` is not
        raise UsageFailed(f"{option} must be a number of seconds, 0 or more")
