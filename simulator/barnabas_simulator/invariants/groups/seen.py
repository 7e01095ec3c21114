"""What the checks of groups have seen together, and who coordinates which group."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_broker.replica.partition.partitions import Partitions
from barnabas_common.topic_name import GROUP_METADATA_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.findings import Findings
from barnabas_simulator.invariants.groups import rules
from barnabas_simulator.invariants.groups.model import GroupTruth, Undecided
from barnabas_simulator.invariants.groups.rules import Sender
from barnabas_simulator.invariants.truth import Truth

Commit = tuple[str, TopicPartition, int, str]
"""A commit by its values: group, partition, offset and metadata."""


@dataclass
class GroupsSeen:
    """`groups`: by the committed log. `senders`: who has sent each commit. `known_at`: the record
    of the latest commit that was acknowledged. `promised`: acknowledged, and its record is not
    committed yet. `undecided`: by partition of `__consumer_offsets`, the records of transactions.
    `done`: the records that members have worked on."""

    findings: Findings
    truths: Mapping[TopicPartition, Truth]
    groups: dict[str, GroupTruth] = field(default_factory=dict)
    senders: dict[Commit, list[Sender]] = field(default_factory=dict)
    promised: dict[Commit, None] = field(default_factory=dict)
    known_at: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    undecided: dict[TopicPartition, Undecided] = field(default_factory=dict)
    done: dict[tuple[str, TopicPartition], set[int]] = field(default_factory=dict)

    def truth(self, group: str) -> GroupTruth:
        return self.groups.setdefault(group, GroupTruth())

    def acknowledge(self, group: str, tp: TopicPartition, at: int) -> None:
        self.known_at[group, tp] = max(at, self.known_at.get((group, tp), -1))

    def own(self, group: str, generation: int, given: list[tuple[str, TopicPartition]]) -> None:
        """Members were given partitions of a generation, by the log or by an answer."""
        owners = self.truth(group).owners.setdefault(generation, {})
        partition, rule = self.partition(group), rules.one_owner
        self.findings.hold(partition, rule, group, generation, owners, given)
        owners.update((tp, member) for member, tp in given)

    @property
    def partition_count(self) -> int:
        return sum(tp.topic == GROUP_METADATA_TOPIC for tp in self.truths)

    def partition(self, group: str) -> TopicPartition:
        """The partition that holds the group."""
        number = partition_of_key(group, max(self.partition_count, 1))
        return TopicPartition(GROUP_METADATA_TOPIC, number)

    def leads(self, group: str, partitions: Partitions) -> bool:
        """Whether a broker coordinates the group, by ZooKeeper."""
        partition = self.partition(group)
        truth, hosted = self.truths.get(partition), partitions.get(partition)
        leadership = None if hosted is None else hosted.leadership
        if truth is None or leadership is None:
            return False
        return leadership.epoch == truth.led_epoch
