"""Which replicas have every committed record: pure decisions on plain data (after KIP-966).

Kafka relies on the ISR alone. But a member of the ISR that lost power may have lost unflushed
records, and a replica that left the ISR when it fell below `min.insync.replicas` has every
committed record, because the high watermark has not moved since: it is *eligible*. So each state
has, for the members of the ISR and for the eligible replicas, the broker epoch in which each last
proved that it has them; and each broker registers with the broker epoch since which it has lost
nothing. The two together show which logs are complete.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from barnabas_controller.store.leader_and_isr import NO_LEADER, RECOVERING, LeaderAndIsr
from barnabas_controller.store.znodes import Broker


@dataclass(frozen=True)
class LeaderEligibility:
    """What an election must know beyond the ISR.

    `lost`: members of the ISR that lost records since they were in sync.
    `eligible_leader_replicas`: eligible replicas that are online and lost nothing, in assignment
    order. `awaited`: offline replicas that may be better candidates than members that lost records.
    `suspected`, `unreachable`: brokers in these states.
    """

    lost: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    awaited: tuple[int, ...] = ()
    suspected: tuple[int, ...] = ()
    unreachable: tuple[int, ...] = ()


EVERY_MEMBER_ELIGIBLE = LeaderEligibility()


def may_have_lost_records(state: LeaderAndIsr, broker: Broker) -> bool:
    """Whether this broker's replica may have lost records since it last proved what it has.

    The only member of an ISR that had flushed all its records (`durable`) lost nothing in a power
    loss, if its disk is still the same. A state that Kafka wrote has no proofs, and no replica is
    assumed to have lost records. A proof from a later broker epoch than the present one is of
    another ZooKeeper, before it was restored from an older copy, and counts as none.
    """
    proved_at = state.proved_at.get(broker.broker_id)
    if proved_at is None or proved_at > broker.epoch or broker.lost_nothing_since <= proved_at:
        return False
    alone = state.isr == (broker.broker_id,)
    return not (state.durable and alone and not broker.is_new)


def lost_members(state: LeaderAndIsr, brokers: Mapping[int, Broker]) -> tuple[int, ...]:
    """The registered members of the ISR that lost records since they were in sync."""
    return tuple(m for m in state.isr if m in brokers and may_have_lost_records(state, brokers[m]))


def leader_eligibility(
    state: LeaderAndIsr,
    assignment: Sequence[int],
    online: Collection[int],
    brokers: Mapping[int, Broker],
    is_under_min_isr: bool,
) -> LeaderEligibility:
    """Examine every replica that might lead.

    Eligible replicas count only while the ISR is under its minimum: otherwise the high watermark
    may have moved without them.
    """
    eligible = [r for r in state.eligible if r in assignment] if is_under_min_isr else []
    return LeaderEligibility(
        lost=lost_members(state, brokers),
        eligible_leader_replicas=tuple(
            r
            for r in assignment
            if r in eligible and r in online and not may_have_lost_records(state, brokers[r])
        ),
        awaited=tuple(
            r
            for r in (*state.isr, *eligible)
            if r not in online and not (r in brokers and may_have_lost_records(state, brokers[r]))
        ),
    )


def with_elr(
    old: LeaderAndIsr,
    new: LeaderAndIsr,
    assignment: Collection[int],
    min_in_sync: int,
    brokers: Mapping[int, Broker],
) -> LeaderAndIsr:
    """`new`, which will replace `old`, with its eligible replicas and proofs.

    A replica that is no longer assigned is removed, because its log may be deleted.
    """
    eligible: tuple[int, ...] = ()
    if len(new.isr) < min_in_sync and new.recovery_state != RECOVERING:
        known = (*old.eligible, *(r for r in old.isr if r not in old.eligible))
        eligible = tuple(r for r in known if r not in new.isr and r in assignment)
    same_isr = set(new.isr) == set(old.isr)
    return replace(
        new,
        eligible=eligible,
        proved_at=_proved_at(old, new, eligible, brokers),
        durable=new.durable and same_isr and len(new.isr) == 1,
    )


def _proved_at(
    old: LeaderAndIsr,
    new: LeaderAndIsr,
    eligible: Sequence[int],
    brokers: Mapping[int, Broker],
) -> dict[int, int]:
    """A member that stays keeps its proof; one that joins the ISR has just given it, and so has a
    new leader, whose log is complete by definition."""
    proved = {r: old.proved_at[r] for r in (*new.isr, *eligible) if r in old.proved_at}
    elected = new.leader != old.leader and new.leader != NO_LEADER
    for member in new.isr:
        has_proved = member not in old.isr or (elected and member == new.leader)
        if has_proved and member in brokers:
            proved[member] = brokers[member].epoch
    return proved


def without_elr(state: LeaderAndIsr) -> LeaderAndIsr:
    """The state as Kafka writes it: an ELR that is not kept up to date must not be used later."""
    return replace(state, eligible=(), proved_at={}, durable=False)


def with_initial_elr(state: LeaderAndIsr, brokers: Mapping[int, Broker]) -> LeaderAndIsr:
    """The first state of a partition: all members are empty, and so complete."""
    return replace(state, proved_at={m: brokers[m].epoch for m in state.isr if m in brokers})
