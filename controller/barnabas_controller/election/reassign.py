"""Elections of partitions that are reassigned (Kafka's `reassignPartitionLeaderElection`)."""

from collections.abc import Collection, Sequence

from barnabas_controller.election.decision import Elected, Refused
from barnabas_controller.store.leader_and_isr import LeaderAndIsr


def elect_for_reassignment(
    state: LeaderAndIsr, target: Sequence[int], online: Collection[int], cause: str
) -> Elected | Refused:
    """Elect the first target replica that is online and in the ISR; the present leader comes first.

    The ISR shrinks to the target in the same write. Kafka shrinks it in a second write. A leader
    that received the first write no longer waits for the other replicas, so a controller that
    failed between the two would leave replicas in the ISR that may miss acknowledged records.
    """
    candidates = [r for r in (state.leader, *target) if r in target and r in online]
    leader = next((r for r in candidates if r in state.isr), None)
    if leader is None:
        why = f"no replica of {sorted(target)} is online and in {list(state.isr)}"
        return Refused(why, cause=cause)
    isr = tuple(r for r in state.isr if r in target)
    return Elected(state.with_leader(leader, isr), tuple(target), cause)


def begin_epoch(state: LeaderAndIsr, recipients: Sequence[int], cause: str) -> Elected:
    """Leader and ISR stay; a new leader epoch announces another assignment."""
    return Elected(state.with_leader(state.leader, state.isr), tuple(recipients), cause)
