"""Removal of an offline replica from the ISR (Kafka's `removeReplicasFromIsr`)."""

from collections.abc import Sequence

from barnabas_controller.election.decision import Decision, Elected, Unchanged
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr


def remove_from_isr(
    state: LeaderAndIsr, replica: int, assignment: Sequence[int], cause: str
) -> Decision:
    """Remove the replica from the ISR; if it led, the partition then has no leader.

    The last member stays in the ISR, because only that replica is known to have every acknowledged
    record.
    """
    if replica not in state.isr:
        return Unchanged(f"{replica} is not in the ISR {list(state.isr)}")
    leader = NO_LEADER if replica == state.leader else state.leader
    isr = tuple(r for r in state.isr if r != replica) or state.isr
    if leader == state.leader and isr == state.isr:
        return Unchanged(f"{replica} is the last member of the ISR and does not lead")
    others = tuple(r for r in assignment if r != replica)
    return Elected(state.with_leader(leader, isr), others, cause)
