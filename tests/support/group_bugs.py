"""Bugs of the group coordinator and of the assignors, put back in the same way as `seeded_bugs`."""

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.group.assignors import range_assignor
from barnabas.group.assignors.sticky_constrained import ConstrainedAssignment
from barnabas_broker.coordinator import partition_log
from barnabas_broker.coordinator.group import offsets
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.groups import Groups
from barnabas_broker.coordinator.group.membership.sync import Syncs
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.coordinator.owned_partitions import OwnedPartitions
from barnabas_broker.replica.serve.coordinator_reads import CoordinatorReads, LogRange
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.topic_partition import TopicPartition

from tests.support.seeded_bugs import Patch, SeededBug

Owned = OwnedPartitions[Any]


def _accept_commits_of_any_generation() -> list[Patch]:
    """M15: a commit is not compared with the group's generation and members."""

    def check_commit(group: Group, _request: Any) -> ErrorCode:
        is_dead = group.state is GroupState.DEAD
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if is_dead else ErrorCode.NONE

    return [(offsets, "check_commit", check_commit)]


def _append_with_acks_1() -> list[Patch]:
    """G1: commits and assignments count once the leader alone has them."""
    return [(partition_log, "ACKS_ALL", 1)]


def _load_to_the_high_watermark() -> list[Patch]:
    """G2: a new coordinator reads up to its high watermark, which lags after an election."""

    def log_range(reads: CoordinatorReads, key: TopicPartition, leader_epoch: int) -> LogRange:
        log = reads._partitions.hosted(key).lead(leader_epoch).log
        return LogRange(log.log_start_offset, log.high_watermark)

    return [(CoordinatorReads, "log_range", log_range)]


def _keep_groups_while_another_leads() -> list[Patch]:
    """G3: a coordinator that leads again serves what it knew when it led before."""
    became_leader = OwnedPartitions.became_leader
    became_follower = OwnedPartitions.became_follower
    kept: set[tuple[int, int]] = set()

    def follow(groups: Owned, partition: TopicPartition, leader_epoch: int) -> None:
        if not isinstance(groups, Groups):
            became_follower(groups, partition, leader_epoch)
        elif groups._owned.pop(partition.partition, None) is not None:
            kept.add((id(groups), partition.partition))

    def lead(groups: Owned, partition: TopicPartition, leader_epoch: int) -> None:
        if (id(groups), partition.partition) in kept:
            groups._owned[partition.partition] = leader_epoch
        else:
            became_leader(groups, partition, leader_epoch)

    return [
        (OwnedPartitions, "became_follower", follow),
        (OwnedPartitions, "became_leader", lead),
    ]


def _count_generations_from_0() -> list[Patch]:
    """G4: a group that was loaded begins with generation 0."""
    loaded = Group.loaded

    def without_generation(group_id: str, value: Any) -> Group:
        group = loaded(group_id, value)
        group.generation_id = 0
        return group

    return [(Group, "loaded", staticmethod(without_generation))]


def _answer_before_the_assignment_is_written() -> list[Patch]:
    """G5: SyncGroup is answered while the record of the generation is on its way."""

    def write(syncs: Syncs, assigned: Mapping[str, bytes], group: Group) -> None:
        assignments = {member_id: assigned.get(member_id, b"") for member_id in group.members}
        syncs._context.store(group, assignments, lambda _error: None)
        syncs._take(group, assignments)

    return [(Syncs, "_write", write)]


def _give_what_another_still_owns() -> list[Patch]:
    """G6: cooperative-sticky hands a partition over in the generation in which its owner learns
    that it must give it up (KIP-429)."""

    def give(made: ConstrainedAssignment, tp: TopicPartition, member: str) -> None:
        made.assignment[member].append(tp)

    return [(ConstrainedAssignment, "_give", give)]


def _deal_a_partition_twice() -> list[Patch]:
    """G7: the last partition of a member's range is the first of the next one's."""
    give = range_assignor._Topic.give

    def give_and_keep(topic: Any, member: str, partitions: Sequence[int]) -> list[TopicPartition]:
        given = give(topic, member, partitions)
        left = topic._unassigned
        topic._unassigned = dict.fromkeys([*partitions[-1:], *left])
        return given

    return [(range_assignor._Topic, "give", give_and_keep)]


def _leave_a_partition_out() -> list[Patch]:
    """G8: the sticky assignors give the last free partition to no member."""
    give_in_turn = ConstrainedAssignment._give_in_turn

    def all_but_one(made: ConstrainedAssignment, partitions: Sequence[TopicPartition]) -> None:
        give_in_turn(made, partitions[:-1])

    return [(ConstrainedAssignment, "_give_in_turn", all_but_one)]


GROUP_BUGS = {
    bug.name: bug
    for bug in (
        SeededBug("M15", "generations", _accept_commits_of_any_generation),
        SeededBug("G1", "acks=all inside", _append_with_acks_1),
        SeededBug("G2", "loads read to the log end", _load_to_the_high_watermark),
        SeededBug("G3", "loads after each election", _keep_groups_while_another_leads),
        SeededBug("G4", "generations outlive their coordinator", _count_generations_from_0),
        SeededBug("G5", "assignments are written first", _answer_before_the_assignment_is_written),
        SeededBug("G6", "KIP-429", _give_what_another_still_owns),
        SeededBug("G7", "one owner", _deal_a_partition_twice),
        SeededBug("G8", "every partition has an owner", _leave_a_partition_out),
    )
}
