"""Elections above a leader epoch that brokers already hold.

Kafka has no such election, because it assumes that ZooKeeper is never older than the brokers. A
state znode that was set to an older value, or a ZooKeeper that was restored from an older copy, has
a leader epoch that is over, and every replica refuses its role. The refusals say what each replica
holds. That is newer than the state, so the refusals decide, and not the ISR in the state.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from barnabas_common.messages.control import HeldRole

from barnabas_controller.election.decision import Decision, Elected, Unchanged
from barnabas_controller.eligibility.eligible_leader_replicas import (
    may_have_lost_records,
    newest_proof,
)
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr
from barnabas_controller.store.znodes import Broker


def is_outdated(state: LeaderAndIsr, held: Iterable[HeldRole]) -> bool:
    """Whether a held role is newer, or of the same epoch under another leader."""
    return any(
        h.leader_epoch > state.leader_epoch
        or (h.leader_epoch == state.leader_epoch and h.leader not in (-1, state.leader))
        for h in held
    )


def is_unconfirmed(
    state: LeaderAndIsr, assignment: Sequence[int], brokers: Mapping[int, Broker]
) -> bool:
    """Whether the state may come from an older copy of ZooKeeper than a replica has seen.

    It is confirmed as soon as a replica has proved that it has every committed record since the
    last of the replicas that are ahead of ZooKeeper registered, also if it has left the ISR since.
    One that registered earlier may have been ahead of an earlier copy only.
    """
    known = [brokers[r].ahead_of_zookeeper_since for r in assignment if r in brokers]
    ahead = [epoch for epoch in known if epoch is not None]
    proofs = (state.newest_proof, *state.proved_at.values())
    return bool(ahead) and not any(epoch >= max(ahead) for epoch in proofs)


def is_confirmed_by(state: LeaderAndIsr, broker: Broker) -> bool:
    """Whether the state was written after this broker had registered as ahead of ZooKeeper.

    The broker must have answered: after a restore, ZooKeeper has its earlier registration for a
    session timeout.
    """
    ahead_since = broker.ahead_of_zookeeper_since
    return ahead_since is not None and (
        state.proved_at.get(broker.broker_id) == broker.epoch == ahead_since
    )


def may_lack_records(state: LeaderAndIsr, broker: Broker) -> bool:
    """Whether this broker's replica may lack records that it acknowledged, if the state is older.

    Only a proof in the state shows that a loss of power took none. The replica may have proved it
    again since, but the newer state is not known. A state that Kafka wrote has no proofs; then no
    replica is assumed to have lost records.
    """
    if not state.proved_at:
        return False
    proved_at = state.proved_at.get(broker.broker_id)
    is_valid = proved_at is not None and proved_at <= broker.epoch
    return not is_valid or may_have_lost_records(state, broker)


def without_unknown_members(known: LeaderAndIsr, found: LeaderAndIsr) -> LeaderAndIsr:
    """A state that another than this controller wrote, without what was written back by hand.

    Under the leader epoch that is known only the leader itself writes the state, and it only
    removes members. Others in the ISR, or among the eligible replicas, are of an earlier time: they
    may have left it since.
    """
    if (found.leader_epoch, found.leader) != (known.leader_epoch, known.leader):
        return found
    isr = tuple(member for member in found.isr if member in known.isr) or known.isr
    complete = (*known.isr, *known.eligible)
    eligible = tuple(r for r in found.eligible if r in complete and r not in isr)
    every = {**found.proved_at, **known.proved_at}
    proved_at = {r: epoch for r, epoch in every.items() if r in (*isr, *eligible)}
    return replace(
        found,
        isr=isr,
        eligible=eligible,
        proved_at=proved_at,
        newest_proof=newest_proof(known, proved_at),
        durable=found.durable and known.durable,
    )


def leader_goes_on(
    held: Mapping[int, HeldRole], assignment: Sequence[int], online: Collection[int]
) -> bool:
    """Whether the leader of the newest epoch is among the replicas that refused, and online."""
    leader = _leader_of(_newest_epoch(held.values()), held, assignment)
    return leader is not None and leader in online


def _newest_epoch(held: Iterable[HeldRole]) -> int:
    """The highest leader epoch of the roles; -1 without any."""
    return max((h.leader_epoch for h in held), default=-1)


def _leader_of(
    leader_epoch: int, held: Mapping[int, HeldRole], assignment: Sequence[int]
) -> int | None:
    for replica, h in held.items():
        leads = h.leader == replica and h.leader_epoch == leader_epoch and h.in_sync_replicas
        if leads and replica in assignment:
            return replica
    return None


def elect_above(
    state: LeaderAndIsr,
    held: Mapping[int, HeldRole],
    assignment: Sequence[int],
    online: Collection[int],
    cause: str,
    confirmed: bool = True,
    told: HeldRole | None = None,
    lost: Collection[int] = (),
    given_up: Collection[int] = (),
) -> Decision:
    """Elect under a leader epoch above all of `held`.

    `held` has, by broker id, what each replica held when it refused its role; `told` is a role that
    the controller's broker was told of, newer than the state; `lost` are the members of the ISR
    that lost records since they were in sync; `given_up` are replicas that have not answered, and
    without which each acknowledged record is on one that has.

    If no held role is newer than the state, its leader gets the next epoch: it has restarted, and
    cannot know which leader wrote the records of the present epoch in its log. Otherwise the leader
    of the newest epoch continues with the members of its own ISR that the state has too, without
    the `lost` ones: another one may have been taken out since because it lost records.

    If that leader has not refused, no replica leads under the raised epoch, and an ordinary
    election follows. It finds the ISR of the newest epoch if no replica led in it; otherwise the
    leader alone, because only its log is known to be complete. If it has refused and has restarted,
    it may have lost records; if all have restarted, no role names it; or it is given up. Then the
    replica with the newest log leads, by the epoch of its last record and then by its end; of equal
    ones the leader or a member of the ISR in the state. The ISR are the replicas with the same last
    record: their logs are the same (Raft's log matching). The others catch up and join. If the
    newest log is not online, it is awaited.

    A state that is not `confirmed` is treated as an older one, whatever its epoch. The eligible
    leader replicas of an older state are over, and so is what it says of flushes.
    """
    known = list(held.values()) if told is None else [*held.values(), told]
    newest = _newest_epoch(known)
    if confirmed and newest < state.leader_epoch:
        return Unchanged("the leader epoch is newer than all that the replicas hold")
    live = tuple(replica for replica in assignment if replica in online)
    outdated = not confirmed or is_outdated(state, known)
    leader: int = state.leader
    isr: Sequence[int] = state.isr
    proved: tuple[int, ...] = ()
    if outdated:
        of_newest = [h for h in known if h.leader_epoch == newest]
        awaited = [replica for replica in assignment if replica not in given_up]
        leader, isr, proved = _by_what_is_held(state, held, assignment, of_newest, awaited)
        kept = [m for m in isr if m == leader or m in proved or m not in lost]
        isr = kept or isr
        leader = leader if leader in live else NO_LEADER
    elected = state.with_leader(leader, [replica for replica in isr if replica in assignment])
    # The version of the state's znode counts its writes, and so the leader epochs that were given:
    # no replica remembers one under which no record came if all have restarted.
    given = max(newest, state.leader_epoch, state.partition_epoch if outdated else 0)
    durable = elected.durable and not outdated
    elected = replace(elected, leader_epoch=given + 1, durable=durable)
    return Elected(elected, live, cause, outdated, proved)


def _by_what_is_held(
    state: LeaderAndIsr,
    held: Mapping[int, HeldRole],
    assignment: Sequence[int],
    of_newest: Sequence[HeldRole],
    awaited: Sequence[int],
) -> tuple[int, Sequence[int], tuple[int, ...]]:
    """The leader, the ISR, and which members have proved that they have every committed record. The
    leader may be one that is not online.

    `of_newest` has the known roles of the newest leader epoch. `awaited` are the replicas that must
    not be passed over if they have not answered.
    """
    leader = _leader_of(_newest_epoch(of_newest), held, assignment)
    if leader is not None:
        isr = held[leader].in_sync_replicas
        return leader, [m for m in isr if m == leader or m in state.isr], ()
    for h in of_newest:
        last = [h.leader] if h.leader != NO_LEADER else h.in_sync_replicas
        missing = [replica for replica in last if replica in awaited and replica not in held]
        if missing:
            return NO_LEADER, last, ()
    logs = [replica for replica in assignment if replica in held]
    if not logs:
        return state.leader, state.isr, ()

    def newest_log(replica: int) -> tuple[int, int, bool, bool]:
        h = held[replica]
        return h.log_epoch, h.log_end_offset, replica == state.leader, replica in state.isr

    best = max(logs, key=newest_log)
    same = tuple(replica for replica in logs if newest_log(replica)[:2] == newest_log(best)[:2])
    return best, same, same


def with_unused_epoch(
    state: LeaderAndIsr, decision: Decision, online: Sequence[int], cause: str
) -> Decision:
    """Give a leader that has restarted since the state was written an epoch under which no broker
    has led.

    It remembers no epoch, and without records its log does not show one: it could not refuse a
    leader epoch that was set back by hand. The version of the znode counts its writes, and so the
    elections, but not the epochs that an election above held roles has skipped (`elect_above`).
    """
    if state.leader not in online:
        return decision
    if isinstance(decision, Unchanged):
        why = f"{cause}; the leader {state.leader} had restarted"
        decision = Elected(state.with_leader(state.leader, state.isr), tuple(online), why)
    if not isinstance(decision, Elected):
        return decision
    unused = max(decision.state.leader_epoch, state.partition_epoch + 1)
    return replace(decision, state=replace(decision.state, leader_epoch=unused))
