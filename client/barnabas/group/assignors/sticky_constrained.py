"""The sticky assignment when all members subscribe to the same topics.

Every member keeps what it owned up to its share, and gets the rest in turn. With P partitions and
M members, P mod M members may have one partition more than P div M.
"""

from collections.abc import Sequence

from barnabas_common.topic_partition import TopicPartition

from barnabas.group.assignors.assignor import Assignment, PartitionRacks
from barnabas.group.assignors.sticky_owners import Owners
from barnabas.group.assignors.sticky_racks import Racks


class ConstrainedAssignment:
    """`transferring`: partitions that go from a member which may still own them to another."""

    def __init__(self, partitions: PartitionRacks, racks: Racks, owners: Owners) -> None:
        self._racks = racks
        self._owners = owners
        self._all = [
            TopicPartition(topic, number)
            for topic in sorted(partitions)
            for number in range(len(partitions[topic]))
        ]
        self._least, self._more_in_all = divmod(len(self._all), len(owners.owned))
        self._most = self._least + (1 if self._more_in_all else 0)
        self._with_more = 0
        # Members below the least share, and members at it that may get one more.
        self._below: list[str] = []
        self._at_least: list[str] = []
        self._maybe_revoked: dict[TopicPartition, str] = {}
        self._turn = 0
        self.assignment: Assignment = {member: [] for member in owners.owned}
        self.transferring: dict[TopicPartition, str] = {}

    def build(self) -> Assignment:
        for member in self.assignment:
            self._keep_owned(member)
        kept = {tp for given in self.assignment.values() for tp in given}
        rest = self._racks.fewest_readers_first([tp for tp in self._all if tp not in kept])
        self._below.sort()
        self._at_least.sort()
        if self._racks.used:
            rest = [tp for tp in rest if not self._give_in_rack(tp)]
        self._give_in_turn(rest)
        return self.assignment

    def _keep_owned(self, member: str) -> None:
        """Leave a member what it owned, up to its share."""
        owned = []
        for tp in sorted(self._owners.owned[member], key=lambda tp: (tp.partition, tp.topic)):
            if self._racks.mismatch(member, tp):
                self._maybe_revoked[tp] = member
            elif tp not in self._owners.disputed:
                owned.append(tp)
        if len(owned) < self._least:
            self._below.append(member)
            keep = len(owned)
        elif len(owned) >= self._most and self._with_more < self._more_in_all:
            keep = self._most
            self._one_more_is_full()
        else:
            keep = self._least
            if self._with_more < self._more_in_all:
                self._at_least.append(member)
        self.assignment[member] += owned[:keep]
        self._maybe_revoked.update(dict.fromkeys(owned[keep:], member))

    def _one_more_is_full(self) -> None:
        self._with_more += 1
        if self._with_more == self._more_in_all:
            self._at_least.clear()

    def _give_in_rack(self, tp: TopicPartition) -> bool:
        """Give the partition to a member in a rack of its replicas; False if none may get it."""
        index = self._racks.next_reader(tp, self._below, self._turn)
        if index is not None:
            member = self._below[index]
            count = len(self.assignment[member]) + 1
            if count >= self._least:
                self._below.remove(member)
                if count < self._most and self._with_more < self._more_in_all:
                    self._at_least.append(member)
            else:
                index += 1
            self._turn = index % len(self._below) if self._below else 0
        else:
            index = self._racks.next_reader(tp, self._at_least, 0)
            if index is None:
                return False
            member = self._at_least[index]
            if len(self.assignment[member]) + 1 == self._most:
                del self._at_least[index]
                self._one_more_is_full()
        self._give(tp, member)
        return True

    def _give_in_turn(self, partitions: Sequence[TopicPartition]) -> None:
        turn = 0
        for tp in partitions:
            if not self._below:
                self._give(tp, self._at_least.pop(0))
                continue
            if turn >= len(self._below):
                turn = 0
            member = self._below[turn]
            self._give(tp, member)
            if len(self.assignment[member]) == self._least:
                del self._below[turn]
                self._at_least.append(member)
            else:
                turn += 1

    def _give(self, tp: TopicPartition, member: str) -> None:
        self.assignment[member].append(tp)
        if self._maybe_revoked.get(tp, member) != member or tp in self._owners.disputed:
            self.transferring[tp] = member
