"""A consumer has read records that an unclean election discarded (KIP-320), on a whole cluster."""

import pytest
from barnabas import Admin, Consumer, LogTruncationError
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.whole_cluster import led_by, send

KEY = TopicPartition("read", 0)


async def _story(
    policy: str, paused: bool = False, errors: int = 0
) -> tuple[list[bytes], list[bytes]]:
    """Return the values read before and after broker 2, with one record, leads uncleanly.

    `errors`: how often the application polls on after the error that tells of it.
    """
    cluster = SimulatedCluster(seed=4, config={"auto.leader.rebalance.enable": "false"})
    await cluster.start()
    settings = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(KEY.topic, assignments={0: [1, 2]}, configs=settings)
    async with Consumer(
        bootstrap_servers=cluster.bootstrap,
        runtime=cluster.client_runtime("consumer"),
        auto_offset_reset=policy,
    ) as consumer:
        consumer.assign([KEY])
        consumer.seek(KEY, 0)
        await send(cluster, KEY, [b"kept"])
        cluster.kill(2)
        await send(cluster, KEY, [b"gone-1", b"gone-2"])
        before = await _read(consumer, 3)
        if paused:
            consumer.pause(KEY)
        cluster.kill(1)
        cluster.start_broker(2)
        await led_by(cluster, KEY, 2)
        await send(cluster, KEY, (b"new-%d" % number for number in range(5)))
        consumer.resume(KEY)
        for _ in range(errors):
            with pytest.raises(LogTruncationError):
                await _read(consumer, 5)
        return before, await _read(consumer, 5)


async def _read(consumer: Consumer, count: int) -> list[bytes]:
    values: list[bytes] = []
    while len(values) < count:
        values += [record.value or b"" for record in await consumer.poll(timeout_ms=500)]
    return values


@pytest.mark.parametrize("errors", [0, 2])
def test_without_a_reset_policy_the_application_is_told_where_the_logs_part(errors: int) -> None:
    """Again and again, until it seeks: a poll after the first error skipped records in silence."""
    with pytest.raises(LogTruncationError) as raised:
        run(_story("none", errors=errors), seed=4, max_time=300.0)
    assert raised.value.safe_offset == 1


@pytest.mark.parametrize("paused", [False, True])
def test_with_one_it_goes_on_where_the_logs_part(paused: bool) -> None:
    """No record of the new leader is skipped, although their offsets have been read already."""
    before, after = run(_story("earliest", paused), seed=4, max_time=300.0)
    assert before == [b"kept", b"gone-1", b"gone-2"]
    assert after == [b"new-%d" % number for number in range(5)]
