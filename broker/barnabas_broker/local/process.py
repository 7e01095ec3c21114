"""A process that outlives its starter, and that nobody else is ever mistaken for.

The supervisor starts ZooKeeper and the brokers through `spawn` and finds them again, perhaps from
another command, by a small file. A pid alone would not do: after a reboot, or days later, it may
belong to a stranger. The file therefore holds the moment of the process's start too, and only a
process with both is ever signalled.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_POLL_SECONDS = 0.02
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


@dataclass(frozen=True)
class ProcessRecord:
    """Which process: its pid, and what the system says of its start (opaque, comparable)."""

    pid: int
    started: str

    def save(self, path: Path) -> None:
        """Write the record so that a reader sees the old one or the new one, never half."""
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self)) + "\n")
        temporary.replace(path)

    @classmethod
    def load(cls, path: Path) -> "ProcessRecord | None":
        """The record at `path`; None when there is none or it is unreadable."""
        try:
            content = json.loads(path.read_text())
            return cls(int(content["pid"]), str(content["started"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    @property
    def alive(self) -> bool:
        """Whether that very process still runs; a zombie does not."""
        _reap(self.pid)
        return _start_of(self.pid) == self.started

    @property
    def memory_mb(self) -> int | None:
        """Resident memory in MiB; None when the system does not say."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except (OSError, IndexError, ValueError):
            return None
        return pages * os.sysconf("SC_PAGE_SIZE") // 2**20

    def signal(self, number: int) -> bool:
        """Send a signal if the process is alive; False if it is gone."""
        if not self.alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def wait(self, timeout: float) -> bool:
        """Wait until the process is gone, at most `timeout` seconds; whether it is gone."""
        deadline = time.monotonic() + timeout
        while self.alive:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def terminate(self, timeout: float) -> bool:
        """SIGTERM, then SIGKILL after `timeout` seconds; whether it went at the SIGTERM."""
        if not self.signal(signal.SIGTERM) or self.wait(timeout):
            return True
        self.kill()
        return False

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone: its ports are free afterwards."""
        if self.signal(signal.SIGKILL):
            self.wait(10.0)

    def pause(self) -> None:
        """SIGSTOP, and wait until every thread stands still: it is delivered later than sent."""
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + 10.0
        while self.alive and not _stands_still(self.pid) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)


def spawn(command: Sequence[str], output: Path, record: Path) -> ProcessRecord:
    """Start `command` in a session of its own, its output appended to a file.

    The record is written before a Ctrl-C can strike, so that a started process is always known.
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
    """Let a dead child of ours go; not our child: its own parent's business."""
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
    """What the system says of the start of a running process; None for none, or a zombie."""
    if os.path.exists("/proc/self/stat"):
        return _start_in_proc(pid)
    line = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    state, _, started = line.partition(" ")
    return None if not line or state.startswith("Z") else started.strip()


def _start_in_proc(pid: int) -> str | None:
    """Clock ticks since boot, beside the boot's id: the same pid and tick may return after one."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field, the command's name in brackets, may hold spaces and brackets itself.
    fields = stat.rpartition(")")[2].split()
    state, threads, start_ticks = fields[0], int(fields[17]), fields[19]
    # While other threads are still on their way out they keep the files and the ports open.
    dead = state in "ZX" and threads <= 1
    return None if dead else f"{boot}:{start_ticks}"
