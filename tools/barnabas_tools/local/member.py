"""One member of a local cluster, a broker or ZooKeeper: its process, its files, its ports."""

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas_tools.local.errors import ClusterError
from barnabas_tools.local.ports import HOST, is_taken
from barnabas_tools.local.process import ProcessRecord, spawn

_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Member:
    """A named process with its own folder, listening on `ports` of 127.0.0.1."""

    name: str
    directory: Path
    log_file: Path
    ports: tuple[int, ...]

    @property
    def process(self) -> ProcessRecord | None:
        """The running process, or None."""
        record = ProcessRecord.load(self._record)
        return record if record and record.alive else None

    @property
    def running(self) -> bool:
        return self.process is not None

    def check_ports(self) -> None:
        """Raise ClusterError, with the port, if another process uses one of the ports."""
        for port in self.ports:
            if is_taken(port):
                raise ClusterError(f"port {port} on {HOST} is taken; {self.name} needs it")

    def start(self, command: Sequence[str]) -> None:
        """Start the process, without waiting until it listens. Raises ClusterError."""
        self.check_ports()
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            spawn(command, self.log_file, self._record)
        except OSError as error:
            raise ClusterError(f"{self.name} cannot be started: {error}") from None

    def check_running(self) -> None:
        """Raise ClusterError with the last line of the log, if the process has ended."""
        if not self.running:
            said = self.last_line() or "it said nothing"
            raise ClusterError(f"{self.name} stopped: {said} (its log: {self.log_file})")

    def wait_until_listening(self, timeout: float) -> None:
        """Wait until every port accepts connections; ClusterError if it ends, or in time."""
        deadline = time.monotonic() + timeout
        for port in self.ports:
            while not _accepts(port):
                self.check_running()
                if time.monotonic() >= deadline:
                    raise ClusterError(
                        f"{self.name} does not listen on {HOST}:{port} after {timeout:g} s"
                        f" (its log: {self.log_file})"
                    )
                time.sleep(_POLL_SECONDS)

    def last_line(self) -> str:
        """Return the last line of the log that is not blank."""
        try:
            lines = self.log_file.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    @property
    def _record(self) -> Path:
        return self.directory / "process.json"


def _accepts(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1.0).close()
    except OSError:
        return False
    return True
