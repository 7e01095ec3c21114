"""Kafka before 0.11 and after, the same schedule under both rules, on real processes.

Brokers are held at pause points where a race must be exact. In the second schedule the disks are
volatile, so that a kill is a power loss. `tests/simulation/test_truncation_switch.py` plays the
same schedules on virtual time.
"""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest
from barnabas_broker.log.checkpoint.checkpoint_file import decode_offsets
from barnabas_common.runtime.file_pauses import FilePauseControl
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.layout import pause_directory

from tests.support import log_files
from tests.support.truncation_stories import (
    RULES,
    check_divergence,
    check_loss,
    divergence,
    loss,
)
from tests.support.zookeeper_client import broker_epoch, zookeeper

pytestmark = pytest.mark.integration

KEY = TopicPartition("story", 0)


class RealStage:
    """The stage of `truncation_stories`, with real processes."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self.bootstrap = cluster.bootstrap
        self.client: dict[str, Any] = {}

    @property
    def pauses(self) -> FilePauseControl:
        return self._cluster.pauses

    async def kill(self, broker_id: int) -> None:
        await asyncio.to_thread(self._cluster.kill, broker_id)

    async def lose_power(self, flushed: int, unflushed: int) -> None:
        """Kill both, which is enough on volatile disks; neither may see the other die."""
        for broker_id in (flushed, unflushed):
            self._cluster.signal(broker_id, signal.SIGSTOP)
        for broker_id in (flushed, unflushed):
            await self.kill(broker_id)

    async def start(self, broker_id: int) -> None:
        await asyncio.to_thread(self._cluster.start_broker, broker_id)

    async def stop(self, broker_id: int) -> None:
        await asyncio.to_thread(self._cluster.stop_broker, broker_id)

    async def session_over(self, broker_id: int) -> None:
        async with zookeeper(self._cluster) as session, asyncio.timeout(20.0):
            while await broker_epoch(session, broker_id) is not None:
                await asyncio.sleep(0.05)

    def on_disk(self, broker_id: int, key: TopicPartition) -> bytes:
        return log_files.content(self._data(broker_id) / str(key))

    def durable_high_watermark(self, broker_id: int, key: TopicPartition) -> int:
        file = self._data(broker_id) / "replication-offset-checkpoint"
        return decode_offsets(file.read_bytes()).get(key, 0) if file.exists() else 0

    def _data(self, broker_id: int) -> Path:
        return self._cluster.layout.data_directory(broker_id)


def _cluster(directory: Path, rule: str, brokers: int, **more: str) -> LocalCluster:
    config = {
        "replica.truncation": rule,
        "zookeeper.session.timeout.ms": "2000",
        "auto.leader.rebalance.enable": "false",
        # A broker that lost power leads immediately, as in Kafka, without a wait for a better one.
        "eligible.leader.replicas.enable": "false",
        "replica.high.watermark.checkpoint.interval.ms": "200",
        "pause.directory": str(pause_directory(directory)),
    }
    named = {name.replace("_", "."): value for name, value in more.items()}
    return LocalCluster(directory, brokers, config | named)


@pytest.mark.parametrize("rule", RULES)
async def test_an_acknowledged_record_is_lost_by_high_watermark_and_kept_by_epochs(
    rule: str, tmp_path: Path
) -> None:
    with _cluster(tmp_path, rule, brokers=3) as cluster:
        check_loss(rule, await loss(RealStage(cluster), KEY))


@pytest.mark.parametrize("rule", RULES)
async def test_logs_fork_by_high_watermark_and_agree_by_epochs(rule: str, tmp_path: Path) -> None:
    with _cluster(tmp_path, rule, brokers=2, log_disk="volatile") as cluster:
        _flush_every_record(cluster, 1)
        check_divergence(rule, await divergence(RealStage(cluster), KEY))


def _flush_every_record(cluster: LocalCluster, broker_id: int) -> None:
    """Restart a broker with a setting that makes it flush every record."""
    with cluster.layout.properties_file(broker_id).open("a") as properties:
        properties.write("log.flush.interval.messages=1\n")
    cluster.restart(broker_id)
