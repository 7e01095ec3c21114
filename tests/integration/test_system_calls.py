"""Brokers are killed inside their system calls, and calls fail with EIO or ENOSPC.

Producers, and copiers with transactions, run the whole time. Nothing acknowledged is lost, by
value, and every copy is exact.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from barnabas import Admin
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.errors import ClusterError

from tests.integration.test_exact_copy import (
    CONFIG,
    SOURCE,
    TARGET,
    Copiers,
    check,
    produce,
    until_copied,
    watched,
)
from tests.support import system_calls
from tests.support.cluster_state import create_topic, wait_until_in_sync
from tests.support.log_files import assert_sound
from tests.support.real_cluster import real_cluster
from tests.support.workload import Workload

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not system_calls.is_available(), reason="needs strace"),
]

TOPIC = "flights"
PARTITIONS = 3
SMALL_FILES = {
    "log.segment.bytes": "60000",
    "log.index.interval.bytes": "500",
    "replica.lag.time.max.ms": "3000",
    "log.flush.offset.checkpoint.interval.ms": "2000",
}
IN_SYNC_SECONDS = 90.0


@asynccontextmanager
async def revived(cluster: LocalCluster) -> AsyncIterator[None]:
    """Start brokers again that have ended: one whose disk failed ends some time later."""

    async def watch() -> None:
        while True:
            for broker_id in set(cluster.broker_ids) - set(cluster.running_brokers()):
                with contextlib.suppress(ClusterError):  # it is just ending
                    await asyncio.to_thread(cluster.start_broker, broker_id)
            await asyncio.sleep(0.3)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


async def until_in_sync(cluster: LocalCluster, done: str) -> None:
    try:
        for topic in (TOPIC, TARGET):
            await wait_until_in_sync(cluster.bootstrap, topic, within=IN_SYNC_SECONDS)
    except TimeoutError:
        raise AssertionError(f"not in sync after {done}") from None


async def story(directory: Path, seed: int, strikes: int) -> None:
    random, count = Random(seed), 100 * strikes
    with real_cluster(directory, CONFIG | SMALL_FILES) as cluster:
        for topic in (TOPIC, SOURCE, TARGET):
            await create_topic(cluster.bootstrap, topic, PARTITIONS)
        originals = await produce(cluster.bootstrap, count, PARTITIONS)
        copiers = Copiers(cluster.bootstrap, 20, directory / "copiers.log")
        async with (
            watched(copiers),
            revived(cluster),
            Workload(TOPIC, PARTITIONS, cluster.bootstrap, pause=0.02) as workload,
            Admin(cluster.bootstrap) as admin,
        ):
            for _ in range(strikes):
                victim = random.choice(cluster.broker_ids)
                injection = system_calls.draw(random)
                while (pid := cluster.pid(victim)) is None:
                    await asyncio.sleep(0.1)
                await system_calls.meddle(pid, injection, random.choice([2.0, 4.0]))
                await until_in_sync(cluster, f"{injection} in broker {victim}, seed {seed}")
            await workload.stop()
            (await workload.verdict()).assert_good()
            await until_copied(admin, count, within=240.0)
        await check(cluster, originals, copiers, kills=0)
        await asyncio.to_thread(cluster.stop)
        for broker_id in cluster.broker_ids:
            assert_sound(cluster.layout.data_directory(broker_id))


async def test_a_few_strikes(tmp_path: Path) -> None:
    await story(tmp_path, seed=1, strikes=4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
async def test_many_strikes(tmp_path: Path, seed: int) -> None:
    await story(tmp_path, seed, strikes=40)


def test_kills_and_errors_are_drawn_for_every_call() -> None:
    random = Random(1)
    drawn = [system_calls.draw(random) for _ in range(2_000)]
    for call in system_calls.KILLED_IN:
        assert any(f"inject={call}:signal=SIGKILL" in one for one in drawn)
    for call in system_calls.FAILING:
        assert any(f"inject={call}:error=ENOSPC" in one for one in drawn)
