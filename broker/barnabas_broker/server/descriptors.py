"""Divides the process's file descriptors between client connections and the logs.

A log keeps one descriptor open per segment, and the number of segments grows while the broker runs.
gRPC fixes the limit of connections when it binds, so the share is fixed at start:

    reserve     = max(limit / 2, OWN + GROWTH x segments on disk)
    connections = min(max.connections, limit - reserve), at least FEWEST_CONNECTIONS
"""

import logging
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas_common.errors import BarnabasError

logger = logging.getLogger(__name__)

OWN = 96
"""Descriptors for the libraries, the event loop, ZooKeeper, gRPC, the connections from and to a few
dozen brokers, and files that are open briefly."""
GROWTH = 2
FEWEST_CONNECTIONS = 16

_UNLIMITED = 2**20


class TooFewDescriptors(BarnabasError):
    """The limit of open files is too low for the logs of this broker."""


@dataclass(frozen=True)
class DescriptorShares:
    """The division of `limit` descriptors: `connections` for clients, `reserve` for all else."""

    limit: int
    connections: int

    @property
    def reserve(self) -> int:
        return self.limit - self.connections


def share_descriptors(limit: int, segments: int, max_connections: int) -> DescriptorShares:
    """Decide the shares. Raises TooFewDescriptors with the limit and the number needed."""
    needed = OWN + segments + FEWEST_CONNECTIONS
    if limit < needed:
        raise TooFewDescriptors(
            f"the limit of open files is {limit}, and at least {needed} are needed: {segments} for"
            f" the segments of the logs, {OWN} for the broker, {FEWEST_CONNECTIONS} for clients"
            " (raise it with ulimit -n, or LimitNOFILE= of systemd)"
        )
    reserve = max(limit // 2, OWN + GROWTH * segments)
    left = max(limit - reserve, FEWEST_CONNECTIONS)
    return DescriptorShares(limit, min(left, max_connections))


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        logger.info("raised the limit of open files from %d to %d", soft, hard)
    return _UNLIMITED if hard == resource.RLIM_INFINITY else hard


def count_segments(log_directories: Sequence[str]) -> int:
    """The number of segments in the partitions' folders of these directories."""
    return sum(len(list(Path(directory).glob("*/*.log"))) for directory in log_directories)
