"""What a run's faults may destroy: no more than the promise covers.

Any number of processes may die or stand still, any link may be cut, any session may expire. But a
disk may forget only while each partition that its broker is in sync for has another in-sync member
that is well; and until the broker has lost its seats nothing else happens. A broker whose flush has
failed, or is about to, counts as one that forgets.
"""

from collections.abc import Collection, Mapping

from barnabas.topic_partition import TopicPartition
from barnabas_broker.log.log_directory import FLUSH_FAILED
from barnabas_controller.eligible import lost_something

from barnabas_simulator.campaign.state import partition_states, registered
from barnabas_simulator.cluster import SimulatedCluster

# By partition, under which broker epoch a member of the ISR last showed what it holds.
Seats = Mapping[TopicPartition, int | None]


def may_forget(cluster: SimulatedCluster, victim: int, unwell: Collection[int] = ()) -> bool:
    """Whether a broker's disk may forget now; `unwell` are others that cannot be counted on."""
    well = {
        broker_id: broker
        for broker_id, broker in registered(cluster).items()
        if broker_id != victim
        and broker_id not in unwell
        and cluster.is_serving(broker_id)
        and not cluster.is_paused(broker_id)
        and not _is_in_doubt(cluster, broker_id)
    }
    return all(
        any(m in well and not lost_something(found.state, well[m]) for m in found.state.isr)
        for found in partition_states(cluster).values()
        if victim in found.state.isr
    )


def _is_in_doubt(cluster: SimulatedCluster, broker_id: int) -> bool:
    disk = cluster.disks[broker_id]
    return disk.fail_next_flush or disk.exists(f"/data/{FLUSH_FAILED}")


def seats_of(cluster: SimulatedCluster, victim: int) -> Seats:
    """The partitions a broker is taken to be in sync for. A state that is written anew for another
    reason changes no seat; the broker's return to the ISR makes a new one."""
    return {
        partition: found.state.proved_at.get(victim)
        for partition, found in partition_states(cluster).items()
        if victim in found.state.isr
    }


def seats_kept(cluster: SimulatedCluster, victim: int, before: Seats) -> int:
    """Of how many partitions a broker is still taken to be in sync, as it was `before`."""
    return len(seats_of(cluster, victim).items() & before.items())
