"""Eligible replicas whose log is damaged (beyond KIP-966). Pure decisions on plain data."""

from collections.abc import Sequence

from barnabas_controller.election.decision import Elected
from barnabas_controller.store.leader_and_isr import LeaderAndIsr


def damaged_eligible_removal(
    state: LeaderAndIsr, replica: int, assignment: Sequence[int], cause: str
) -> Elected:
    """Write the state again without an eligible replica whose log is damaged. It waits for that:
    then it truncates its log, and must not be elected by what it had."""
    others = tuple(r for r in assignment if r != replica)
    return Elected(state.with_leader(state.leader, state.isr), others, cause)
