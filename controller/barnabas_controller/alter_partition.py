"""A leader asks for another ISR (AlterPartition, KIP-497): may it have it? A pure decision.

The checks and their order are Kafka's (`KafkaController.tryProcessAlterPartition`); the order
matters: a retry of a change that was made must be recognized before its old partition epoch is.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from barnabas.error_code import ErrorCode
from barnabas.messages.control import AlteredPartition, AlterPartitionItem

from barnabas_controller.leader_and_isr import RECOVERED, RECOVERING, LeaderAndIsr


@dataclass(frozen=True)
class Write:
    """Legal: write this state on top of its `partition_epoch`."""

    state: LeaderAndIsr
    reason: str


@dataclass(frozen=True)
class AlreadyDone:
    """The state is this already: a retry whose first answer was lost."""

    state: LeaderAndIsr


@dataclass(frozen=True)
class Reject:
    code: ErrorCode
    reason: str


Ruling = Write | AlreadyDone | Reject


def rule_on(
    item: AlterPartitionItem,
    current: LeaderAndIsr | None,
    eligible: Collection[int],
    sender: int,
    broker_epochs: Mapping[int, int] = MappingProxyType({}),
) -> Ruling:
    """Judge one partition of a request.

    `current` is the cached state, None without leadership; `eligible` are the brokers that are
    live and not shutting down, `broker_epochs` those of all that are registered. An only member
    that asks for the ISR there is, and is up to date, says with this that its log is durable.
    """
    if current is None:
        return Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no leader is known for it")
    wanted = replace(
        current,
        leader_epoch=item.leader_epoch,
        isr=tuple(item.new_isr),
        recovery_state=item.leader_recovery_state,
    )
    stale = _judge_epochs(item, current)
    if stale is not None and stale.code is not ErrorCode.INVALID_UPDATE_VERSION:
        return stale
    if wanted.same_but_for_partition_epoch(current):
        if stale is None and not current.durable and current.isr == (sender,):
            return Write(replace(current, durable=True), "its leader has flushed all it holds")
        return AlreadyDone(current)
    if stale is not None:
        return stale
    illegal = _judge_content(item, current, eligible)
    if illegal is not None:
        return illegal
    gone = of_other_lives(item, broker_epochs)
    if gone:
        return Reject(ErrorCode.INELIGIBLE_REPLICA, f"the lives that fetched are over: {gone}")
    return Write(wanted, f"asked for by broker {sender}, its leader")


def _judge_epochs(item: AlterPartitionItem, current: LeaderAndIsr) -> Reject | None:
    epochs = (
        f"leader epoch {item.leader_epoch} and partition epoch {item.partition_epoch} "
        f"against {current.leader_epoch} and {current.partition_epoch} here"
    )
    if item.partition_epoch > current.partition_epoch or item.leader_epoch > current.leader_epoch:
        return Reject(ErrorCode.NOT_CONTROLLER, f"a newer controller must have written: {epochs}")
    if item.leader_epoch < current.leader_epoch:
        return Reject(ErrorCode.FENCED_LEADER_EPOCH, epochs)
    if item.partition_epoch < current.partition_epoch:
        return Reject(ErrorCode.INVALID_UPDATE_VERSION, epochs)
    return None


def _judge_content(
    item: AlterPartitionItem, current: LeaderAndIsr, eligible: Collection[int]
) -> Reject | None:
    if item.leader_recovery_state not in (RECOVERED, RECOVERING):
        return Reject(
            ErrorCode.INVALID_REQUEST, f"no recovery state {item.leader_recovery_state} exists"
        )
    if not item.new_isr or len(set(item.new_isr)) != len(item.new_isr):
        return Reject(ErrorCode.INVALID_REQUEST, f"not an ISR: {item.new_isr}")
    if item.leader_recovery_state == RECOVERING and len(item.new_isr) > 1:
        return Reject(ErrorCode.INVALID_REQUEST, "a recovering leader has an ISR of its own")
    if item.leader_recovery_state == RECOVERING and current.recovery_state == RECOVERED:
        return Reject(ErrorCode.INVALID_REQUEST, "a recovered leader cannot recover again")
    absent = [replica for replica in item.new_isr if replica not in eligible]
    if absent:
        return Reject(ErrorCode.INELIGIBLE_REPLICA, f"not live, or shutting down: {absent}")
    return None


def of_other_lives(item: AlterPartitionItem, broker_epochs: Mapping[int, int]) -> list[int]:
    """Those of a new ISR whom the leader knows by the fetches of another life than the present one:
    who restarted meanwhile may have lost what it had (KIP-903)."""
    return [
        broker_id
        for broker_id, epoch in zip(item.new_isr, item.new_isr_epochs, strict=False)
        if epoch >= 0 and broker_epochs.get(broker_id, epoch) != epoch
    ]


def accepted(item: AlterPartitionItem, state: LeaderAndIsr) -> AlteredPartition:
    """The answer that tells the leader the state as it is now."""
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
    return AlteredPartition(item.topic, item.partition, int(code))
