"""Elections that move leadership from a stopping broker
(Kafka's `controlledShutdownPartitionLeaderElection`)."""

from collections.abc import Collection, Sequence

from barnabas_controller.election.decision import Elected, Refused
from barnabas_controller.store.leader_and_isr import LeaderAndIsr


def elect_for_controlled_shutdown(
    state: LeaderAndIsr,
    assignment: Sequence[int],
    registered: Collection[int],
    shutting_down: Collection[int],
    cause: str,
) -> Elected | Refused:
    """Elect the first replica in the ISR that is registered and not shutting down.

    Replicas that are shutting down leave the ISR.
    """
    present = tuple(replica for replica in assignment if replica in registered)
    staying = [r for r in present if r in state.isr and r not in shutting_down]
    if not staying:
        return Refused(f"of the ISR {list(state.isr)} no other member stays", cause=cause)
    isr = tuple(replica for replica in state.isr if replica not in shutting_down)
    return Elected(state.with_leader(staying[0], isr), present, cause)
