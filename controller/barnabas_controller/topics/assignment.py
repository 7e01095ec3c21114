"""Assigns the replicas of new partitions to brokers: Kafka's `AdminUtils`, as pure functions.

The preferred leaders of consecutive partitions are consecutive brokers, from a start index on. The
followers of a partition are `shift` brokers further on. The shift grows with each round over all
brokers, so that the followers of one broker's partitions spread over all others. With start 0,
shift 0 and `shift_step` 0, replica j of partition i is on broker (i + j) mod n. With racks the same
rule is applied to a list in which racks alternate, and no rack gets a second replica before every
rack has one.
"""

from collections.abc import Iterator, Mapping, Sequence

from barnabas_common.errors import InvalidPartitionsError, InvalidReplicationFactorError
from barnabas_common.runtime import Randomness

# The rack of each broker by id, None for a broker without one.
Racks = Mapping[int, str | None]


def assign_replicas(
    racks: Racks, partitions: int, replication_factor: int, randomness: Randomness
) -> list[tuple[int, ...]]:
    """Replicas per partition, with a random start and shift, rack-aware if every broker has one.

    Raises InvalidPartitionsError, InvalidReplicationFactorError.
    """
    brokers = sorted(racks)
    _validate(len(brokers), partitions, replication_factor)
    start, shift = randomness.randrange(len(brokers)), randomness.randrange(len(brokers))
    return _assign(racks, partitions, replication_factor, start, shift, 0)


def assign_more_replicas(
    racks: Racks, first_replicas: Sequence[int], existing: int, more: int
) -> list[tuple[int, ...]]:
    """Replicas for `more` partitions of a topic that has `existing` ones.

    The assignment continues from the replicas of partition 0, `first_replicas`, as if the new
    partitions had been created with the others. Raises InvalidReplicationFactorError if too few
    brokers are alive.
    """
    brokers = sorted(racks)
    _validate(len(brokers), more, len(first_replicas))
    start = next((i for i, broker in enumerate(brokers) if broker >= first_replicas[0]), 0)
    return _assign(racks, more, len(first_replicas), start, start, existing)


def _assign(
    racks: Racks, partitions: int, factor: int, start: int, shift: int, first_partition: int
) -> list[tuple[int, ...]]:
    named = {broker: rack for broker, rack in racks.items() if rack is not None}
    if len(named) == len(racks):
        return assign_across_racks(
            named, partitions, factor, start, shift, first_partition=first_partition
        )
    return assign_round_robin(
        sorted(racks), partitions, factor, start, shift, first_partition=first_partition
    )


def _validate(brokers: int, partitions: int, replication_factor: int) -> None:
    if partitions <= 0:
        raise InvalidPartitionsError(f"a topic needs at least one partition, not {partitions}")
    if replication_factor <= 0:
        raise InvalidReplicationFactorError(
            f"the replication factor must be at least 1, not {replication_factor}"
        )
    if replication_factor > brokers:
        raise InvalidReplicationFactorError(
            f"the replication factor {replication_factor} is larger than "
            f"the number of live brokers, {brokers}"
        )


def assign_round_robin(
    brokers: Sequence[int],
    partitions: int,
    replication_factor: int,
    start_index: int,
    shift: int,
    shift_step: int = 1,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """The rule without racks; `start_index` and `shift` are in [0, number of brokers).

    The partitions are numbered from `first_partition`.
    """
    n = len(brokers)
    _validate(n, partitions, replication_factor)
    assigned = []
    numbers = range(first_partition, first_partition + partitions)
    for first, shift_now in _starts(numbers, n, start_index, shift, shift_step):
        followers = (_follower(first, shift_now, j, n) for j in range(replication_factor - 1))
        assigned.append((brokers[first], *(brokers[index] for index in followers)))
    return assigned


def _starts(
    partitions: range, brokers: int, start_index: int, shift: int, shift_step: int
) -> Iterator[tuple[int, int]]:
    """The index of each partition's first replica, and the shift of its followers."""
    for partition in partitions:
        if partition > 0 and partition % brokers == 0:
            shift += shift_step
        yield (partition + start_index) % brokers, shift


def _follower(first: int, shift: int, j: int, n: int) -> int:
    """The index of the j-th follower, which is never `first` itself."""
    return (first + 1 + (shift + j) % (n - 1)) % n


def assign_across_racks(
    racks: Mapping[int, str],
    partitions: int,
    replication_factor: int,
    start_index: int,
    shift: int,
    shift_step: int = 1,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """The rule with racks; its parameters are those of `assign_round_robin`."""
    brokers = rack_alternated(racks)
    _validate(len(brokers), partitions, replication_factor)
    numbers = range(first_partition, first_partition + partitions)
    return [
        _spread(brokers, racks, first, shift_now, replication_factor)
        for first, shift_now in _starts(numbers, len(brokers), start_index, shift, shift_step)
    ]


def _spread(
    brokers: Sequence[int],
    racks: Mapping[int, str],
    first: int,
    shift: int,
    replication_factor: int,
) -> tuple[int, ...]:
    """The replicas of one partition, from `first` on. A rack that has a replica is skipped while
    another rack has none."""
    rack_count = len(set(racks.values()))
    replicas = [brokers[first]]
    racks_used = {racks[brokers[first]]}
    j = 0
    while len(replicas) < replication_factor:
        broker = brokers[_follower(first, shift * rack_count, j, len(brokers))]
        j += 1
        rack_is_free = racks[broker] not in racks_used or len(racks_used) == rack_count
        if rack_is_free and broker not in replicas:
            replicas.append(broker)
            racks_used.add(racks[broker])
    return tuple(replicas)


def rack_alternated(racks: Mapping[int, str]) -> list[int]:
    """The brokers in rounds of one per rack; racks are sorted by name, brokers of a rack by id."""
    by_rack: dict[str, list[int]] = {rack: [] for rack in sorted(set(racks.values()))}
    for broker in sorted(racks):
        by_rack[racks[broker]].append(broker)
    rounds = max((len(brokers) for brokers in by_rack.values()), default=0)
    return [
        brokers[turn]
        for turn in range(rounds)
        for brokers in by_rack.values()
        if turn < len(brokers)
    ]
