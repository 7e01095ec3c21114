"""What a fault has damaged in a log, and whether an error is about it."""

import re
from collections.abc import Iterable

from barnabas_common.topic_partition import TopicPartition

Damage = tuple[TopicPartition, range]
"""A partition, and the offsets of a batch of which one replica has a changed bit."""

BEHIND = 500
"""At most so many records lie between damage and the next entry of the offset index."""


def is_named(error: str, known: Iterable[Damage]) -> bool:
    """Whether the text names a partition and an offset that a fault has damaged somewhere, or one
    behind it: where the borders of batches are lost, a lookup finds no batch before the next entry
    of the offset index."""
    return any(
        offsets.start <= int(offset) < offsets.stop + BEHIND
        for partition, offsets in known
        for offset in re.findall(rf"\b{partition} (?:is damaged )?at offset (\d+)", error)
    )
