"""Which replicas have every committed record: pure decisions on plain data (after KIP-966).

Kafka relies on the ISR alone. But a member of the ISR that lost power may have lost unflushed
records. And a replica that left the ISR when it fell below `min.insync.replicas` has every
committed record, because the high watermark has not moved since: it is *eligible*.

So each state has, for the members of the ISR and for the eligible replicas, the broker epoch in
which each last proved that it has every committed record. Each broker registers with the broker
epoch since which it has lost nothing. The two together show which logs are complete.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from barnabas_common.messages.sentinels import NO_EPOCH

from barnabas_controller.eligibility.min_isr import MinimumIsr
from barnabas_controller.store.leader_and_isr import (
    NO_LEADER,
    RECOVERING,
    UNKNOWN,
    LeaderAndIsr,
)
from barnabas_controller.store.znodes import Broker


@dataclass(frozen=True)
class LeaderEligibility:
    """What an election must know beyond the ISR.

    `lost` are the members of the ISR that lost records since they were in sync; the replicas on
    `new_disks` also lost flushed ones: the disk was replaced, or a log is missing or damaged.
    `eligible_leader_replicas` are the eligible replicas that are online and lost nothing, in
    assignment order; `lost_eligible` those that are online and lost records too. `once_eligible`
    are online and were eligible until the minimum ISR may have changed. `replacements` are
    those that lost nothing and may lead although no member of the ISR is registered and can use its
    log. `awaited` are the offline replicas that may be better candidates than members that lost
    records. `suspected`, `unreachable` and `absent` are the brokers in these states, the last
    without a registration. `given_up` are the absent brokers that were awaited long enough.
    `failed` are the brokers that cannot use their log of the partition.

    `logs` has what replicas that lost records told of their logs, by broker id: the leader epoch of
    the last record and the log end offset. One that was awaited long enough has told of none.
    """

    lost: tuple[int, ...] = ()
    new_disks: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    lost_eligible: tuple[int, ...] = ()
    once_eligible: tuple[int, ...] = ()
    replacements: tuple[int, ...] = ()
    awaited: tuple[int, ...] = ()
    suspected: tuple[int, ...] = ()
    unreachable: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()
    given_up: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    logs: Mapping[int, tuple[int, int]] = field(default_factory=dict)


EVERY_MEMBER_ELIGIBLE = LeaderEligibility()
NO_LOG = (NO_EPOCH, 0)


def may_have_lost_records(state: LeaderAndIsr, broker: Broker) -> bool:
    """Whether this broker's replica may have lost records since it last proved what it has.

    If the only member of an ISR had flushed all its records (`durable`), it lost nothing in a power
    loss, provided that its disk is still the same. A state that Kafka wrote has no proofs; then no
    replica is assumed to have lost records. A proof from a broker epoch above the present one dates
    from before ZooKeeper was restored from an older copy, and does not count.
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
    minimum: MinimumIsr,
) -> LeaderEligibility:
    """Examine every replica that might lead.

    Eligible replicas count only while the ISR is under its minimum and that minimum is the one by
    which they became eligible. Otherwise the high watermark may have moved without them.
    """
    eligible: list[int] = []
    if len(state.isr) < minimum.size:
        eligible = [r for r in _still_eligible(state, minimum) if r in assignment]
    present = [r for r in assignment if r in eligible and r in online]
    lost_eligible = tuple(r for r in present if may_have_lost_records(state, brokers[r]))
    candidates = tuple(r for r in present if r not in lost_eligible)
    once_eligible = tuple(
        r for r in assignment if r in state.eligible and r in online and r not in eligible
    )
    lost = lost_members(state, brokers)
    return LeaderEligibility(
        lost=lost,
        new_disks=tuple(
            r
            for r in (*lost, *lost_eligible, *once_eligible)
            if brokers[r].is_new and may_have_lost_records(state, brokers[r])
        ),
        eligible_leader_replicas=candidates,
        lost_eligible=lost_eligible,
        once_eligible=once_eligible,
        replacements=candidates if state.eligible_under == minimum.version else (),
        awaited=tuple(
            r
            for r in (*state.isr, *eligible)
            if r not in online and not (r in brokers and may_have_lost_records(state, brokers[r]))
        ),
    )


def _still_eligible(state: LeaderAndIsr, minimum: MinimumIsr) -> tuple[int, ...]:
    """The eligible replicas of the state; none if the minimum may have changed since.

    All of them count in a state of an earlier version of Barnabas, which does not name its minimum.
    """
    return state.eligible if state.eligible_under in (UNKNOWN, minimum.version) else ()


def with_elr(
    old: LeaderAndIsr,
    new: LeaderAndIsr,
    assignment: Collection[int],
    minimum: MinimumIsr,
    brokers: Mapping[int, Broker],
) -> LeaderAndIsr:
    """`new`, which will replace `old`, with its eligible replicas and proofs.

    A replica outside `assignment` is not eligible, because its log may be deleted.
    """
    eligible: tuple[int, ...] = ()
    if len(new.isr) < minimum.size and new.recovery_state != RECOVERING:
        kept = _still_eligible(old, minimum)
        known = (*kept, *(r for r in old.isr if r not in kept))
        eligible = tuple(r for r in known if r not in new.isr and r in assignment)
    is_unknown = old.eligible_under == UNKNOWN and any(r in old.eligible for r in eligible)
    same_isr = set(new.isr) == set(old.isr)
    proved_at = _proved_at(old, new, eligible, brokers)
    return replace(
        new,
        eligible=eligible,
        eligible_under=minimum.version if eligible and not is_unknown else UNKNOWN,
        proved_at=proved_at,
        newest_proof=newest_proof(old, proved_at),
        durable=new.durable and same_isr and len(new.isr) == 1,
    )


def _proved_at(
    old: LeaderAndIsr,
    new: LeaderAndIsr,
    eligible: Sequence[int],
    brokers: Mapping[int, Broker],
) -> dict[int, int]:
    """The broker epochs of the proofs, by broker id.

    A member that stays keeps its proof. A replica that joins the ISR has just proved that its log
    is complete, and so has a new leader, whose log is complete by definition.
    """
    proved = {r: old.proved_at[r] for r in (*new.isr, *eligible) if r in old.proved_at}
    elected = new.leader != old.leader and new.leader != NO_LEADER
    for member in new.isr:
        has_proved = member not in old.isr or (elected and member == new.leader)
        if has_proved and member in brokers:
            proved[member] = brokers[member].epoch
    return proved


def newest_proof(old: LeaderAndIsr, proved_at: Mapping[int, int]) -> int:
    """The newest proof of the states so far, if its replica is not in `proved_at` any more."""
    newest = max(old.newest_proof, *old.proved_at.values(), UNKNOWN)
    return newest if newest > max(proved_at.values(), default=UNKNOWN) else UNKNOWN


def without_elr(state: LeaderAndIsr) -> LeaderAndIsr:
    """The state as Kafka writes it, because an ELR that is not kept up to date must not be used."""
    return replace(
        state,
        eligible=(),
        eligible_under=UNKNOWN,
        proved_at={},
        newest_proof=UNKNOWN,
        durable=False,
    )


def with_initial_elr(state: LeaderAndIsr, brokers: Mapping[int, Broker]) -> LeaderAndIsr:
    """The first state of a partition; every member has proved that its (empty) log is complete."""
    return replace(state, proved_at={m: brokers[m].epoch for m in state.isr if m in brokers})
