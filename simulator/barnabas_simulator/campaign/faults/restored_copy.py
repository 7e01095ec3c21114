"""ZooKeeper is restored from an older copy while the cluster runs; then all brokers are restarted
together, as `docs/failures.md` tells the operator to do.

Nothing acknowledged may be lost by that, as long as the copy has the partitions with the replicas
of now, and in each of its ISRs a member that has every committed record. And each leader epoch that
the copy lacks has records in a log: brokers give no lower epoch then, which clients would ignore.
It was not taken while a znode or the settings were damaged: the brokers wait until they are mended.
It is not restored while a topic is being deleted.
And so many replicas have their logs, and lost nothing since the copy, that one of them is sure to
have each acknowledged record: where too few answer the brokers wait for an operator.
"""

import asyncio
from collections.abc import Callable, Sequence

from barnabas_broker.log.segment.segment_files import LOG_SUFFIX
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.eligibility.eligible_leader_replicas import may_have_lost_records
from barnabas_controller.eligibility.raised_epoch import may_lack_records
from barnabas_controller.store import znodes

from barnabas_simulator.campaign.faults.faults import Fault, FaultKind
from barnabas_simulator.campaign.state import (
    PartitionState,
    partition_states,
    registered,
    states_in,
)
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.zookeeper.server import ZooKeeperCopy

COVERED_SECONDS = 15.0
WHOLE_SECONDS = 60.0
SCRATCH = "scratch-"  # topics whose records no one judges


class RestoredCopy:
    """`Fault.other` is how many seconds the copy is old, `Fault.seconds` when the restart comes.

    `has_damage` returns whether znodes or settings are damaged now.
    """

    def __init__(
        self, cluster: SimulatedCluster, min_isr: int, has_damage: Callable[[], bool]
    ) -> None:
        self._cluster = cluster
        self._min_isr = min_isr
        self._has_damage = has_damage
        self._copies: dict[Fault, ZooKeeperCopy] = {}

    def schedule(self, faults: Sequence[Fault]) -> None:
        """Take the copies of these faults in time, counted from now."""
        for fault in faults:
            if fault.kind is FaultKind.RESTORE_ZOOKEEPER:
                at = max(0.0, fault.at - float(fault.other))
                asyncio.get_running_loop().call_later(at, self._take, fault)

    def _take(self, fault: Fault) -> None:
        if not self._has_damage():
            self._copies[fault] = self._cluster.zookeeper.copy()

    async def until_covered(self, fault: Fault) -> bool:
        """Wait until the promise covers it, and return whether it does."""
        for _ in range(int(COVERED_SECONDS / 0.1)):
            if self.is_covered(fault):
                return True
            await asyncio.sleep(0.1)
        return False

    def is_covered(self, fault: Fault) -> bool:
        """Whether the promise covers it now."""
        cluster, copy = self._cluster, self._copies.get(fault)
        if copy is None or not cluster.zookeeper.running:
            return False
        if set(cluster.broker_ids) - set(registered(cluster)):
            return False
        if any(cluster.is_paused(b) or not cluster.is_serving(b) for b in cluster.broker_ids):
            return False
        deleting = cluster.zookeeper.tree.find(znodes.DELETE_TOPICS)
        if deleting is not None and deleting.children:
            return False
        then, now = states_in(copy.tree), partition_states(cluster)
        judged = [p for p in now if not p.topic.startswith(SCRATCH)]
        return all(self._is_covered(p, then.get(p), now[p]) for p in judged)

    def _is_covered(
        self, partition: TopicPartition, then: PartitionState | None, now: PartitionState
    ) -> bool:
        if then is None or set(then.replicas) != set(now.replicas):
            return False
        epoch = now.state.leader_epoch
        if epoch > then.state.leader_epoch and not self._has_records(partition, epoch):
            return False
        brokers = registered(self._cluster)
        lacking = {r for r in now.replicas if may_lack_records(then.state, brokers[r])}
        # What a damaged log lacks is found at the restart.
        lost = {r for r in now.replicas if self._cluster.disks[r].is_rotten(LOG_SUFFIX)}
        lost.update(now.lost)
        if lost and len(lacking | lost) >= self._min_isr:
            return False
        return any(
            member in then.state.isr and not may_have_lost_records(now.state, brokers[member])
            for member in now.state.isr
        )

    def _has_records(self, partition: TopicPartition, epoch: int) -> bool:
        """Whether a log has records of this leader epoch."""
        logs = [one.log for one in self._cluster.hosted(partition) if one.log is not None]
        return any(
            log.latest_epoch() == epoch
            and log.leader_epochs.entries[-1].start_offset < log.log_end_offset
            for log in logs
        )

    async def run(self, fault: Fault) -> None:
        """Restore, restart, and wait until every replica is in sync again."""
        cluster, zookeeper = self._cluster, self._cluster.zookeeper
        zookeeper.stop()
        zookeeper.restore(self._copies.pop(fault))
        zookeeper.start()
        await asyncio.sleep(fault.seconds)
        for broker_id in cluster.running_brokers:
            cluster.kill(broker_id)
        zookeeper.accept_copy()
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WHOLE_SECONDS
        while late := self._late():
            assert loop.time() < deadline, (
                f"{WHOLE_SECONDS:g} s after all brokers were restarted with an older copy of"
                f" ZooKeeper these are not in sync: {[str(partition) for partition in late]}"
            )
            await asyncio.sleep(0.1)

    def _late(self) -> list[TopicPartition]:
        """The partitions that are not in sync yet."""
        cluster = self._cluster
        is_up = len(registered(cluster)) == len(cluster.broker_ids)
        return [
            partition
            for partition, found in partition_states(cluster).items()
            if not is_up or set(found.state.isr) != set(found.replicas) or found.state.leader < 0
        ]
