"""Records are copied in transactions while brokers and copiers are killed with -9.

Every third transaction is aborted. A read_committed reader of the copy finds every record once, in
the order of its partition, and nothing of what was aborted.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas.consumer.config import IsolationLevel
from barnabas_common.errors import BarnabasError
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import create_topic
from tests.support.exact_copy import ABORTED, Verdict, judge
from tests.support.real_cluster import real_cluster

pytestmark = pytest.mark.integration

SOURCE, TARGET, GROUP = "originals", "copies", "copiers"
COPIERS = 3
CONFIG = {
    "zookeeper.session.timeout.ms": "3000",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}


class Copiers:
    """Processes that are started again whenever they end."""

    def __init__(self, bootstrap: str, records_at_once: int, log: Path) -> None:
        self.kills = 0
        self._bootstrap = bootstrap
        self._records = str(records_at_once)
        self._log = log
        self._processes = [self._start(number) for number in range(COPIERS)]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        arguments = (self._bootstrap, SOURCE, TARGET, GROUP, f"copier-{number}", self._records)
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.support.exact_copy", *arguments], stderr=log
            )

    def restart_dead(self) -> None:
        for number, process in enumerate(self._processes):
            if process.poll() is not None:
                self._processes[number] = self._start(number)

    def kill(self, number: int) -> None:
        """kill -9; it is started again soon."""
        self._processes[number].kill()
        self._processes[number].wait()
        self.kills += 1

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


async def produce(bootstrap: str, count: int, partitions: int) -> dict[int, list[bytes]]:
    values: dict[int, list[bytes]] = {number: [] for number in range(partitions)}
    async with Producer(bootstrap) as producer:
        for number in range(count):
            value = b"%d" % number
            values[number % partitions].append(value)
            await producer.send(SOURCE, value, partition=number % partitions)
        await producer.flush()
    return values


async def read(bootstrap: str, count: int, level: IsolationLevel) -> dict[int, list[bytes]]:
    """The copies by partition, from the beginning to the end for such a reader."""
    partitions = [TopicPartition(TARGET, number) for number in range(count)]
    values: dict[int, list[bytes]] = {number: [] for number in range(count)}
    async with Consumer(
        bootstrap_servers=bootstrap, isolation_level=level, auto_offset_reset="earliest"
    ) as consumer:
        ends = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        while any([await consumer.position(tp) < ends[tp] for tp in partitions]):
            for record in await consumer.poll(timeout_ms=500):
                values[record.partition].append(record.value or b"")
    return values


async def copied(admin: Admin) -> int:
    """How many records the group has committed."""
    try:
        offsets = await admin.list_group_offsets(GROUP)
    except BarnabasError:
        return 0
    return sum(found.offset for found in offsets.values())


@asynccontextmanager
async def watched(copiers: Copiers) -> AsyncIterator[None]:
    async def watch() -> None:
        while True:
            copiers.restart_dead()
            await asyncio.sleep(0.2)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        copiers.end()


async def until_copied(admin: Admin, wanted: int, within: float) -> None:
    async with asyncio.timeout(within):
        while await copied(admin) < wanted:
            await asyncio.sleep(0.1)


async def kill_one(cluster: LocalCluster, copiers: Copiers, random: Random) -> None:
    """A broker, whatever it leads and coordinates, and a copier, wherever it is."""
    broker = random.choice(cluster.broker_ids)
    await asyncio.to_thread(cluster.kill, broker)
    copiers.kill(random.randrange(COPIERS))
    await asyncio.to_thread(cluster.start_broker, broker)


async def settled(admin: Admin) -> None:
    """Every transaction is complete, or has timed out and is aborted."""
    async with asyncio.timeout(60.0):
        while [t for t in await admin.list_transactions()
               if t.state not in ("Empty", "CompleteCommit", "CompleteAbort")]:  # fmt: skip
            await asyncio.sleep(0.2)


async def check(
    cluster: LocalCluster, originals: dict[int, list[bytes]], copiers: Copiers, kills: int
) -> None:
    async with Admin(cluster.bootstrap) as admin:
        await settled(admin)
    partitions = len(originals)
    judge(originals, await read(cluster.bootstrap, partitions, "read_committed")).assert_good()
    everything = await read(cluster.bootstrap, partitions, "read_uncommitted")
    assert any(v.startswith(ABORTED) for values in everything.values() for v in values)
    assert copiers.kills >= kills


async def test_a_copy_is_exact_although_brokers_and_copiers_die(tmp_path: Path) -> None:
    count, partitions = 1_500, 3
    with real_cluster(tmp_path, CONFIG) as cluster:
        for topic in (SOURCE, TARGET):
            await create_topic(cluster.bootstrap, topic, partitions)
        originals = await produce(cluster.bootstrap, count, partitions)
        copiers = Copiers(cluster.bootstrap, 30, tmp_path / "copiers.log")
        async with watched(copiers), Admin(cluster.bootstrap) as admin:
            for part in (1, 2):
                await until_copied(admin, count * part // 4, within=60.0)
                await kill_one(cluster, copiers, Random(part))
            await until_copied(admin, count, within=60.0)
        await check(cluster, originals, copiers, kills=2)


@pytest.mark.slow
async def test_100_000_records_with_a_kill_every_ten_seconds(tmp_path: Path) -> None:
    count, partitions, every = 100_000, 9, 10.0
    random = Random(12)
    with real_cluster(tmp_path, CONFIG) as cluster:
        for topic in (SOURCE, TARGET):
            await create_topic(cluster.bootstrap, topic, partitions)
        originals = await produce(cluster.bootstrap, count, partitions)
        copiers = Copiers(cluster.bootstrap, 100, tmp_path / "copiers.log")
        async with watched(copiers), Admin(cluster.bootstrap) as admin, asyncio.timeout(900.0):
            copying = asyncio.create_task(until_copied(admin, count, within=900.0))
            while not copying.done():
                await asyncio.wait([copying], timeout=every)
                if not copying.done():
                    await kill_one(cluster, copiers, random)
            await copying
        await check(cluster, originals, copiers, kills=3)


# ---- the judgement


def test_what_is_wrong_with_a_copy_is_found() -> None:
    originals = {0: [b"1", b"2", b"3"], 1: [b"4"]}
    assert judge(originals, {0: [b"1", b"2", b"3"], 1: [b"4"]}) == Verdict()
    assert judge(originals, {0: [b"1", b"3"], 1: []}) == Verdict(lost=[b"2", b"4"])
    again = {0: [b"1", b"2", b"2", b"3"], 1: [b"4"]}
    assert judge(originals, again) == Verdict(duplicated=[b"2"])
    hidden = {0: [b"1", ABORTED + b"2", b"2", b"3"], 1: [b"4"]}
    assert judge(originals, hidden) == Verdict(aborted=[ABORTED + b"2"])
    assert judge(originals, {0: [b"2", b"1", b"3"], 1: [b"4"]}) == Verdict(disordered=[0])
