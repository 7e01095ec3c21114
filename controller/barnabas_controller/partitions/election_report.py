"""Events about decisions on leaders and ISRs: for each candidate, why it was passed over."""

from collections.abc import Collection, Mapping, Sequence

from barnabas_common.events import EventKind
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.election.decision import Refused
from barnabas_controller.state.context import ControllerContext
from barnabas_controller.store.leader_and_isr import NO_LEADER, RECOVERING, LeaderAndIsr


def passed_over(
    assignment: Sequence[int], leader: int, isr: Collection[int], offline: Mapping[int, str]
) -> list[str]:
    """Why each replica before the leader in assignment order was passed over.

    If no replica leads, all are listed. `offline` has the reason why each offline replica is so.
    """
    reasons = []
    for replica in assignment:
        if replica == leader:
            break
        if replica in offline:
            why = offline[replica]
        elif replica not in isr:
            why = "is not in the ISR"
        else:
            why = "was in the ISR, but another was preferred"
        reasons.append(f"broker {replica} {why}")
    return reasons


def why_offline(context: ControllerContext, partition: TopicPartition) -> dict[int, str]:
    """The offline replicas of a partition, and why each is offline."""
    return {r: _why_offline(context, r) for r in context.offline_replicas(partition)}


def _why_offline(context: ControllerContext, broker_id: int) -> str:
    if broker_id not in context.brokers:
        return "is not registered in ZooKeeper"
    if broker_id in context.shutting_down:
        return "is shutting down"
    if context.is_suspected(broker_id):
        return "is suspected to be dead"
    return "cannot use its log of this partition"


def report_decision(
    term: ControllerTerm,
    partition: TopicPartition,
    old: LeaderAndIsr,
    new: LeaderAndIsr,
    reason: str,
) -> None:
    """Report a written state: another leader, or the same leader with another ISR.

    For a new partition `old` is `NOT_CREATED`.
    """
    context = term.context
    replicas = context.replicas(partition)
    moved = new.leader != old.leader and new.leader != NO_LEADER
    term.events.record(
        EventKind.LEADER_ELECTED if moved else EventKind.ISR_CHANGED,
        reason,
        partition,
        leader_before=old.leader,
        leader=new.leader,
        leader_epoch=new.leader_epoch,
        partition_epoch=new.partition_epoch,
        isr_before=old.isr,
        isr=new.isr,
        unclean=moved and new.recovery_state == RECOVERING and new.leader not in old.isr,
        candidates=replicas,
        passed_over=passed_over(replicas, new.leader, old.isr, why_offline(context, partition))
        if moved
        else [],
    )


def report_foreign_change(
    term: ControllerTerm,
    partition: TopicPartition,
    old: LeaderAndIsr,
    new: LeaderAndIsr,
    reason: str,
) -> None:
    """Report a state that this controller did not write.

    Under the same leader and leader epoch, the leader itself has changed the ISR.
    """
    if new.leader_epoch != old.leader_epoch or new.leader != old.leader:
        report_decision(term, partition, old, new, reason)
    elif new.isr != old.isr:
        term.events.record(
            EventKind.ISR_CHANGE_ACCEPTED,
            reason,
            partition,
            isr_before=old.isr,
            isr=new.isr,
            leader=new.leader,
            leader_epoch=new.leader_epoch,
            partition_epoch=new.partition_epoch,
        )


def report_refusal(term: ControllerTerm, partition: TopicPartition, refusal: Refused) -> None:
    """Report that an election elected no leader, or not the requested one.

    Whenever a broker registers or fails, elections are repeated for all partitions without a
    leader. A refusal that equals the last one is not recorded, because a thousand such partitions
    would displace all other events from the ring.
    """
    context = term.context
    state = context.leadership.get(partition)
    replicas = context.replicas(partition)
    isr = state.isr if state is not None else ()
    reasons = passed_over(replicas, NO_LEADER, isr, why_offline(context, partition))
    present = (refusal.why, isr, replicas, reasons)
    if context.refused.get(partition) == present:
        return
    context.refused[partition] = present
    term.events.record(
        EventKind.ELECTION_REFUSED,
        refusal.reason,
        partition,
        leader=state.leader if state is not None else NO_LEADER,
        leader_epoch=state.leader_epoch if state is not None else -1,
        isr=isr,
        candidates=replicas,
        passed_over=reasons,
        **({} if refusal.otherwise == NO_LEADER else {"leads_after_wait": refusal.otherwise}),
    )
