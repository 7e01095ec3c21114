"""Range: of each topic, every member gets a run of consecutive partitions.

Partition 3 of one topic and partition 3 of another with as many partitions and the same readers go
to the same member, which joins of two topics rely on. Where members and replicas have racks and not
every partition is in every rack, a member gets partitions of its own rack first (KIP-881), as far
as neither balance nor that pairing suffers.
"""

from collections.abc import Iterable, Sequence

from barnabas_common.topic_partition import TopicPartition

from barnabas.group.assignors.assignor import (
    Assignment,
    Assignor,
    PartitionRacks,
    Subscriptions,
    in_member_order,
    known_topics,
)


class _Topic:
    """How far the partitions of one topic are dealt out. `racks`: of its members that have one."""

    def __init__(
        self, name: str, partitions: Sequence[frozenset[str]], members: Sequence[str],
        racks: dict[str, str],
    ) -> None:  # fmt: skip
        self.name = name
        self.members = tuple(members)
        self.racks = {member: racks[member] for member in members if member in racks}
        self._partition_racks = partitions
        self._unassigned = dict.fromkeys(range(len(partitions)))
        self._assigned = dict.fromkeys(members, 0)
        self._share, self._with_one_more = divmod(len(partitions), len(members))

    @property
    def partition_count(self) -> int:
        return len(self._partition_racks)

    @property
    def needs_racks(self) -> bool:
        """Whether racks make a difference: some are shared, and not all partitions are in all."""
        every = frozenset[str]().union(*self._partition_racks)
        return not every.isdisjoint(self.racks.values()) and any(
            racks != every for racks in self._partition_racks
        )

    def in_rack(self, member: str, partition: int) -> bool:
        return member not in self.racks or self.racks[member] in self._partition_racks[partition]

    def room(self, member: str) -> int:
        """How many more partitions the member may get."""
        most = self._share + (1 if self._with_one_more > 0 else 0)
        return max(0, most - self._assigned[member])

    def deal(self, member: str, matching_racks: bool) -> list[TopicPartition]:
        """The next run of a member."""
        free = [p for p in self._unassigned if not matching_racks or self.in_rack(member, p)]
        return self.give(member, free[: self.room(member)])

    def give(self, member: str, partitions: Sequence[int]) -> list[TopicPartition]:
        self._assigned[member] += len(partitions)
        if partitions and self._assigned[member] > self._share:
            self._with_one_more -= 1
        for partition in partitions:
            del self._unassigned[partition]
        return [TopicPartition(self.name, partition) for partition in partitions]


def assign_ranges(partitions: PartitionRacks, subscriptions: Subscriptions) -> Assignment:
    """Kafka's `RangeAssignor`."""
    members = in_member_order(subscriptions)
    racks = {member: s.rack_id for member, s in subscriptions.items() if s.rack_id}
    topics = [
        _Topic(name, partitions[name], readers, racks)
        for name in known_topics(partitions, subscriptions)
        if (readers := [m for m in members if name in subscriptions[m].topics])
    ]
    assignment: Assignment = {member: [] for member in subscriptions}
    if any(topic.needs_racks for topic in topics):
        _match_racks(topics, assignment)
    for topic in topics:
        for member in topic.members:
            assignment[member] += topic.deal(member, matching_racks=False)
    return {member: sorted(given) for member, given in assignment.items()}


def _match_racks(topics: Iterable[_Topic], assignment: Assignment) -> None:
    """Deal out what can be in its member's rack; topics with equal readers and size together."""
    alike: dict[tuple[tuple[str, ...], int], list[_Topic]] = {}
    for topic in topics:
        size = topic.partition_count if topic.racks else 0
        alike.setdefault((topic.members, size), []).append(topic)
    for (members, size), group in alike.items():
        if len(group) > 1:
            _match_racks_together(members, size, group, assignment)
        elif group[0].needs_racks:
            for member in members:
                assignment[member] += group[0].deal(member, matching_racks=True)


def _match_racks_together(
    members: Sequence[str], size: int, topics: Sequence[_Topic], assignment: Assignment
) -> None:
    """Give partitions of the same number in all these topics to the first member that suits all."""
    remaining = list(members)
    for partition in range(size):
        suiting = (
            member
            for member in remaining
            if all(t.in_rack(member, partition) and t.room(member) for t in topics)
        )
        member = next(suiting, None)
        if member is None:
            continue
        for topic in topics:
            assignment[member] += topic.give(member, [partition])
        if not any(topic.room(member) for topic in topics):
            remaining.remove(member)


RANGE = Assignor("range", assign_ranges)
