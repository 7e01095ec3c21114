"""The story of a simulated cluster: what its brokers opened, who led, since when it was wrong."""

import asyncio
import re

import pytest
from barnabas_common.record.batch import stamp
from barnabas_simulator.campaign.conclusion import conclude
from barnabas_simulator.campaign.story import Story
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import Invariants, InvariantViolation
from barnabas_simulator.loop import run

from tests.support.cluster_schedules import create_topic
from tests.support.delivery import History
from tests.support.raw import batch
from tests.support.replication_world import TP
from tests.support.whole_cluster import produce

CHANGED_AT = 20.3


async def changed_behind_its_back(told: list[Story]) -> None:
    """Records, a kill and a start of a follower; later its last record is another one."""
    cluster = SimulatedCluster(seed=1)
    checker, story = Invariants(cluster), Story(cluster, tell=True)
    told.append(story)
    checker.install()
    story.watch_starts()
    checker.findings.follow(story.checked)
    await cluster.start()
    await create_topic(cluster, leader=1)
    await produce(cluster, History(), range(3))
    await asyncio.sleep(6.0)
    story.fault("kill 3")
    cluster.kill(3)
    cluster.start_broker(3)
    await cluster.serving()
    await asyncio.sleep(CHANGED_AT - asyncio.get_running_loop().time())
    partition = cluster.broker(3).replica_manager.partitions.get(TP)
    assert partition is not None and partition.log is not None
    log = partition.log
    data = bytearray(batch(b"another"))
    data[:16] = stamp(log.log_end_offset - 1, partition.leader_epoch, len(data) - 12)
    log.truncate_to(log.log_end_offset - 1)
    log.append_as_follower(bytes(data))
    log.high_watermark = log.log_end_offset
    await asyncio.sleep(5.0)


def test_a_story_tells_openings_and_leaders_and_since_when_a_log_is_wrong() -> None:
    told: list[Story] = []
    with pytest.raises(InvariantViolation) as caught:
        run(changed_behind_its_back(told), seed=1, max_time=600.0)
    lines = told[0].short(conclude(caught.value, 0.0, [TP]))
    text = "\n".join(lines)
    assert len(lines) <= 40
    opened = rf"broker-3/4 opens {TP}: log 0\.\.3, high watermark \d, recovery point \d, epochs"
    assert re.search(rf"{opened} \[\[0, 0\]\]", text)
    assert re.search(rf"{TP} became-leader: .* epoch_start_offset=0 high_watermark=0\]", text)
    assert "*** kill 3" in text and f"{TP}: leader 1, epoch 0, ISR [1, 2, 3]" in text
    rule, partitions, since = lines[-4:-1]
    assert rule == "rule         I6 LogMatching" and partitions == f"partitions   {TP}"
    found = re.search(r"since  ([\d.]+) s or before: .* last right at ([\d.]+) s$", since)
    assert found and float(found[2]) < CHANGED_AT < float(found[1]) < float(found[2]) + 1.1
