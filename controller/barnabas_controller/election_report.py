"""What the controller tells people of its decisions on leaders and ISRs, as events.

The decisions themselves are made in `election.py`; here is who was considered, in which order, and
why each was taken or passed over.
"""

from collections.abc import Collection, Mapping, Sequence

from barnabas.events import EventKind
from barnabas.topic_partition import TopicPartition

from barnabas_controller.context import ControllerContext
from barnabas_controller.election import Refused
from barnabas_controller.leader_and_isr import NO_LEADER, RECOVERING, LeaderAndIsr
from barnabas_controller.reign import Reign


def passed_over(
    assignment: Sequence[int], leader: int, isr: Collection[int], offline: Mapping[int, str]
) -> list[str]:
    """Why each replica before the leader, in assignment order, does not lead; all, without one.

    `offline` says of each that cannot serve why not.
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
            why = "is in the ISR, but the cause speaks for another"
        reasons.append(f"broker {replica} {why}")
    return reasons


def why_offline(context: ControllerContext, partition: TopicPartition) -> dict[int, str]:
    """The replicas of a partition that cannot serve, and why not."""
    return {r: _why_offline(context, r) for r in context.offline_replicas(partition)}


def _why_offline(context: ControllerContext, broker_id: int) -> str:
    if broker_id not in context.brokers:
        return "is not registered in ZooKeeper"
    if broker_id in context.shutting_down:
        return "is shutting down"
    if context.is_suspected(broker_id):
        return "is suspected to be dead"
    return "has lost the log directory of this partition"


def report_decision(
    reign: Reign, partition: TopicPartition, old: LeaderAndIsr, new: LeaderAndIsr, reason: str
) -> None:
    """A state was written: another leader, or the same one with another ISR."""
    context = reign.context
    replicas = context.replicas(partition)
    moved = new.leader != old.leader and new.leader != NO_LEADER
    reign.events.record(
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


def report_first_leader(reign: Reign, partition: TopicPartition, state: LeaderAndIsr) -> None:
    """A new partition has its first leader."""
    replicas = reign.context.replicas(partition)
    reign.events.record(
        EventKind.LEADER_ELECTED,
        "the partition is new",
        partition,
        leader_before=NO_LEADER,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        isr_before=[],
        isr=state.isr,
        unclean=False,
        candidates=replicas,
        passed_over=passed_over(
            replicas, state.leader, state.isr, why_offline(reign.context, partition)
        ),
    )


def report_refusal(reign: Reign, partition: TopicPartition, refusal: Refused) -> bool:
    """No leader, or not the wanted one. Returns whether it was news.

    Elections are tried again for every partition without a leader whenever a broker comes or goes.
    Where all is as it was at the last refusal nothing is recorded: a thousand such partitions would
    push everything else out of the ring.
    """
    context = reign.context
    state = context.leadership.get(partition)
    replicas = context.replicas(partition)
    isr = state.isr if state is not None else ()
    reasons = passed_over(replicas, NO_LEADER, isr, why_offline(context, partition))
    present = (refusal.why, isr, replicas, reasons)
    if context.refused.get(partition) == present:
        return False
    context.refused[partition] = present
    reign.events.record(
        EventKind.ELECTION_REFUSED,
        refusal.reason,
        partition,
        leader=state.leader if state is not None else NO_LEADER,
        leader_epoch=state.leader_epoch if state is not None else -1,
        isr=isr,
        candidates=replicas,
        passed_over=reasons,
    )
    return True
