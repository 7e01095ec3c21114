"""What a fault has damaged in a log, and whether an error is about it."""

import re
from collections.abc import Iterable

from barnabas_common.topic_partition import TopicPartition

Damage = tuple[TopicPartition, range]
"""A partition, and the offsets of a batch of which one replica has a changed bit."""


def is_named(error: str, known: Iterable[Damage]) -> bool:
    """Whether the text names a partition and an offset that a fault has damaged somewhere."""
    return any(
        int(offset) in offsets
        for partition, offsets in known
        for offset in re.findall(rf"\b{partition} (?:is damaged )?at offset (\d+)", error)
    )
