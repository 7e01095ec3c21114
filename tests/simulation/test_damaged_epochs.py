"""A bit of a stored batch's leader epoch changes on one disk, and its broker starts again.

The log must not count as newer than the others: they would truncate committed records.
"""

import asyncio

import pytest
from barnabas_common.events import EventKind
from barnabas_common.record.batch import batches

from tests.support.whole_cluster import TP, read_back
from tests.support.zookeeper_scene import Scene, in_a_cluster

LOG = f"/data/{TP}/{0:020}.log"


@pytest.mark.parametrize(
    ("which", "bit"),
    [(which, bit) for which in (0, 1, -2, -1) for bit in (0, 1, 2, 9, 10, 28, 31)],
)
@pytest.mark.parametrize("victim", ["the leader", "a follower"])
def test_no_record_is_lost_by_it(which: int, victim: str, bit: int) -> None:
    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        for _ in range(3):
            await scene.restart_leader()  # so that there are several epochs
        await scene.whole()
        await asyncio.sleep(6)  # the high watermark is in the checkpoint
        leader = scene.leader()
        damaged = leader if victim == "the leader" else next(b for b in (1, 2, 3) if b != leader)
        position = [p for p, _ in batches(cluster.disks[damaged].read_file(LOG))][which]
        cluster.disks[damaged].flip(LOG, position + 15 - bit // 8, bit % 8)
        cluster.kill(damaged)
        while scene.leader() in (damaged, -1):
            await asyncio.sleep(0.05)
        cluster.start_broker(damaged)
        await cluster.serving()
        await asyncio.sleep(8)  # long enough for another election, and a truncation
        assert not scene.events(EventKind.COMMITTED_RECORDS_TRUNCATED)
        await scene.produce()
        assert [value for _, value in await read_back(cluster)] == scene.acknowledged
        await scene.whole()

    in_a_cluster(test)
