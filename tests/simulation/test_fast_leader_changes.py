"""KIP-279 with the real controller: three elections, and no replica gets the other's records.

    offset     0 .. 9      10 .. 14          10 .. 19
    broker 1   epoch 0                       a later epoch, led alone
    broker 2   epoch 0     led alone         and now leads again

Broker 1 must find that the logs diverge at 10. The leader's answer for its last epoch is the end 15
of another epoch: with the offset alone, broker 1 would keep its own 10 to 14.
"""

import pytest
from barnabas import Admin
from barnabas_broker.log.epochs.leader_epoch_cache import EpochEnd
from barnabas_broker.replica.follower import follower
from barnabas_broker.replica.follower.truncation import Truncation
from barnabas_common.record.reader import records_from
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.replicas import until_replicas
from tests.support.whole_cluster import led_by, send

KEY = TopicPartition("fast", 0)
LOOKUPS = ("fetch", "offsets-for-leader-epoch")
COMMON = [b"common-%d" % number for number in range(10)]
OF_TWO = [b"two-%d" % number for number in range(5)]
OF_ONE = [b"one-%d" % number for number in range(10)]


async def _story(lookup: str) -> tuple[list[bytes], list[bytes]]:
    """Return the values of both replicas at the end."""
    config = {"replica.truncation.lookup": lookup, "auto.leader.rebalance.enable": "false"}
    cluster = SimulatedCluster(seed=3, config=config)
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(
            KEY.topic,
            assignments={0: [1, 2]},
            configs={"unclean.leader.election.enable": "true", "min.insync.replicas": "1"},
        )
    await led_by(cluster, KEY, 1)
    await send(cluster, KEY, COMMON)
    cluster.kill(1)
    await led_by(cluster, KEY, 2)
    await send(cluster, KEY, OF_TWO, acks=1)
    cluster.kill(2)
    cluster.start_broker(1)
    await led_by(cluster, KEY, 1)
    await send(cluster, KEY, OF_ONE, acks=1)
    cluster.kill(1)
    cluster.start_broker(2)
    await led_by(cluster, KEY, 2)
    cluster.start_broker(1)
    await until_replicas(
        cluster.bootstrap,
        KEY,
        lambda found: 2 in found and sorted(found[2].in_sync_replicas) == [1, 2],
        within=60.0,
        runtime=cluster.client_runtime("looker"),
    )
    return _values(cluster, 1), _values(cluster, 2)


def _values(cluster: SimulatedCluster, broker_id: int) -> list[bytes]:
    folder, disk = f"/data/{KEY}", cluster.disks[broker_id]
    logs = [name for name in disk.list(folder) if name.endswith(".log")]
    data = b"".join(disk.read_file(f"{folder}/{name}") for name in logs)
    return [record.value or b"" for record in records_from(data, 0)]


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_replicas_agree_after_fast_leader_changes(lookup: str) -> None:
    one, two = run(_story(lookup), seed=3, max_time=600.0)
    assert one == two == COMMON + OF_TWO


def test_without_the_epoch_in_the_answer_they_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """KIP-101 as it was in 0.11: only the offset of the answer is used."""

    def by_offset_alone(leader: EpochEnd, _local: EpochEnd, end: int, _: int) -> Truncation:
        return Truncation(min(leader.end_offset, end), True)

    monkeypatch.setattr(follower, "truncation", by_offset_alone)
    one, two = run(_story("offsets-for-leader-epoch"), seed=3, max_time=600.0)
    assert two == COMMON + OF_TWO
    assert one == COMMON + OF_ONE[:5]
