"""What a run's faults may destroy: no more than the promise covers.

Any number of processes may die or stand still, any link may be cut, any session may expire. But a
disk may forget only while each partition that its broker is in sync for has another in-sync member
that is well; and until the broker has lost its seats nothing else happens.
"""

from collections.abc import Collection, Mapping

from barnabas.topic_partition import TopicPartition

from barnabas_simulator.campaign.state import PartitionState, partition_states, registered
from barnabas_simulator.cluster import SimulatedCluster


def may_forget(cluster: SimulatedCluster, victim: int, unwell: Collection[int] = ()) -> bool:
    """Whether a broker's disk may forget now; `unwell` are others that cannot be counted on."""
    well = {
        broker_id: epoch
        for broker_id, epoch in registered(cluster).items()
        if broker_id != victim
        and broker_id not in unwell
        and cluster.is_serving(broker_id)
        and not cluster.is_paused(broker_id)
    }
    return all(
        any(has_seat(well, member, found) for member in found.state.isr)
        for found in partition_states(cluster).values()
        if victim in found.state.isr
    )


def has_seat(epochs: Mapping[int, int], member: int, found: PartitionState) -> bool:
    """Whether an ISR member has been registered, without a break, since it got its seat."""
    return member in epochs and epochs[member] < found.written_at


def seats_kept(cluster: SimulatedCluster, victim: int, before: Mapping[TopicPartition, int]) -> int:
    """Of how many partitions a broker is still taken to be in sync, as it was `before` (zxids)."""
    return sum(
        victim in found.state.isr and before.get(partition) == found.written_at
        for partition, found in partition_states(cluster).items()
    )
