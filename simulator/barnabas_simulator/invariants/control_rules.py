"""Invariants of what controllers write and request: I2, I10, I11."""

from collections.abc import Sequence

from barnabas_common.errors.error_code import ErrorCode
from barnabas_controller.store.leader_and_isr import NO_LEADER, RECOVERING, LeaderAndIsr

from barnabas_simulator.invariants.rule import rule

ANY_EPOCH = -1
NO_EPOCH = -1


@rule("I2 LeaderInIsr")
def leader_in_isr(
    before: LeaderAndIsr | None,
    after: LeaderAndIsr,
    replicas: Sequence[int],
    newest_epoch: int = NO_EPOCH,
) -> str | None:
    """In ZooKeeper the ISR is never empty and holds only replicas, each once. The leader is one of
    them, or there is none. A new leader comes from the previous ISR or the eligible replicas,
    unless the election is marked as unclean (KIP-704). (Gustafson, LeaderInIsr; Vanlightly,
    IsrNonEmpty.)

    If the state had been set back, below the `newest_epoch` that was elected, then the ISR before
    is of no account in an election above that: the leader of that epoch goes on, or the replica
    with the newest log (`docs/failures.md`). I4 demands of it all that is committed. `before` is
    None once it was from an older copy of ZooKeeper, for the same reason: the replicas are asked
    again as long as the one that has proved the state since is away."""
    if not after.isr or len(set(after.isr)) != len(after.isr):
        return f"no ISR: {after}"
    if replicas and not set(after.isr) <= set(replicas):
        return f"the ISR holds more than the replicas {list(replicas)}: {after}"
    if after.leader == NO_LEADER:
        return None
    if after.leader not in after.isr:
        return f"the leader is not in the ISR: {after}"
    if before is not None and before.leader_epoch < newest_epoch < after.leader_epoch:
        return None
    known = None if before is None else (*before.isr, *before.eligible)
    if known is not None and after.leader not in known and not is_unclean(before, after):
        return f"the new leader is neither of the ISR before nor eligible: {before}, then {after}"
    return None


def is_unclean(before: LeaderAndIsr | None, after: LeaderAndIsr) -> bool:
    """Whether this change is an unclean election that is marked as one."""
    return (
        before is not None
        and after.leader != NO_LEADER
        and after.leader not in before.isr
        and after.recovery_state == RECOVERING
    )


@rule("I10 ControllerFencing")
def writes_are_fenced(state: LeaderAndIsr, controller_epoch: int) -> str | None:
    """No controller writes a state once another has been elected. (Kafka's multi with a check of
    `/controller_epoch`.)"""
    if state.controller_epoch >= controller_epoch:
        return None
    return f"controller epoch {controller_epoch} rules, but an older one wrote {state}"


@rule("I10 ControllerFencing")
def orders_are_fenced(order: str, sent_by: int, newest: int, answer: int) -> str | None:
    """No broker accepts a request of an older controller than the newest it has accepted."""
    if sent_by >= newest or answer != ErrorCode.NONE:
        return None
    return f"{order} of controller epoch {sent_by} was accepted, after one of {newest}"


@rule("I11 BrokerEpoch")
def requests_are_for_this_incarnation(
    order: str, meant_for: int, own: int, answer: int
) -> str | None:
    """No request to one incarnation of a broker is accepted by the next. (KIP-380.)"""
    if meant_for == ANY_EPOCH or meant_for >= own or answer != ErrorCode.NONE:
        return None
    return f"{order} for broker epoch {meant_for} was accepted by the incarnation with epoch {own}"
