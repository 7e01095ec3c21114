"""Who becomes leader: pure decisions on plain data.

Candidates are scanned in assignment order, never in ISR order, so that leadership falls back to
the preferred replica's successor. Every success raises the leader epoch by one. The partition state
machine calls these; ISR removal, which the replica state machine wants, is here too, for it also
may take a leader away.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from barnabas_controller.eligible import NO_DOUBTS, Doubts
from barnabas_controller.leader_and_isr import NO_LEADER, RECOVERING, LeaderAndIsr


@dataclass(frozen=True)
class Elected:
    """The state to write (on top of its `partition_epoch`), whom to tell, and why."""

    state: LeaderAndIsr
    recipients: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Refused:
    """No candidate is good enough; nothing changes. `awaits`: who may prove better, for a while.

    `cause`: why an election was tried at all, where that tells more than `why` it failed.
    """

    why: str
    awaits: tuple[int, ...] = ()
    cause: str = ""

    @property
    def reason(self) -> str:
        return f"{self.cause}; {self.why}" if self.cause else self.why


@dataclass(frozen=True)
class Unchanged:
    """Nothing to decide: the state is already as wanted."""

    reason: str


Decision = Elected | Refused | Unchanged


def first_leader(
    assignment: Sequence[int], online: Collection[int], controller_epoch: int
) -> LeaderAndIsr | Refused:
    """The first state of a new partition: all live replicas are in sync, for all are empty."""
    live = tuple(replica for replica in assignment if replica in online)
    if not live:
        return Refused(f"NoReplicaOnline: none of the replicas {list(assignment)} is online")
    return LeaderAndIsr(live[0], 0, live, controller_epoch)


def elect_offline(
    state: LeaderAndIsr,
    assignment: Sequence[int],
    online: Collection[int],
    unclean_allowed: bool,
    cause: str,
    suspected: Collection[int] = (),
    doubts: Doubts = NO_DOUBTS,
) -> Elected | Refused:
    """The leader is gone: the first replica that is online and in sync takes over.

    A member that lost something since it was in sync is passed over for one that did not, then for
    a replica that left the ISR with everything committed (`eligible.py`); it waits a while for such
    a one to return, and leads only then, alone in the ISR: the others, who also lost something,
    have to catch up first. A partition is never without a leader for good because machines lost
    power.

    With no member online such a replica leads too if every member is back without what it had.

    Else, and only if data may be lost, the first replica that is online (an unclean
    election): it starts with an ISR of its own and the mark RECOVERING (KIP-704).

    While a member of the ISR is only suspected to be dead, none but a sound member may take over:
    evidence may be wrong, and would then cost data that is there.
    """
    live = tuple(replica for replica in assignment if replica in online)
    members = tuple(replica for replica in live if replica in state.isr)
    doubtful = [replica for replica in state.isr if replica in suspected]
    if doubtful and all(member in doubts.lost for member in members):
        return Refused(
            f"online are {list(live)}, none of them a sound member of the ISR "
            f"{list(state.isr)}, of which {doubtful} are suspected only: their sessions decide",
            cause=cause,
        )
    if members:
        return _elect_member(state, live, members, online, unclean_allowed, cause, doubts)
    if not live:
        return Refused(
            f"NoReplicaOnline: none of the replicas {list(assignment)} is online", cause=cause
        )
    hopeless = all(member in doubts.lost for member in state.isr)  # here, without what it had
    if doubts.stand_ins and (unclean_allowed or hopeless):
        return _elect_stand_in(state, live, doubts, f"{cause}; no member of the ISR is online")
    if not unclean_allowed:
        return Refused(
            f"NoReplicaOnline: no member of the ISR {list(state.isr)} is online; {list(live)} "
            "are not in it, and unclean.leader.election.enable is false",
            cause=cause,
        )
    recovering = replace(state.with_leader(live[0], live[:1]), recovery_state=RECOVERING)
    return Elected(
        recovering,
        live,
        f"{cause}; UNCLEAN election of {live[0]}, records may be lost: "
        f"no member of the ISR {list(state.isr)} is online",
    )


def _elect_member(
    state: LeaderAndIsr,
    live: tuple[int, ...],
    members: tuple[int, ...],
    online: Collection[int],
    unclean_allowed: bool,
    cause: str,
    doubts: Doubts,
) -> Elected | Refused:
    """One of the members of the ISR that are online, or who is better than they."""
    sound = tuple(member for member in members if member not in doubts.lost)
    if sound:
        passed = [member for member in members if member in doubts.lost]
        isr = tuple(r for r in state.isr if r in online and r not in passed)
        return Elected(state.with_leader(sound[0], isr), live, f"{cause}{_lost(passed)}")
    why = f"{cause}{_lost(members)}"
    if doubts.stand_ins:
        return _elect_stand_in(state, live, doubts, why)
    if doubts.awaited and not unclean_allowed:
        waiting = f"{_lost(members)}; waiting for {list(doubts.awaited)}"
        return Refused(waiting.removeprefix("; "), doubts.awaited, cause)
    reason = f"{why}; nobody better is there, records may be lost"
    return Elected(state.with_leader(members[0], members[:1]), live, reason)


def _elect_stand_in(
    state: LeaderAndIsr, live: tuple[int, ...], doubts: Doubts, why: str
) -> Elected:
    leader = doubts.stand_ins[0]
    reason = f"{why}; {leader} left the ISR with everything committed and lost nothing since"
    return Elected(state.with_leader(leader, (leader,)), live, reason)


def _lost(replicas: Sequence[int]) -> str:
    """As the end of a cause."""
    return f"; {list(replicas)} lost unflushed records since in sync" if replicas else ""


def elect_preferred(
    state: LeaderAndIsr,
    assignment: Sequence[int],
    online: Collection[int],
    cause: str,
    lost: Collection[int] = (),
    unreachable: Collection[int] = (),
) -> Decision:
    """The head of the assignment leads, if it is online and in sync and lost nothing since; not
    while it is `unreachable` for the controller."""
    preferred = assignment[0]
    if state.leader == preferred:
        return Unchanged(f"{preferred} leads already")
    if preferred not in online:
        return Refused(f"the preferred replica {preferred} is offline")
    if preferred not in state.isr:
        return Refused(f"the preferred replica {preferred} is not in the ISR {list(state.isr)}")
    if preferred in unreachable:
        return Refused(f"the controller cannot reach the preferred replica {preferred}")
    if preferred in lost:
        return Refused(f"the preferred replica {preferred} lost unflushed records since in sync")
    return Elected(state.with_leader(preferred, state.isr), tuple(assignment), cause)


def begin_epoch(state: LeaderAndIsr, recipients: Sequence[int], cause: str) -> Elected:
    """Leader and ISR stay; the epoch grows, for the assignment has changed and all must know."""
    return Elected(state.with_leader(state.leader, state.isr), tuple(recipients), cause)


def elect_for_reassignment(
    state: LeaderAndIsr,
    target: Sequence[int],
    online: Collection[int],
    cause: str,
    unfit: Collection[int] = (),
    unreachable: Collection[int] = (),
) -> Elected | Refused:
    """Leader and ISR come from the target from now on; a leader that is in it stays.

    `unfit` to lead are brokers that are suspected to be dead, and members of the ISR that lost
    something since they were in sync. Who is `unreachable` for the controller is passed over for
    one that is not, but does not stop the reassignment: nothing would take it up again.

    In Kafka the ISR loses the other replicas in a second write. A leader that has heard of the
    first no longer waits for them, so a controller that died between the two would leave replicas
    in the ISR that may miss acknowledged records.
    """
    reached = [r for r in target if r not in unreachable]
    candidates = [r for r in (state.leader, *reached, *target) if r in target and r in online]
    leader = next((r for r in candidates if r in state.isr and r not in unfit), None)
    if leader is None:
        return Refused(
            f"no target of {list(target)} is online, in {list(state.isr)} and fit to lead",
            cause=cause,
        )
    isr = tuple(r for r in state.isr if r in target)
    return Elected(state.with_leader(leader, isr), tuple(target), cause)


def elect_for_controlled_shutdown(
    state: LeaderAndIsr,
    assignment: Sequence[int],
    registered: Collection[int],
    shutting_down: Collection[int],
    cause: str,
    unreachable: Collection[int] = (),
) -> Elected | Refused:
    """The leader asked to stop: an in-sync replica that is not itself stopping takes over.

    One that the controller cannot reach now does not; but it is told whom to follow, once it can
    be: nobody would tell it later.
    """
    present = tuple(replica for replica in assignment if replica in registered)
    staying = [r for r in present if r in state.isr and r not in shutting_down]
    leader = next((r for r in staying if r not in unreachable), None)
    if leader is None:
        why = f"the controller cannot reach {staying}" if staying else "no other member stays"
        return Refused(f"of the ISR {list(state.isr)} {why}", cause=cause)
    isr = tuple(replica for replica in state.isr if replica not in shutting_down)
    return Elected(state.with_leader(leader, isr), present, cause)


def remove_from_isr(
    state: LeaderAndIsr,
    replica: int,
    assignment: Sequence[int],
    cause: str,
    only_suspected: bool = False,
    lost: Collection[int] = (),
) -> Decision:
    """A replica went offline: out of the ISR with it, unless it is the last member.

    If it led there is no leader now; one that is only suspected to be dead goes on leading, for
    nobody could take over. The last member stays in the ISR, for only that replica is known to have
    every acknowledged record; so it is with the last that did not lose something.
    """
    if only_suspected and replica == state.leader:
        return Unchanged(f"{replica} is suspected, but nobody can take over from it")
    if replica not in state.isr:
        return Unchanged(f"{replica} is not in the ISR {list(state.isr)}")
    leader = NO_LEADER if replica == state.leader else state.leader
    isr = tuple(r for r in state.isr if r != replica)
    if not any(r not in lost for r in isr):
        isr = state.isr
    if leader == state.leader and isr == state.isr:
        return Unchanged(f"{replica} is the last member of the ISR and does not lead")
    others = tuple(r for r in assignment if r != replica)
    return Elected(state.with_leader(leader, isr), others, cause)


def dismiss_earlier_lives(
    state: LeaderAndIsr,
    assignment: Sequence[int],
    online: Collection[int],
    earlier: Collection[int],
    cause: str,
    lost: Collection[int] = (),
) -> Decision:
    """The seats of `earlier`, which came back and lost something or may have, go to the others.

    The seat of an earlier life says nothing of what the broker holds now; as a follower it catches
    up and comes back in. Where nobody else of the ISR is online it keeps its seat, for then only it
    can serve; but a leader of which it is known that it `lost` something has to stand for election
    again.
    """
    staying = tuple(r for r in state.isr if r not in earlier)
    if staying == state.isr:
        return Unchanged("no member of the ISR has lost anything in between")
    candidates = tuple(r for r in assignment if r in staying and r in online)
    if not candidates and state.leader in lost:
        why = f"{cause}{_lost([state.leader])}, so another may be better"
        return Elected(state.with_leader(NO_LEADER, state.isr), (), why)
    if not candidates:
        return Unchanged(f"no other member of the ISR {list(state.isr)} is online")
    leader = state.leader if state.leader in candidates else candidates[0]
    live = tuple(replica for replica in assignment if replica in online)
    gone = [r for r in state.isr if r not in staying]
    return Elected(state.with_leader(leader, staying), live, f"{cause}; {gone} had restarted")
