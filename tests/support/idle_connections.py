"""Plain TCP connections that send nothing, and brokers with few file descriptors."""

import resource
import socket
import time
from pathlib import Path
from types import TracebackType

import pytest
from barnabas_common.runtime import Address

from tests.support.broker_process import COMMAND


def limited_command(limit: int, properties_file: Path) -> list[str]:
    """Return a command that starts a broker whose hard limit of open files is `limit`."""
    script = f'ulimit -n {limit} && exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *COMMAND, str(properties_file)]


class IdleConnections:
    """`count` connections to an address, open until the end of the `with`."""

    def __init__(self, address: Address, count: int) -> None:
        self._address = address
        self._count = count
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> "IdleConnections":
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < self._count + 500:
            pytest.skip(f"this process may open {hard} files only")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        for _ in range(self._count):
            self._sockets.append(socket.create_connection(self._address, timeout=5.0))
        for connection in self._sockets:
            connection.setblocking(False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for connection in self._sockets:
            connection.close()

    def still_open(self) -> int:
        """Return the number of connections that the other side has not closed."""
        return sum(_is_open(connection) for connection in self._sockets)

    def wait_until_open(self, count: int, within: float = 20.0) -> None:
        """Wait until exactly `count` connections are open."""
        deadline = time.monotonic() + within
        while (left := self.still_open()) != count:
            assert time.monotonic() < deadline, f"{left} of {self._count} are open, not {count}"
            time.sleep(0.1)


def _is_open(connection: socket.socket) -> bool:
    try:
        return connection.recv(4096) != b""  # the greeting of HTTP/2, or the end
    except BlockingIOError:
        return True
    except OSError:
        return False
