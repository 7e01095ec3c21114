"""Kafka's elections with the rules that go beyond Kafka: pure decisions on plain data.

Each function refuses or filters candidates, calls the corresponding election in the folder
`election`, and then decides what that leaves open. With `EVERY_MEMBER_ELIGIBLE` each decides as
Kafka does.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from barnabas_controller.election.controlled_shutdown import elect_for_controlled_shutdown
from barnabas_controller.election.decision import Decision, Elected, Refused, Unchanged
from barnabas_controller.election.isr_removal import remove_from_isr
from barnabas_controller.election.offline import elect_offline
from barnabas_controller.election.preferred import elect_preferred
from barnabas_controller.election.reassign import elect_for_reassignment
from barnabas_controller.eligibility.eligible_leader_replicas import (
    EVERY_MEMBER_ELIGIBLE,
    NO_LOG,
    LeaderEligibility,
)
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr


def eligible_offline(
    state: LeaderAndIsr,
    assignment: Sequence[int],
    online: Collection[int],
    unclean_allowed: bool,
    cause: str,
    eligibility: LeaderEligibility = EVERY_MEMBER_ELIGIBLE,
) -> Elected | Refused:
    """Hold Kafka's offline election among the replicas that lost nothing, as long as there is one.

    While a member of the ISR is only suspected, only a member that lost nothing is elected. The
    suspicion may be wrong, and another election would then lose records that exist.

    If all online members of the ISR lost records, an eligible leader replica leads. If none is
    online either, the partition waits for one for a limited time. Then the member with the newest
    log leads, if possible one that has all it flushed, or a replica that is or was eligible and has
    a newer log; they are asked first. The leader is alone in the ISR, and the others catch up: a
    power loss leaves no partition permanently without a leader.

    If no member of the ISR is online, an eligible leader replica leads if all members have
    registered again and lost records, if unclean elections are allowed, or if for a limited time no
    member has registered again and could use its log.
    """
    live = tuple(replica for replica in assignment if replica in online)
    members = [replica for replica in live if replica in state.isr]
    lost = [member for member in members if member in eligibility.lost]
    suspected_members = [replica for replica in state.isr if replica in eligibility.suspected]
    if suspected_members and lost == members:
        return Refused(
            f"online are {list(live)}, none of them a member of the ISR {list(state.isr)} that "
            f"lost nothing; {suspected_members} are suspected only: their sessions decide",
            cause=cause,
        )
    if members and lost == members:
        return _elect_without_complete_member(
            state, live, lost, unclean_allowed, cause, eligibility
        )
    all_lost = all(member in eligibility.lost for member in state.isr)
    eligible = eligibility.eligible_leader_replicas
    if not members and eligible and (unclean_allowed or all_lost):
        why = f"{cause}; no member of the ISR is online"
        return _elect_eligible_leader_replica(state, live, eligible[0], why)
    unusable = {*eligibility.absent, *eligibility.failed}
    if not members and eligibility.replacements and unusable.issuperset(state.isr):
        return _replace_members(state, live, cause, eligibility)
    candidates = [replica for replica in online if replica not in lost]
    decision = elect_offline(state, assignment, candidates, unclean_allowed, cause + _lost(lost))
    return replace(decision, recipients=live) if isinstance(decision, Elected) else decision


def _elect_without_complete_member(
    state: LeaderAndIsr,
    live: tuple[int, ...],
    members: Sequence[int],
    unclean_allowed: bool,
    cause: str,
    eligibility: LeaderEligibility,
) -> Elected | Refused:
    """Decide for a partition whose online members of the ISR, `members`, have all lost records."""
    if eligible := eligibility.eligible_leader_replicas:
        return _elect_eligible_leader_replica(state, live, eligible[0], cause + _lost(members))
    awaited = () if unclean_allowed else eligibility.awaited
    lost = (*members, *eligibility.lost_eligible)
    asked, logs = (*lost, *eligibility.once_eligible), eligibility.logs
    unknown = tuple(r for r in asked if r not in logs) if len(asked) > 1 else ()
    if awaited or unknown:
        reason = _lost(lost) + (f"; waiting for {list(awaited)}" if awaited else "")
        reason += f"; asking what the logs of {list(unknown)} hold" if unknown else ""
        return Refused(reason.removeprefix("; "), awaited, cause, queries=unknown)
    member = max(members, key=lambda member: _newest_log(member, eligibility))
    newer = [r for r in asked if r not in members and logs[r] > logs[member]]
    leader = max(newer or [member], key=lambda replica: _newest_log(replica, eligibility))
    reason = f"{cause}{_lost(lost)}; no better candidate is online, records may be lost"
    return Elected(state.with_leader(leader, (leader,)), live, reason)


def _newest_log(replica: int, eligibility: LeaderEligibility) -> tuple[bool, int, int]:
    """The rank of a replica; of equal ones the first leads. What a power loss took was not flushed.
    A new disk may lack more than that."""
    return (replica not in eligibility.new_disks, *eligibility.logs.get(replica, NO_LOG))


def _replace_members(
    state: LeaderAndIsr, live: tuple[int, ...], cause: str, eligibility: LeaderEligibility
) -> Elected | Refused:
    """Decide for a partition whose members of the ISR are unregistered (KIP-966), or cannot use
    their logs.

    Records that only they have were not acknowledged with `acks=all`: the ISR is under its minimum.
    The members are awaited nevertheless: if they do not lead, records with `acks=1` are lost.
    """
    leader = eligibility.replacements[0]
    failed = [member for member in state.isr if member in eligibility.failed]
    awaited = [member for member in failed if member in eligibility.awaited]
    gone = [member for member in state.isr if member not in failed]
    if failed:
        why = f"of the ISR {list(state.isr)} {failed} cannot use their logs"
        why += f", and {gone} are not registered" if gone else ""
        unless = "that does not change"
    else:
        why = f"no member of the ISR {list(state.isr)} is registered"
        unless = "none of them registers again"
    if {*eligibility.given_up, *failed}.issuperset(state.isr) and not awaited:
        return _elect_eligible_leader_replica(state, live, leader, f"{cause}; {why}")
    why += (
        f"; broker {leader}, which left the ISR with every committed record, leads if {unless}"
        " within eligible.leader.replicas.wait.ms"
    )
    return Refused(why, tuple(awaited), cause, otherwise=leader)


def _elect_eligible_leader_replica(
    state: LeaderAndIsr, live: tuple[int, ...], leader: int, why: str
) -> Elected:
    reason = f"{why}; {leader} left the ISR with every committed record and lost nothing since"
    return Elected(state.with_leader(leader, (leader,)), live, reason)


def _lost(replicas: Sequence[int]) -> str:
    """The part of a cause that names replicas that lost records; empty if there are none."""
    return f"; {list(replicas)} lost unflushed records since in sync" if replicas else ""


def eligible_preferred(
    state: LeaderAndIsr,
    assignment: Sequence[int],
    online: Collection[int],
    cause: str,
    eligibility: LeaderEligibility = EVERY_MEMBER_ELIGIBLE,
) -> Decision:
    """Refuse a preferred replica that lost records since it was in sync, or that the controller
    cannot reach."""
    decision, preferred = elect_preferred(state, assignment, online, cause), assignment[0]
    if isinstance(decision, Elected) and preferred in eligibility.unreachable:
        return Refused(f"the controller cannot reach the preferred replica {preferred}")
    if isinstance(decision, Elected) and preferred in eligibility.lost:
        return Refused(f"the preferred replica {preferred} lost unflushed records since in sync")
    return decision


def eligible_for_reassignment(
    state: LeaderAndIsr,
    target: Sequence[int],
    online: Collection[int],
    cause: str,
    eligibility: LeaderEligibility = EVERY_MEMBER_ELIGIBLE,
) -> Elected | Refused:
    """Elect no replica that is suspected or that lost records since it was in sync.

    A target replica that the controller cannot reach leads only if no other can. It is not refused,
    because a refusal would stop the reassignment, and nothing would resume it.
    """
    unfit = (*eligibility.suspected, *eligibility.lost)
    candidates = [replica for replica in online if replica not in unfit]
    preference = _last(target, eligibility.unreachable)
    decision = elect_for_reassignment(state, preference, candidates, cause)
    if isinstance(decision, Elected):
        return replace(decision, recipients=tuple(target))
    return decision


def eligible_for_controlled_shutdown(
    state: LeaderAndIsr,
    assignment: Sequence[int],
    registered: Collection[int],
    shutting_down: Collection[int],
    cause: str,
    eligibility: LeaderEligibility = EVERY_MEMBER_ELIGIBLE,
) -> Elected | Refused:
    """Elect no replica that the controller cannot reach. Such a replica is notified of its new
    leader as well, because no later request would do so."""
    present = [replica for replica in assignment if replica in registered]
    decision = elect_for_controlled_shutdown(
        state, _last(present, eligibility.unreachable), registered, shutting_down, cause
    )
    if not isinstance(decision, Elected):
        return decision
    if decision.state.leader in eligibility.unreachable:
        staying = [r for r in present if r in state.isr and r not in shutting_down]
        why = f"of the ISR {list(state.isr)} the controller cannot reach {staying}"
        return Refused(why, cause=cause)
    return replace(decision, recipients=tuple(present))


def _last(replicas: Sequence[int], unreachable: Collection[int]) -> list[int]:
    """The replicas in their order, with those that the controller cannot reach at the end."""
    return sorted(replicas, key=lambda replica: replica in unreachable)


def eligible_removal(
    state: LeaderAndIsr,
    replica: int,
    assignment: Sequence[int],
    cause: str,
    eligibility: LeaderEligibility = EVERY_MEMBER_ELIGIBLE,
) -> Decision:
    """Remove neither the last member of the ISR that lost nothing nor a leader that is only
    suspected: that leader continues to lead, because no other replica can."""
    if replica in eligibility.suspected and replica == state.leader:
        return Unchanged(f"{replica} is suspected, but no other replica can replace it")
    decision = remove_from_isr(state, replica, assignment, cause)
    if not isinstance(decision, Elected) or any(
        r not in eligibility.lost for r in decision.state.isr
    ):
        return decision
    if decision.state.leader == state.leader:
        return Unchanged(f"{replica} is the last member of the ISR that lost nothing")
    return replace(decision, state=replace(decision.state, isr=state.isr))


def handle_unclean_shutdown(
    state: LeaderAndIsr,
    assignment: Sequence[int],
    online: Collection[int],
    restarted: Collection[int],
    cause: str,
    lost: Collection[int] = (),
    unknown: Collection[int] = (),
) -> Decision:
    """Remove the `restarted` brokers, which lost records or may have lost some, from the ISR, and
    the `unknown` ones, which may not be members: an older state may have been written back.

    They catch up as followers and join the ISR again. If no other member of the ISR is online they
    stay in it, because only they can lead. But a leader that is known to have `lost` records
    resigns, so that an election finds a better leader if there is one.
    """
    staying = tuple(r for r in state.isr if r not in restarted and r not in unknown)
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
    removed = [r for r in state.isr if r not in staying]
    why = cause
    if had_restarted := [r for r in removed if r in restarted]:
        why += f"; {had_restarted} had restarted"
    if not_listed := [r for r in removed if r in unknown]:
        why += f"; this broker knows an ISR of this leader epoch without {not_listed}"
    # A replica that may never have been a member is not eligible either.
    return Elected(state.with_leader(leader, staying), live, why, from_outdated=bool(not_listed))
