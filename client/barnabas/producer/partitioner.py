"""Which partition a record without a key goes to: pure functions.

(A key is hashed over all partitions, see `barnabas_common.record.murmur2`, so its records are
always in the same partition, even while that has no leader.) The sticky partitioner fills one
partition's batch before it moves on (KIP-480, KIP-794).
"""

from collections.abc import Sequence


def sticky_partition(
    queue_lengths: Sequence[int], has_leader: Sequence[bool], chance: float
) -> int:
    """The next partition to fill: the shorter its queue of unsent batches, the likelier (KIP-794).

    `chance` is a random number in [0, 1). Partitions without a leader are skipped, unless none
    has one.
    """
    candidates = [p for p in range(len(queue_lengths)) if has_leader[p]]
    if not candidates:
        candidates = list(range(len(queue_lengths)))
    longest = max(queue_lengths[p] for p in candidates)
    weights = [longest + 1 - queue_lengths[p] for p in candidates]
    mark = chance * sum(weights)
    for partition, weight in zip(candidates, weights, strict=True):
        mark -= weight
        if mark < 0:
            return partition
    return candidates[-1]


def next_round_robin(last: int, has_leader: Sequence[bool]) -> int:
    """The partition after `last` that has a leader; simply the next one if none has."""
    count = len(has_leader)
    for step in range(1, count + 1):
        candidate = (last + step) % count
        if has_leader[candidate]:
            return candidate
    return (last + 1) % count
