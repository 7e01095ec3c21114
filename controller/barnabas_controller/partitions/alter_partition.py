"""Whether a leader may change the ISR (AlterPartition, KIP-497): a pure decision.

The checks and their order are Kafka's (`KafkaController.tryProcessAlterPartition`). A retry of a
completed change must be recognized before its partition epoch is found to be old.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import AlteredPartition, AlterPartitionItem

from barnabas_controller.store.leader_and_isr import RECOVERED, RECOVERING, LeaderAndIsr


@dataclass(frozen=True)
class Write:
    """The change is legal: write this state, which expects its `partition_epoch` in ZooKeeper."""

    state: LeaderAndIsr


@dataclass(frozen=True)
class AlreadyDone:
    """The state is as requested already, for instance because the response was lost."""

    state: LeaderAndIsr


@dataclass(frozen=True)
class Reject:
    """The change is refused; the leader receives the code, the event has the reason."""

    code: ErrorCode
    reason: str


AlterPartitionDecision = Write | AlreadyDone | Reject


def decide_alter_partition(
    item: AlterPartitionItem,
    current: LeaderAndIsr | None,
    alive: Collection[int],
    sender: int,
    broker_epochs: Mapping[int, int] = MappingProxyType({}),
    topic_id: str = "",
) -> AlterPartitionDecision:
    """Decide on one partition of a request of broker `sender`.

    `current` is the cached state, None if there is none. `alive` are the brokers that may join the
    ISR. `broker_epochs` has the broker epochs of all registered brokers. `topic_id` is the
    controller's id of the topic, empty if it is unknown. When the only member of an ISR requests
    the present ISR, it reports that its log is durable.
    """
    if current is None:
        return Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no leader is known for it")
    if topic_id and item.topic_id and item.topic_id != topic_id:
        why = f"topic id {item.topic_id} was deleted, that name has topic id {topic_id} now"
        return Reject(ErrorCode.UNKNOWN_TOPIC_ID, why)
    wanted = replace(
        current,
        leader_epoch=item.leader_epoch,
        isr=tuple(item.new_isr),
        recovery_state=item.leader_recovery_state,
    )
    stale = _check_epochs(item, current)
    if stale is not None and stale.code is not ErrorCode.INVALID_UPDATE_VERSION:
        return stale
    if wanted.same_but_for_partition_epoch(current):
        if stale is None and not current.durable and current.isr == (sender,):
            return Write(replace(current, durable=True))
        return AlreadyDone(current)
    if stale is not None:
        return stale
    illegal = _check_new_isr(item, current, alive)
    if illegal is not None:
        return illegal
    restarted = with_stale_broker_epoch(item, broker_epochs)
    if restarted:
        why = f"earlier incarnations of these brokers fetched: {restarted}"
        return Reject(ErrorCode.INELIGIBLE_REPLICA, why)
    return Write(wanted)


def _check_epochs(item: AlterPartitionItem, current: LeaderAndIsr) -> Reject | None:
    epochs = (
        f"leader epoch {item.leader_epoch} and partition epoch {item.partition_epoch} "
        f"against {current.leader_epoch} and {current.partition_epoch} here"
    )
    if item.leader_epoch < current.leader_epoch:
        # Whatever its partition epoch is: the state znode may have been deleted and created again.
        return Reject(ErrorCode.FENCED_LEADER_EPOCH, epochs)
    if item.partition_epoch > current.partition_epoch or item.leader_epoch > current.leader_epoch:
        return Reject(
            ErrorCode.NOT_CONTROLLER, f"a newer controller has written the state: {epochs}"
        )
    if item.partition_epoch < current.partition_epoch:
        return Reject(ErrorCode.INVALID_UPDATE_VERSION, epochs)
    return None


def _check_new_isr(
    item: AlterPartitionItem, current: LeaderAndIsr, alive: Collection[int]
) -> Reject | None:
    if item.leader_recovery_state not in (RECOVERED, RECOVERING):
        return Reject(
            ErrorCode.INVALID_REQUEST, f"unknown recovery state {item.leader_recovery_state}"
        )
    if not item.new_isr or len(set(item.new_isr)) != len(item.new_isr):
        return Reject(ErrorCode.INVALID_REQUEST, f"not an ISR: {item.new_isr}")
    if item.leader_recovery_state == RECOVERING and len(item.new_isr) > 1:
        return Reject(ErrorCode.INVALID_REQUEST, "a recovering leader must be alone in the ISR")
    if item.leader_recovery_state == RECOVERING and current.recovery_state == RECOVERED:
        return Reject(ErrorCode.INVALID_REQUEST, "a recovered leader cannot recover again")
    absent = [replica for replica in item.new_isr if replica not in alive]
    if absent:
        return Reject(ErrorCode.INELIGIBLE_REPLICA, f"not alive: {absent}")
    return None


def with_stale_broker_epoch(
    item: AlterPartitionItem, broker_epochs: Mapping[int, int]
) -> list[int]:
    """The proposed members of the ISR that fetched in an earlier incarnation (KIP-903).

    A broker that has restarted since may have lost records.
    """
    return [
        broker_id
        for broker_id, epoch in zip(item.new_isr, item.new_isr_epochs, strict=False)
        if epoch >= 0 and broker_epochs.get(broker_id, epoch) != epoch
    ]


def accepted(item: AlterPartitionItem, state: LeaderAndIsr) -> AlteredPartition:
    """The successful response for a partition, which contains its present state."""
    return AlteredPartition(
        item.topic,
        item.partition,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        in_sync_replicas=list(state.isr),
        leader_recovery_state=state.recovery_state,
    )


def rejected(item: AlterPartitionItem, code: ErrorCode) -> AlteredPartition:
    """The response for a partition whose change is refused."""
    return AlteredPartition(item.topic, item.partition, int(code))
