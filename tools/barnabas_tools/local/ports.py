"""Ports on 127.0.0.1: whether one is taken, and which are free.

Free ports are chosen below the kernel's range for outgoing connections, so that a restarted broker
finds its port free. Two programs that start and stop clusters at the same time could still take a
port of each other's stopped brokers; BARNABAS_PORT_RANGE=first-last gives each its own range.
"""

import errno
import os
import random
import re
import socket

from barnabas_tools.local.errors import ClusterError

HOST = "127.0.0.1"
PORT_RANGE = "BARNABAS_PORT_RANGE"
_DEFAULT_RANGE = "10240-32000"
_ATTEMPTS = 1_000


def is_taken(port: int) -> bool:
    """Whether a process listens on the port; lingering connections do not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            # A bind alone succeeds next to a listener that shares its port (SO_REUSEPORT).
            probe.listen(1)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return True
            raise
    return False


def free_ports(count: int) -> list[int]:
    """Return `count` different ports without a listener; ClusterError if none are found."""
    first, last = _port_range(os.environ.get(PORT_RANGE) or _DEFAULT_RANGE)
    found: list[int] = []
    for _ in range(_ATTEMPTS):
        if len(found) == count:
            return found
        port = random.randint(first, last)
        if port not in found and not is_taken(port):
            found.append(port)
    raise ClusterError(f"no {count} free ports between {first} and {last} on {HOST}")


def _port_range(text: str) -> tuple[int, int]:
    numbers = re.fullmatch("([0-9]{1,5})-([0-9]{1,5})", text)
    if numbers is not None:
        first, last = map(int, numbers.groups())
        if 1 <= first <= last <= 65_535:
            return first, last
    raise ClusterError(f"{PORT_RANGE} wants FIRST-LAST, as {_DEFAULT_RANGE}, not {text!r}")
