"""What a run's faults may destroy: no more than the promise of durability covers.

Any number of processes may be killed or paused, any link may be cut, any session may expire. But a
disk may lose data only while each partition for which its broker could be elected has another
in-sync member that is well. A folder is lost only if a checkpoint names it: the next start notices
no other loss (`docs/failures.md`). Until the broker has lost its ISR memberships, only faults
follow that leave the other members within reach (`disturbs`). A broker whose flush has failed, or
is about to fail, counts as one that loses data, and so does one that cannot reach all its logs.
"""

from collections.abc import Collection, Mapping

from barnabas_broker.log.checkpoint.checkpoint_file import decode_offsets
from barnabas_broker.log.errors import MalformedCheckpoint
from barnabas_broker.log.manager.log_directory import FLUSH_FAILED
from barnabas_broker.log.manager.offset_checkpoints import HIGH_WATERMARKS
from barnabas_broker.log.segment.segment_files import LOG_SUFFIX
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.eligibility.eligible_leader_replicas import may_have_lost_records
from barnabas_controller.store import znodes

from barnabas_simulator.campaign.faults.faults import (
    OF_MEMBERS,
    OF_TRANSACTIONS,
    Fault,
    FaultKind,
)
from barnabas_simulator.campaign.state import partition_states, registered
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.disk import MemoryDisk


def may_forget(cluster: SimulatedCluster, victim: int, unwell: Collection[int] = ()) -> bool:
    """Whether a broker's disk may lose data now; `unwell` brokers do not count as replacements."""
    well = {
        broker_id: broker
        for broker_id, broker in registered(cluster).items()
        if broker_id != victim and broker_id not in unwell and is_well(cluster, broker_id)
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
    """The folders of partitions that the checkpoint of high watermarks beside them names."""
    found = []
    for root in disk.roots:
        named = {str(partition) for partition in known_high_watermarks(disk, root)}
        found += [f"{root}/{name}" for name in disk.directories(root) if name in named]
    return found


def known_high_watermarks(disk: MemoryDisk, root: str) -> dict[TopicPartition, int]:
    """What the checkpoint in a data directory says."""
    checkpoint = disk.look_into(root).get(HIGH_WATERMARKS)
    try:
        return {} if checkpoint is None else decode_offsets(bytes(checkpoint.data))
    except MalformedCheckpoint:
        return {}


def is_well(cluster: SimulatedCluster, broker_id: int) -> bool:
    """Whether a broker runs, serves requests, and has a sound disk."""
    return (
        broker_id in cluster.running_brokers
        and cluster.is_serving(broker_id)
        and not cluster.is_paused(broker_id)
        and is_sound(cluster, broker_id)
    )


def is_sound(cluster: SimulatedCluster, broker_id: int) -> bool:
    """Whether a broker has all its logs, can open and flush them, and none has been damaged."""
    disk = cluster.disks[broker_id]
    return not (
        disk.fail_next_flush
        or disk.failing
        or disk.no_descriptors
        or disk.is_rotten(LOG_SUFFIX)
        or any(disk.exists(f"{root}/{FLUSH_FAILED}") for root in disk.roots)
        or has_lost_directory(cluster, broker_id)
    )


def has_lost_directory(cluster: SimulatedCluster, broker_id: int) -> bool:
    """Whether a broker runs without one of its data directories."""
    if broker_id not in cluster.running_brokers or not cluster.is_serving(broker_id):
        return False
    manager = cluster.broker(broker_id).log_manager
    return len(manager.live_log_dirs()) < len(manager.directories)


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


HARMLESS = frozenset(
    {
        FaultKind.SKEW,
        FaultKind.KILL_CLIENT,
        FaultKind.CUT_CLIENTS,
        FaultKind.RESET,
        FaultKind.LOSE_ANSWER,
        FaultKind.FLAKY,
        FaultKind.SLOW,
        *OF_MEMBERS,
        *OF_TRANSACTIONS,
    }
)
SHORT = frozenset({FaultKind.KILL, FaultKind.KILL_ALL, FaultKind.PAUSE, FaultKind.EXPIRE})
SHARE = 4
"""What a fault may take of the time for which an election waits for better replicas."""


def disturbs(fault: Fault, since: float, wait_seconds: float) -> bool:
    """Whether a fault might keep away all that have everything for as long as an election waits.

    After that, a member of the ISR that has lost data may lead; it lost them `since` seconds ago.
    """
    if fault.kind in HARMLESS:
        return False
    most = wait_seconds / SHARE
    return fault.kind not in SHORT or fault.seconds > most or since > most
