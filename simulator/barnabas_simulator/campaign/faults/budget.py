"""What a run's faults may destroy: no more than the promise of durability covers.

Any number of processes may be killed or paused, any link may be cut, any session may expire. But a
disk may lose data only while each partition for which its broker could be elected has another
in-sync member that is well. A folder is lost only if a checkpoint names it: the next start notices
no other loss (`docs/failures.md`). No other fault follows until the broker has lost its ISR
memberships. A broker whose flush has failed, or is about to fail, counts as one that loses data.
"""

from collections.abc import Collection, Mapping

from barnabas_broker.log.checkpoint.checkpoint_file import decode_offsets
from barnabas_broker.log.errors import MalformedCheckpoint
from barnabas_broker.log.manager.log_directory import FLUSH_FAILED
from barnabas_broker.log.manager.offset_checkpoints import HIGH_WATERMARKS
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.eligibility.eligible_leader_replicas import may_have_lost_records
from barnabas_controller.store import znodes

from barnabas_simulator.campaign.state import partition_states, registered
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.disk import MemoryDisk


def may_forget(cluster: SimulatedCluster, victim: int, unwell: Collection[int] = ()) -> bool:
    """Whether a broker's disk may lose data now; `unwell` brokers do not count as replacements."""
    well = {
        broker_id: broker
        for broker_id, broker in registered(cluster).items()
        if broker_id != victim
        and broker_id not in unwell
        and cluster.is_serving(broker_id)
        and not cluster.is_paused(broker_id)
        and not _has_failed_flush(cluster, broker_id)
    }
    return all(
        any(m in well and not may_have_lost_records(found.state, well[m]) for m in found.state.isr)
        for found in partition_states(cluster).values()
        if victim in found.state.isr or victim in found.state.eligible
    )


def keeps_what_is_committed(
    cluster: SimulatedCluster, victim: int, lost_at: Mapping[int, int]
) -> bool:
    """Whether each partition keeps everything committed without the victim's unflushed data.

    It does if another replica, running or not, has proved that it has everything committed and has
    lost nothing since; `lost_at` is the zxid at each broker's last loss. So it does if the victim
    is the last member of the ISR, and has flushed all records that count.
    """
    return all(
        (state.isr == (victim,) and state.durable)
        or any(
            state.proved_at.get(b, -1) > lost_at.get(b, -1)
            for b in (*state.isr, *state.eligible)
            if b != victim
        )
        for state in (found.state for found in partition_states(cluster).values())
    )


def folders_to_lose(disk: MemoryDisk) -> list[str]:
    """The folders of partitions that the checkpoint of high watermarks names."""
    checkpoint = disk.look_into("/data").get(HIGH_WATERMARKS)
    try:
        named = {} if checkpoint is None else decode_offsets(bytes(checkpoint.data))
    except MalformedCheckpoint:
        return []
    names = {str(topic_partition) for topic_partition in named}
    return [name for name in disk.directories("/data") if name in names]


def _has_failed_flush(cluster: SimulatedCluster, broker_id: int) -> bool:
    disk = cluster.disks[broker_id]
    return disk.fail_next_flush or disk.exists(f"/data/{FLUSH_FAILED}")


def last_epoch(cluster: SimulatedCluster) -> int:
    """Return the highest possible broker epoch so far: broker epochs are zxids."""
    return cluster.zookeeper.tree.zxid


def isr_memberships_kept(cluster: SimulatedCluster, victim: int, last: int) -> list[TopicPartition]:
    """The partitions in which a broker still has the place of an incarnation that registered
    up to `last`: in the ISR, or eligible and still registered. A return to the ISR in a later
    incarnation is a new place; a proposal in flight when the disk lost data is not."""
    node = cluster.zookeeper.tree.find(znodes.broker_path(victim))
    is_registered = node is not None and node.czxid <= last
    return [
        partition
        for partition, found in partition_states(cluster).items()
        if (victim in found.state.isr and found.state.proved_at.get(victim, last) <= last)
        or (victim in found.state.eligible and is_registered)
    ]
