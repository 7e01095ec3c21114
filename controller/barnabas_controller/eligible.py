"""Which replicas have everything that was committed: pure decisions on plain data (after KIP-966).

Kafka trusts the ISR alone. But a member that lost power and is back holds less than its seat says,
and a replica that left the ISR as it fell below `min.insync.replicas` holds all that was committed:
the high watermark has not moved since. So each state remembers of the members of the ISR, and of
those *eligible* replicas, under which broker epoch each last showed what it holds; and each broker
says when it registers since which broker epoch it has lost nothing. The two together tell whose log
may be relied on.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from barnabas_controller.leader_and_isr import NO_LEADER, RECOVERING, LeaderAndIsr
from barnabas_controller.znodes import Broker


@dataclass(frozen=True)
class Doubts:
    """What speaks against electing by the ISR alone.

    `lost`: members of the ISR that lost something since they were in sync. `stand_ins`: eligible
    replicas that are online and lost nothing, in assignment order. `awaited`: replicas that are
    offline and may prove better than a member that lost something.
    """

    lost: tuple[int, ...] = ()
    stand_ins: tuple[int, ...] = ()
    awaited: tuple[int, ...] = ()


NO_DOUBTS = Doubts()


def lost_something(state: LeaderAndIsr, broker: Broker) -> bool:
    """Whether this broker's replica may hold less than when it last proved what it holds.

    An only member that had flushed all it answers for (`durable`) lost nothing with its power, if
    its disk is still the same. Of a state that Kafka wrote nothing is known, and nothing suspected.
    """
    proved_at = state.proved_at.get(broker.broker_id)
    if proved_at is None or broker.lost_nothing_since <= proved_at:
        return False
    alone = state.isr == (broker.broker_id,)
    return not (state.durable and alone and not broker.is_new)


def lost_members(state: LeaderAndIsr, brokers: Mapping[int, Broker]) -> tuple[int, ...]:
    """The members of the ISR that are here and lost something since they were in sync."""
    return tuple(m for m in state.isr if m in brokers and lost_something(state, brokers[m]))


def doubts(
    state: LeaderAndIsr,
    assignment: Sequence[int],
    online: Collection[int],
    brokers: Mapping[int, Broker],
    is_under_min_isr: bool,
) -> Doubts:
    """Look at everybody who might lead.

    The eligible count only while the ISR is still under its minimum: else the high watermark may
    have moved without them.
    """
    eligible = [r for r in state.eligible if r in assignment] if is_under_min_isr else []
    return Doubts(
        lost=lost_members(state, brokers),
        stand_ins=tuple(
            r
            for r in assignment
            if r in eligible and r in online and not lost_something(state, brokers[r])
        ),
        awaited=tuple(
            r
            for r in (*state.isr, *eligible)
            if r not in online and not (r in brokers and lost_something(state, brokers[r]))
        ),
    )


def account(
    old: LeaderAndIsr,
    new: LeaderAndIsr,
    assignment: Collection[int],
    min_in_sync: int,
    brokers: Mapping[int, Broker],
) -> LeaderAndIsr:
    """`new`, which is to be written in place of `old`, with its account of who has everything.

    A replica that is no longer assigned is forgotten, for its log may be deleted.
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
    """A member that stays keeps the epoch it has; one that comes in has just shown what it holds,
    and what a new leader holds is by definition all there is."""
    proved = {r: old.proved_at[r] for r in (*new.isr, *eligible) if r in old.proved_at}
    elected = new.leader != old.leader and new.leader != NO_LEADER
    for member in new.isr:
        is_news = member not in old.isr or (elected and member == new.leader)
        if is_news and member in brokers:
            proved[member] = brokers[member].epoch
    return proved


def without_account(state: LeaderAndIsr) -> LeaderAndIsr:
    """As Kafka has it; an account that is not kept up must not be believed later."""
    return replace(state, eligible=(), proved_at={}, durable=False)


def first_account(state: LeaderAndIsr, brokers: Mapping[int, Broker]) -> LeaderAndIsr:
    """The first state of a partition: all its members are empty, and so complete."""
    return replace(state, proved_at={m: brokers[m].epoch for m in state.isr if m in brokers})
