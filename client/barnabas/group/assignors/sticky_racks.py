"""Racks of members and partitions, as the sticky assignors use them (KIP-881)."""

from collections import Counter
from collections.abc import Sequence

from barnabas_common.topic_partition import TopicPartition

from barnabas.group.assignors.assignor import PartitionRacks, Subscriptions


class Racks:
    """`used`: some members share racks with replicas, and not every partition is in every rack."""

    def __init__(self, partitions: PartitionRacks, subscriptions: Subscriptions) -> None:
        members = {member: s.rack_id for member, s in subscriptions.items() if s.rack_id}
        of_partition = {
            TopicPartition(topic, number): racks
            for topic, all_racks in partitions.items()
            for number, racks in enumerate(all_racks)
        }
        every = frozenset[str]().union(*of_partition.values())
        self.used = not every.isdisjoint(members.values()) and any(
            racks != every for racks in of_partition.values()
        )
        self._members = members if self.used else {}
        self._partitions = of_partition
        readers = Counter(members.values())
        self._readers = {
            tp: sum(readers[rack] for rack in racks) for tp, racks in of_partition.items()
        }

    def mismatch(self, member: str, tp: TopicPartition) -> bool:
        """Whether the member has a rack and no replica is in it."""
        rack = self._members.get(member)
        return rack is not None and rack not in self._partitions[tp]

    def fewest_readers_first(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Those that few members can read in their own rack come first."""
        return sorted(partitions, key=lambda tp: self._readers[tp])

    def next_reader(self, tp: TopicPartition, members: Sequence[str], start: int) -> int | None:
        """The index of the first member from `start` on, cyclic, that has a replica in its rack."""
        for step in range(len(members)):
            index = (start + step) % len(members)
            rack = self._members.get(members[index])
            if rack is not None and rack in self._partitions[tp]:
                return index
        return None
