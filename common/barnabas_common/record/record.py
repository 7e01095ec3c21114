"""One record as a reader returns it."""

from collections.abc import Sequence
from typing import NamedTuple

Header = tuple[str, bytes | None]
Headers = Sequence[Header]


class Record(NamedTuple):
    """One record of a partition.

    `timestamp` is in milliseconds since 1970, -1 if the record has none; `timestamp_type` is 0 if
    the producer set it and 1 if the broker did. A record whose `value` is None is a tombstone.
    `leader_epoch` is the epoch of the leader that appended the batch (KIP-320), -1 in a batch that
    no leader has appended yet.
    """

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]
    leader_epoch: int
