"""The sticky assignment when members subscribe to different topics.

Members keep what they owned and still read. The rest is given to the member with the fewest
partitions that reads the topic. Then partitions move, one at a time, as long as the balance gets
better by it.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import combinations

from barnabas_common.topic_partition import TopicPartition

from barnabas.group.assignors.assignor import (
    NO_GENERATION,
    Assignment,
    PartitionRacks,
    Subscriptions,
)
from barnabas.group.assignors.sticky_movements import PartitionMovements
from barnabas.group.assignors.sticky_owners import Owners
from barnabas.group.assignors.sticky_racks import Racks


class _Ranking:
    """Members in ascending order of how many partitions each has."""

    def __init__(self, assignment: Assignment) -> None:
        self._order = sorted((len(given), member) for member, given in assignment.items())

    def __iter__(self) -> Iterator[str]:
        return (member for _, member in self._order)

    @property
    def spread(self) -> int:
        return self._order[-1][0] - self._order[0][0]

    def add(self, member: str, count: int) -> None:
        insort(self._order, (count, member))

    def remove(self, member: str, count: int) -> None:
        del self._order[bisect_left(self._order, (count, member))]


class GeneralAssignment:
    """`_assignment` is what each member has; members that nothing can change leave it for a while.

    `_consumer` is the same by partition.
    """

    def __init__(
        self, partitions: PartitionRacks, subscriptions: Subscriptions, racks: Racks, owners: Owners
    ) -> None:
        self._partitions = partitions
        self._racks = racks
        self._topics = {
            member: [topic for topic in subscriptions[member].topics if topic in partitions]
            for member in owners.owned
        }
        self._readers = {
            topic: [member for member, topics in self._topics.items() if topic in topics]
            for topic in partitions
        }
        self._all = [
            TopicPartition(topic, number)
            for topic in sorted(partitions, key=lambda topic: (len(self._readers[topic]), topic))
            for number in range(len(partitions[topic]))
        ]
        self._before = _earlier_owners(owners)
        self._movements = PartitionMovements()
        self._assignment: Assignment = {
            member: [
                tp for tp in owned if tp.topic in self._topics[member]
                and not racks.mismatch(member, tp)
            ]
            for member, owned in owners.owned.items()
        }  # fmt: skip
        self._revoked = any(
            len(kept) < len(owners.owned[member]) for member, kept in self._assignment.items()
        )
        self._consumer = {tp: member for member, kept in self._assignment.items() for tp in kept}
        self._ranking = _Ranking(self._assignment)

    def build(self) -> Assignment:
        initializing = not self._consumer
        unassigned = [tp for tp in self._all if tp not in self._consumer]
        if self._racks.used:
            for tp in unassigned:
                self._assign(tp, in_rack=True)
        for tp in unassigned:
            if tp not in self._consumer:
                self._assign(tp, in_rack=False)
        fixed = self._set_fixed_aside()
        before = {member: list(given) for member, given in self._assignment.items()}
        # If nothing has to be taken from anybody, moving what was free before may be enough.
        if not self._revoked:
            self._improve([tp for tp in unassigned if self._movable(tp.topic)])
        moved = self._improve([tp for tp in self._all if self._movable(tp.topic)])
        if not initializing and moved and _imbalance(self._assignment) >= _imbalance(before):
            self._assignment = before
        return {**self._assignment, **fixed}

    def _assign(self, tp: TopicPartition, in_rack: bool) -> None:
        """Give a free partition to the member with the fewest that may have it."""
        for member in self._ranking:
            if tp.topic not in self._topics[member]:
                continue
            if not in_rack or not self._racks.mismatch(member, tp):
                self._ranking.remove(member, len(self._assignment[member]))
                self._assignment[member].append(tp)
                self._consumer[tp] = member
                self._ranking.add(member, len(self._assignment[member]))
                return

    def _movable(self, topic: str) -> bool:
        return len(self._readers[topic]) >= 2

    def _set_fixed_aside(self) -> Assignment:
        """Take out the members that have all they read and share none of it with others."""
        fixed = {}
        for member, given in list(self._assignment.items()):
            most = sum(len(self._partitions[topic]) for topic in self._topics[member])
            if len(given) >= most and not any(self._movable(tp.topic) for tp in given):
                self._ranking.remove(member, len(given))
                fixed[member] = self._assignment.pop(member)
        return fixed

    def _improve(self, movable: Sequence[TopicPartition]) -> bool:
        """Move partitions until nothing gets better; True if any moved."""
        moved_any = False
        while True:
            moved = False
            for tp in movable:
                if self._balanced():
                    break
                member = self._better_member(tp)
                if member is not None:
                    self._move(tp, member)
                    moved = moved_any = True
            if not moved:
                return moved_any

    def _better_member(self, tp: TopicPartition) -> str | None:
        """Who should have it instead: an earlier owner, or the member with the fewest partitions.

        Kafka gives it back to an earlier owner even if that no longer reads the topic; this does
        not.
        """
        fewer_than = len(self._assignment[self._consumer[tp]]) - 1
        before = self._before.get(tp)
        if (
            before in self._assignment
            and tp.topic in self._topics[before]
            and len(self._assignment[before]) < fewer_than
        ):
            return before
        if any(len(self._assignment[reader]) < fewer_than for reader in self._readers[tp.topic]):
            return next(member for member in self._ranking if tp.topic in self._topics[member])
        return None

    def _move(self, tp: TopicPartition, new: str) -> None:
        tp = self._movements.instead_of(tp, self._consumer[tp], new)
        old = self._consumer[tp]
        for member in (old, new):
            self._ranking.remove(member, len(self._assignment[member]))
        self._movements.record(tp, old, new)
        self._assignment[old].remove(tp)
        self._assignment[new].append(tp)
        self._consumer[tp] = new
        for member in (old, new):
            self._ranking.add(member, len(self._assignment[member]))

    def _balanced(self) -> bool:
        """Whether no member could take a partition from one that has two more than itself."""
        if self._ranking.spread <= 1:
            return True
        for member in self._ranking:
            count = len(self._assignment[member])
            for topic in self._topics[member]:
                for number in range(len(self._partitions[topic])):
                    holder = self._consumer[TopicPartition(topic, number)]
                    if count + 1 < len(self._assignment[holder]):
                        return False
        return True


def _earlier_owners(owners: Owners) -> dict[TopicPartition, str]:
    """Who claims a partition from the newest generation before the last one."""
    newest = owners.newest_generation
    found: dict[TopicPartition, tuple[int, str]] = {}
    for member, (claims, stated) in owners.data.items():
        generation = NO_GENERATION if stated is None else stated
        if generation < newest:
            for tp in claims:
                if tp not in found or generation > found[tp][0]:
                    found[tp] = (generation, member)
    return {tp: member for tp, (_, member) in found.items()}


def _imbalance(assignment: Assignment) -> int:
    """The differences between the sizes of all pairs of members, summed up."""
    sizes = (len(given) for given in assignment.values())
    return sum(abs(a - b) for a, b in combinations(sizes, 2))
