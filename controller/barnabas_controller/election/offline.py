"""Elections of partitions without a leader (Kafka's `offlinePartitionLeaderElection`).

All elections scan candidates in assignment order, never in ISR order, and raise the leader epoch by
one. This folder has Kafka's rules alone; the folder `eligibility` adds what goes beyond them.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from barnabas_controller.election.decision import Elected, Refused
from barnabas_controller.store.leader_and_isr import RECOVERING, LeaderAndIsr


def first_leader(
    assignment: Sequence[int], online: Collection[int], controller_epoch: int
) -> LeaderAndIsr | Refused:
    """The first state of a new partition: all online replicas are empty and therefore in sync."""
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
) -> Elected | Refused:
    """Elect the first replica that is online and in the ISR. If none is and unclean elections are
    allowed, the first online replica leads, alone in the ISR and marked RECOVERING (KIP-704)."""
    live = tuple(replica for replica in assignment if replica in online)
    leader = next((replica for replica in live if replica in state.isr), None)
    if leader is not None:
        isr = [replica for replica in state.isr if replica in online]
        return Elected(state.with_leader(leader, isr), live, cause)
    if live and unclean_allowed:
        recovering = replace(state.with_leader(live[0], live[:1]), recovery_state=RECOVERING)
        return Elected(recovering, live, f"{cause}; {_unclean(live[0], state)}")
    return Refused(_no_leader(state, assignment, live), cause=cause)


def _unclean(leader: int, state: LeaderAndIsr) -> str:
    return (
        f"UNCLEAN election of {leader}, records may be lost: "
        f"no member of the ISR {list(state.isr)} is online"
    )


def _no_leader(state: LeaderAndIsr, assignment: Sequence[int], live: Sequence[int]) -> str:
    if not live:
        return f"NoReplicaOnline: none of the replicas {list(assignment)} is online"
    return (
        f"NoReplicaOnline: no member of the ISR {list(state.isr)} is online; {list(live)} "
        "are not in it, and unclean.leader.election.enable is false"
    )
