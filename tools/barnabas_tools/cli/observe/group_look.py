"""What can be seen of a group at one moment: its state, its members, how far they have read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from barnabas import Admin
from barnabas.admin import GroupDescription
from barnabas.group.awaiting import in_words, name_of
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_common.errors import BarnabasError
from barnabas_common.events import Event
from barnabas_common.topic_name import GROUP_METADATA_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_tools.cli.log_ends import log_ends
from barnabas_tools.cli.output import counted


@dataclass(frozen=True)
class PartitionLook:
    """One partition that is read or committed; `reader` is a member's client id, or its id.

    `committed` is None before the first commit, `end` if the partition does not exist any more or
    has no leader.
    """

    topic_partition: TopicPartition
    committed: int | None
    end: int | None
    reader: str

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.end is None:
            return None
        return max(self.end - self.committed, 0)


@dataclass
class Watched:
    """`offsets_partition`: the partition of `__consumer_offsets` that holds the group, once it is
    known."""

    group_id: str
    offsets_partition: TopicPartition | None = None

    def concerns(self, event: Event) -> bool:
        """Whether an event is about this group, or about its coordinator."""
        if event.details.get("group") == self.group_id:
            return True
        is_coordinators = event.kind.value.startswith("coordinator-")
        return is_coordinators and event.topic_partition == self.offsets_partition


@dataclass(frozen=True)
class GroupLook:
    """A group that does not exist is Dead."""

    described: GroupDescription
    partitions: Sequence[PartitionLook]

    @property
    def exists(self) -> bool:
        return self.described.state != "Dead" or bool(self.partitions)

    @property
    def lag(self) -> int:
        """Over all partitions that have a commit."""
        return sum(look.lag or 0 for look in self.partitions)

    def words(self) -> str:
        """The state in one line."""
        group = self.described
        if not self.exists:
            return f"group {group.group_id}: there is no such group yet"
        return (
            f"group {group.group_id}: {group.state}, generation {group.generation},"
            f" {counted(len(group.members), 'member')}, {group.assignor or 'no assignor'},"
            f" coordinator {group.coordinator}, lag {self.lag}"
        )

    def waits(self) -> list[str]:
        """Whom its rebalance waits for, in sentences."""
        return [f"it {words}" for words in in_words(self.described.awaiting)]

    def row(self) -> dict[str, Any]:
        """The state as JSON; the names of the fields are stable."""
        group = self.described
        return {
            "group": group.group_id,
            "state": group.state,
            "generation": group.generation,
            "assignor": group.assignor or None,
            "coordinator": group.coordinator,
            "members": len(group.members),
            "lag": self.lag,
            "waits_for": [name_of(member) for member in group.awaiting.members],
        }


async def look_at(admin: Admin, watched: Watched) -> GroupLook:
    """Ask the coordinator, and the leaders for the ends of the logs."""
    group = watched.group_id
    described = (await admin.describe_groups([group]))[group]
    committed = await admin.list_group_offsets(group)
    readers = {
        tp: member.client_id or member.member_id
        for member in described.members
        for tp in member.assignment
    }
    partitions = sorted({*committed, *readers})
    ends = await log_ends(admin, partitions)
    looks = [
        PartitionLook(
            tp,
            committed[tp].offset if tp in committed else None,
            ends.get(tp),
            readers.get(tp, ""),
        )
        for tp in partitions
    ]
    if watched.offsets_partition is None:
        watched.offsets_partition = await _offsets_partition(admin, group)
    return GroupLook(described, looks)


async def _offsets_partition(admin: Admin, group: str) -> TopicPartition | None:
    try:
        found = await admin.describe_topic(GROUP_METADATA_TOPIC)
    except BarnabasError:  # before the first group there is no such topic
        return None
    number = partition_of_key(group, len(found.partitions))
    return TopicPartition(GROUP_METADATA_TOPIC, number)
