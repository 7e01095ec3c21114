"""Preferred leader election (Kafka's `preferredReplicaPartitionLeaderElection`)."""

from collections.abc import Collection, Sequence

from barnabas_controller.election.decision import Decision, Elected, Refused, Unchanged
from barnabas_controller.store.leader_and_isr import LeaderAndIsr


def elect_preferred(
    state: LeaderAndIsr, assignment: Sequence[int], online: Collection[int], cause: str
) -> Decision:
    """Elect the first replica of the assignment if it is online and in the ISR. The ISR stays."""
    preferred = assignment[0]
    if state.leader == preferred:
        return Unchanged(f"{preferred} leads already")
    if preferred not in online:
        return Refused(f"the preferred replica {preferred} is offline")
    if preferred not in state.isr:
        return Refused(f"the preferred replica {preferred} is not in the ISR {list(state.isr)}")
    return Elected(state.with_leader(preferred, state.isr), tuple(assignment), cause)
