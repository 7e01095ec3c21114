"""A group has committed an offset of a leader epoch that no log knows: its records are gone."""

import asyncio

import pytest
from barnabas import Admin, Consumer, LogTruncationError, OffsetAndMetadata
from barnabas.consumer.config import AutoOffsetReset
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.whole_cluster import send

KEY = TopicPartition("restored", 0)
COUNT = 10


async def _read_after_a_commit_of_another_log(policy: AutoOffsetReset) -> list[int]:
    """The offsets that a member reads, of 10 records; the commit is behind the fifth."""
    cluster = SimulatedCluster(seed=5)
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(KEY.topic, 1, 3)
        await send(cluster, KEY, (b"%d" % number for number in range(COUNT)))
        await admin.alter_group_offsets("readers", {KEY: OffsetAndMetadata(5, "", 99)})
    async with Consumer(
        KEY.topic,
        bootstrap_servers=cluster.bootstrap,
        runtime=cluster.client_runtime("member"),
        group_id="readers",
        auto_offset_reset=policy,
    ) as consumer:
        offsets: list[int] = []
        async with asyncio.timeout(60):
            while not offsets or offsets[-1] < COUNT - 1:
                offsets += [record.offset for record in await consumer.poll(timeout_ms=500)]
        return offsets


def test_the_records_below_it_are_not_skipped() -> None:
    offsets = run(_read_after_a_commit_of_another_log("earliest"), seed=5, max_time=300.0)
    assert offsets == list(range(COUNT))


def test_without_a_reset_policy_the_member_is_told() -> None:
    with pytest.raises(LogTruncationError, match="restored-0"):
        run(_read_after_a_commit_of_another_log("none"), seed=5, max_time=300.0)
