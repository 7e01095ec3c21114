"""The limits of client listeners, as options of gRPC.

gRPC accepts connections itself, so it does the counting: a connection counts from the moment it is
accepted, and one over the limit is closed immediately. gRPC counts per bound address, not per
address of the peer. The listener between brokers has no such limits.
"""

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from barnabas_common.runtime import Address

NO_LIMIT = 2**31 - 1
_LONGEST_SILENCE_MS = 30_000
_TABLES = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
_ESTABLISHED = rb":%04X [0-9A-F]+:[0-9A-F]{4} (?:01|08) "  # 08: closed by the peer

HANDSHAKE_OPTIONS: list[tuple[str, int]] = [
    # A connection without HTTP/2 is not a client's. By default gRPC keeps it for 2 minutes.
    ("grpc.server_handshake_timeout_ms", _LONGEST_SILENCE_MS),
]


@dataclass(frozen=True)
class ConnectionLimits:
    """The limits of one client listener. A negative `max_idle_ms` allows idle connections."""

    max_connections: int = NO_LIMIT
    max_idle_ms: int = -1

    @property
    def max_idle(self) -> float | None:
        """How long a connection may be idle, in seconds; None if there is no limit."""
        return self.max_idle_ms / 1000 if self.max_idle_ms >= 0 else None

    def options(self, address: Address) -> list[tuple[str, int]]:
        """The gRPC options of a server that will be bound to `address`."""
        options = []
        if self.max_connections < NO_LIMIT:  # gRPC rejects `NO_LIMIT`
            share = max(self.max_connections // _bound_addresses(address), 1)
            options.append(("grpc.max_allowed_incoming_connections", share))
        if self.max_idle_ms >= 0:
            # After `idle_streams` ends a client's streams, gRPC closes the idle connection.
            idle = max(min(self.max_idle_ms, _LONGEST_SILENCE_MS), 1)
            options.append(("grpc.max_connection_idle_ms", idle))
        return options


def _bound_addresses(address: Address) -> int:
    """How many addresses a host name has: gRPC counts the connections of each separately."""
    try:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    except OSError:  # binding will report the error
        return 1
    return max(len({target for _, _, _, _, target in found}), 1)


def count_established(ports: Iterable[int]) -> int | None:
    """The number of connections to these local ports; None on systems without these tables.

    Raises OSError, for example if no file descriptor is left.
    """
    tables = [path.read_bytes() for path in map(Path, _TABLES) if path.exists()]
    if not tables:
        return None
    patterns = [re.compile(_ESTABLISHED % port) for port in ports]
    return sum(len(pattern.findall(table)) for pattern in patterns for table in tables)
