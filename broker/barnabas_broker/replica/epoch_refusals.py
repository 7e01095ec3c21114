"""Refusals of roles whose leader epoch is older than the epoch that this broker holds.

The controller elects by the partition's state znode. If an older state was written back, or
ZooKeeper was restored from an older copy, the znode names a leader epoch that the brokers have left
behind. A leader that took such a role would write new records under an epoch that its followers
already have in their logs, and no comparison of epochs could tell the two apart.
"""

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import HeldRole, LeaderAndIsrPartition
from barnabas_common.messages.sentinels import NO_EPOCH, NO_LEADER
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.partition.partition import Partition
from barnabas_broker.replica.topic_identity import same_topic


def is_below_log(
    partition_state: LeaderAndIsrPartition,
    leads: bool,
    partition: Partition | None,
    log: UnifiedLog,
) -> bool:
    """Whether the log has a newer leader epoch than the role.

    For a leader, also whether the log has records of the same epoch. This process has not led in
    that epoch, because its own roles are excluded first, so another leader may have written them.
    A partition that has its first leader has no records.
    """
    if partition_state.is_first and partition is None and log.log_end_offset > 0:
        return True
    newest = log.leader_epochs.entries[-1:]
    if not newest or (partition is not None and partition.leader_epoch >= newest[0].epoch):
        return False
    epoch, start_offset = newest[0]
    if leads and partition_state.leader_epoch == epoch:
        return start_offset < log.log_end_offset
    return partition_state.leader_epoch < epoch


def refusal_with_role(
    logs: LogManager, key: TopicPartition, asked: LeaderAndIsrPartition
) -> ErrorCode:
    """The answer to the question what is held here: STALE_CONTROLLER_EPOCH goes with the role.

    A log that is lost, or of another topic, tells nothing.
    """
    log = logs.get(key)
    logs.note_stray(key, asked.topic_id)
    if logs.lost.refuse(key, asked.leader_epoch):
        return ErrorCode.CORRUPT_MESSAGE
    if log is not None and not same_topic(log.topic_id, asked.topic_id):
        return ErrorCode.INCONSISTENT_TOPIC_ID
    return ErrorCode.STALE_CONTROLLER_EPOCH


def held_role(
    partition_state: LeaderAndIsrPartition,
    broker_id: int,
    partition: Partition | None,
    log: UnifiedLog | None,
) -> HeldRole | None:
    """The role and the log that this broker holds; None if the role was only repeated, and the
    controller has not asked for them.

    It was not only repeated if this leader waits for a state that another tool has written since:
    its ISR changes are refused by the state's version until the controller raises the epoch. Nor
    was it if the controller, which found no state, takes the partition for a new one.
    """
    role_epoch = NO_EPOCH if partition is None else partition.leader_epoch
    log_epoch = NO_EPOCH if log is None else log.latest_epoch()
    log_epoch = NO_EPOCH if log_epoch is None else log_epoch
    leader_epoch = max(role_epoch, log_epoch)
    is_current = partition is not None and role_epoch == leader_epoch
    if (
        partition is not None
        and is_current
        and not partition_state.tell_only
        and (role_epoch, partition.leader_id)
        == (partition_state.leader_epoch, partition_state.leader)
        and not _is_behind(partition, partition_state)
        and not _is_taken_for_new(partition, partition_state)
    ):
        return None
    held = HeldRole(partition_state.topic, partition_state.partition, leader_epoch)
    if partition is not None and is_current:
        held.leader = partition.leader_id
        if partition.leadership is not None and held.leader == broker_id:
            held.in_sync_replicas = list(partition.leadership.isr.committed)
        elif held.leader == NO_LEADER:
            held.in_sync_replicas = list(partition.isr_of_role)
    if log is not None:
        held.log_epoch, held.log_end_offset = log_epoch, log.log_end_offset
    return held


def _is_taken_for_new(partition: Partition, partition_state: LeaderAndIsrPartition) -> bool:
    """Whether this leader already has another state than the first one that it is sent."""
    leadership = partition.leadership
    return (
        leadership is not None
        and partition_state.is_first
        and (leadership.partition_epoch, leadership.isr.committed)
        != (partition_state.partition_epoch, tuple(partition_state.in_sync_replicas))
    )


def _is_behind(partition: Partition, partition_state: LeaderAndIsrPartition) -> bool:
    leadership = partition.leadership
    return (
        leadership is not None
        and leadership.is_behind
        and partition_state.partition_epoch > leadership.partition_epoch
    )
