"""What a run's faults may destroy: no more than the promise covers.

Any number of processes may die or stand still, any link may be cut, any session may expire. But a
disk may forget only while each partition that its broker might be elected for has another in-sync
member that is well; and until nobody takes the broker for what it was nothing else happens. A
broker whose flush has failed, or is about to, counts as one that forgets.
"""

from collections.abc import Collection

from barnabas_broker.log.log_directory import FLUSH_FAILED
from barnabas_controller import znodes
from barnabas_controller.eligible import lost_something

from barnabas_simulator.campaign.state import partition_states, registered
from barnabas_simulator.cluster import SimulatedCluster


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
        if victim in found.state.isr or victim in found.state.eligible
    )


def _is_in_doubt(cluster: SimulatedCluster, broker_id: int) -> bool:
    disk = cluster.disks[broker_id]
    return disk.fail_next_flush or disk.exists(f"/data/{FLUSH_FAILED}")


def last_epoch(cluster: SimulatedCluster) -> int:
    """Every broker epoch until now is at most this one: they are zxids."""
    return cluster.zookeeper.tree.zxid


def seats_kept(cluster: SimulatedCluster, victim: int, last: int) -> int:
    """For how many partitions a broker is taken for what it was, in a life that registered up to
    `last`: in the ISR, or eligible and registered still. Its return to the ISR in a later life
    makes a new seat; an admission that was on its way when the disk forgot makes none."""
    node = cluster.zookeeper.tree.find(znodes.broker_path(victim))
    is_registered = node is not None and node.czxid <= last
    return sum(
        (victim in found.state.isr and found.state.proved_at.get(victim, last) <= last)
        or (victim in found.state.eligible and is_registered)
        for found in partition_states(cluster).values()
    )
