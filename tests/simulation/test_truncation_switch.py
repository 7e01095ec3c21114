"""Kafka before 0.11 and after, the same schedule under both rules, with the real controller.

`tests/integration/test_truncation_switch.py` plays the same schedules on real processes.
"""

import asyncio
from typing import Any

import pytest
from barnabas_broker.log.checkpoint.checkpoint_file import decode_offsets
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run
from barnabas_simulator.pauses import MemoryPauseControl

from tests.support.replication_world import ReplicationWorld
from tests.support.truncation_stories import (
    RULES,
    Told,
    check_divergence,
    check_loss,
    divergence,
    loss,
)

KEY = TopicPartition("story", 0)


class SimulatedStage:
    """The stage of `truncation_stories`, on virtual time."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self.bootstrap = cluster.bootstrap
        self.client: dict[str, Any] = {"runtime": cluster.client_runtime("client")}

    @property
    def pauses(self) -> MemoryPauseControl:
        return self._cluster.pauses

    async def kill(self, broker_id: int) -> None:
        self._cluster.kill(broker_id)

    async def lose_power(self, flushed: int, unflushed: int) -> None:
        self._cluster.kill(flushed)
        self._cluster.kill(unflushed, keep_unflushed=False)

    async def start(self, broker_id: int) -> None:
        self._cluster.start_broker(broker_id)
        await self._cluster.serving()

    async def stop(self, broker_id: int) -> None:
        await self._cluster.stop_broker(broker_id)

    async def session_over(self, broker_id: int) -> None:
        await asyncio.sleep(10.0)

    def on_disk(self, broker_id: int, key: TopicPartition) -> bytes:
        disk = self._cluster.disks[broker_id]
        folder = f"/data/{key}"
        logs = [name for name in disk.list(folder) if name.endswith(".log")]
        return b"".join(disk.read_file(f"{folder}/{name}") for name in logs)

    def durable_high_watermark(self, broker_id: int, key: TopicPartition) -> int:
        path = "/data/replication-offset-checkpoint"
        disk = self._cluster.disks[broker_id]
        return decode_offsets(disk.read_file(path)).get(key, 0) if disk.exists(path) else 0


async def _stage(rule: str, brokers: int, seed: int = 0) -> SimulatedStage:
    config = {
        "replica.truncation": rule,
        "auto.leader.rebalance.enable": "false",
        # A broker that lost power leads immediately, as in Kafka, without a wait for a better one.
        "eligible.leader.replicas.enable": "false",
    }
    cluster = SimulatedCluster(seed, brokers, config)
    await cluster.start()
    return SimulatedStage(cluster)


@pytest.mark.parametrize("rule", RULES)
def test_an_acknowledged_record_is_lost_by_high_watermark_and_kept_by_epochs(rule: str) -> None:
    async def story() -> Told:
        return await loss(await _stage(rule, brokers=3), KEY)

    check_loss(rule, run(story(), max_time=300.0))


@pytest.mark.parametrize("rule", RULES)
def test_logs_fork_by_high_watermark_and_agree_by_epochs(rule: str) -> None:
    """The disk decides whether m2 survives the power loss; here it must not."""

    def told(seed: int) -> Told:
        async def story() -> Told:
            return await divergence(await _stage(rule, brokers=2, seed=seed), KEY)

        return run(story(), seed=seed, max_time=300.0)

    lost = next((one for one in map(told, range(8)) if one.end_after_epoch_bump == 1), None)
    assert lost is not None, "no disk lost what was not flushed"
    check_divergence(rule, lost)


@pytest.mark.parametrize("rule", RULES)
def test_a_restarted_follower_cuts_to_its_checkpointed_high_watermark(rule: str) -> None:
    """The loss of KIP-101 as the KIP describes it, with a restart instead of a new epoch."""

    async def story() -> tuple[int, list[bytes]]:
        world = ReplicationWorld(config={"replica.truncation": rule})
        await world.start(1, 2)
        await world.create(2, 1)
        await world.produce(b"m1")
        await world.until_equal(1, 2)
        await asyncio.sleep(6.0)  # then the checkpoint has the high watermark 1
        assert (await world.produce(b"m2")).error_code == ErrorCode.NONE
        assert world.log(1).high_watermark == 1
        world.kill(1)
        await world.start(1)
        world.cut(1, 2)
        await world.announce(only=1)
        end = world.log(1).log_end_offset
        world.kill(2)
        await world.elect(1, isr=(1,))
        return end, world.values(1)

    end, values = run(story())
    if rule == "high-watermark":
        assert (end, values) == (1, [b"m1"])
    else:
        assert (end, values) == (2, [b"m1", b"m2"])
