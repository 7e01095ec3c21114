"""One step of a soak: a command with its output, its end, and Ctrl-C."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

LIMIT_SECONDS = 2 * 3600.0
GRACE_SECONDS = 60.0  # for pytest to stop its clusters
PASSED = "passed"
_SIGNALS = signal.SIGINT, signal.SIGTERM


@dataclass(frozen=True)
class Step:
    """`output` has stdout and stderr; `how` says in words how the command ended."""

    output: str
    how: str
    was_interrupted: bool
    seconds: float

    @property
    def passed(self) -> bool:
        return self.how == PASSED


def run_step(command: Sequence[str], limit: float = LIMIT_SECONDS) -> Step:
    """Run a command in a process group of its own, so that Ctrl-C reaches it through this process.

    After Ctrl-C, and after `limit` seconds, it may end what it has started before it is killed.
    """
    began, how, was_interrupted = time.monotonic(), "", False
    try:
        with _interrupted_afterwards():
            process = _start(command)
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        how, output = f"stopped after {limit:.0f} s", _stop(process)
    except KeyboardInterrupt:
        was_interrupted, how, output = True, "interrupted", _stop(process)
    how = how or _end_of(process.returncode)
    return Step(output, how, was_interrupted, time.monotonic() - began)


def _start(command: Sequence[str]) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    threading.Thread(target=_end_group_with, args=(process,), daemon=True).start()
    return process


def _stop(process: "subprocess.Popen[str]") -> str:
    """Interrupt a process group, then kill what is left of it; returns the output."""
    _signal(process, signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=GRACE_SECONDS)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        _signal(process, signal.SIGKILL)
        output, _ = process.communicate()
    return output


def _end_group_with(process: "subprocess.Popen[str]") -> None:
    """What a process leaves behind when it dies must not hold its output open."""
    process.wait()
    _signal(process, signal.SIGKILL)


def _signal(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _end_of(code: int) -> str:
    if code == 0:
        return PASSED
    return f"failed with exit code {code}" if code > 0 else f"died of signal {-code}"


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """A Ctrl-C in the block is raised at its end: else a process that has just started is lost."""
    arrived: list[int] = []
    before = {n: signal.signal(n, lambda number, _: arrived.append(number)) for n in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if arrived:
        raise KeyboardInterrupt


@contextmanager
def interrupts() -> Iterator[None]:
    """SIGINT and SIGTERM raise KeyboardInterrupt in the block, even if a shell ignores SIGINT."""
    before = [signal.signal(number, signal.default_int_handler) for number in _SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(number, handler)
