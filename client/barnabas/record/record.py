"""One record as a reader sees it. Both readers, the compiled and the plain one, make these."""

from typing import NamedTuple

Header = tuple[str, bytes | None]


class Record(NamedTuple):
    """One record of a partition.

    `timestamp` is in milliseconds since 1970, -1 where the record has none; `timestamp_type` is 0
    if the producer gave it and 1 if the broker did. A `value` of None is a tombstone.
    `leader_epoch` is that of the leader which appended the batch, -1 before any did (KIP-320).
    """

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]
    leader_epoch: int
