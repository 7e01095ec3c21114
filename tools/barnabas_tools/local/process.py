"""A process that outlives its starter, and is identified reliably later.

`LocalCluster` starts ZooKeeper and the brokers through `spawn`, and finds them again, possibly from
another command, by a small file. A pid is not enough: after a reboot, or days later, it may belong
to another process. The file therefore holds the start time too, and only a process with both is
signalled.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from barnabas_tools.local.errors import ClusterError

_POLL_SECONDS = 0.02
_SIGNAL_SECONDS = 10.0
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@dataclass(frozen=True)
class ProcessRecord:
    """A process's identity: its pid, and its start as the system reports it (opaque)."""

    pid: int
    started: str

    def save(self, path: Path) -> None:
        """Write the record atomically."""
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self)) + "\n")
        temporary.replace(path)

    @classmethod
    def load(cls, path: Path) -> "ProcessRecord | None":
        """Return the record at `path`; None if there is none, or none that can be read."""
        try:
            content = json.loads(path.read_text())
            return cls(int(content["pid"]), str(content["started"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    @property
    def alive(self) -> bool:
        """Whether this process still runs; a zombie does not."""
        _reap(self.pid)
        return _start_of(self.pid) == self.started

    @property
    def memory_mb(self) -> int | None:
        """Resident memory in MiB; None if the system does not report it."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except (OSError, IndexError, ValueError):
            return None
        return pages * os.sysconf("SC_PAGE_SIZE") // 2**20

    def signal(self, number: int) -> bool:
        """Send a signal if the process runs; False if it has ended."""
        if not self.alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def wait(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for the end of the process; False if it still runs."""
        deadline = time.monotonic() + timeout
        while self.alive:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def terminate(self, timeout: float) -> bool:
        """Send SIGTERM, and SIGKILL after `timeout` seconds; False if SIGKILL was necessary."""
        if not self.signal(signal.SIGTERM) or self.wait(timeout):
            return True
        self.kill()
        return False

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process has ended: its ports are free afterwards.

        Raises ClusterError if it still runs after 10 s, as a process in a stuck system call does.
        """
        if self.signal(signal.SIGKILL) and not self.wait(_SIGNAL_SECONDS):
            raise ClusterError(f"process {self.pid} still runs {_SIGNAL_SECONDS:g} s after SIGKILL")

    def pause(self) -> None:
        """Send SIGSTOP, and wait until every thread has stopped.

        Raises ClusterError if one still runs after 10 s.
        """
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + _SIGNAL_SECONDS
        while self.alive and not _stands_still(self.pid):
            if time.monotonic() >= deadline:
                raise ClusterError(f"process {self.pid} runs {_SIGNAL_SECONDS:g} s after SIGSTOP")
            time.sleep(_POLL_SECONDS)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C and termination in the block: an impatient second one must leave no process.

    Only the main thread is ever interrupted. A signal mask is not enough: another thread then
    receives the signal, and Python runs the handler in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in _SIGNALS]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def spawn(command: Sequence[str], output: Path, record: Path) -> ProcessRecord:
    """Start `command` in its own session, its output appended to a file.

    The record is written before a Ctrl-C can be handled, so that every started process is known.
    """
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        pid = os.posix_spawn(
            command[0],
            list(command),
            os.environ,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGPIPE),
        )
        process = ProcessRecord(pid, _start_of(pid) or "")
        process.save(record)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process


def _reap(pid: int) -> None:
    """Reap a child that has ended; no effect on a process that is not a child."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def _stands_still(pid: int) -> bool:
    """Whether every thread of a process is stopped."""
    if os.path.exists("/proc/self/task"):
        try:
            stats = [task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/stat")]
        except (FileNotFoundError, ProcessLookupError):  # a thread has just ended
            return False
        return all(stat.rpartition(")")[2].split()[0] in "Tt" for stat in stats)
    shown = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip().startswith("T")


def _start_of(pid: int) -> str | None:
    """Return the start of a running process as the system reports it; None for a zombie."""
    if os.path.exists("/proc/self/stat"):
        return _start_in_proc(pid)
    line = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    state, _, started = line.partition(" ")
    return None if not line or state.startswith("Z") else started.strip()


def _start_in_proc(pid: int) -> str | None:
    """Return the boot id and the clock ticks since boot, which together are unique for a pid."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field, the command's name in parentheses, may contain spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    state, threads, start_ticks = fields[0], int(fields[17]), fields[19]
    # Threads that have not ended yet keep the files and the ports open.
    dead = state in "ZX" and threads <= 1
    return None if dead else f"{boot}:{start_ticks}"
