"""What a pass of compaction costs producers: the latency of acknowledgements, without and with one.

    python bench/compaction_latency.py [--brokers 1] [--megabytes 200] [--rounds 3] [--size 100]

Finds the maximal rate of one producer, then sends at half of it. In each round the load runs alone
for as long as it then runs while a log is compacted whose keys are written four times, in records
of 1 KB. The latency is from when a record was due until it is acknowledged.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import uvloop
from barnabas import Admin, ConfigResource, Producer
from barnabas_common.record.builder import BatchBuilder
from barnabas_tools.local.cluster import LocalCluster
from support import measures
from support.report import percentile

LOAD = "load"
TICK_SECONDS = 0.005
ALONE_SECONDS = 5.0
LINGER_MS = 5
BATCH_BYTES = 262_144
TABLE_RECORD, COPIES, PER_BATCH = 1_000, 4, 16
SETTINGS = {"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "0"}


@dataclass
class Load:
    """Records at a steady rate, whatever the acknowledgements do; the ms they took, in order."""

    bootstrap: str
    rate: float
    size: int
    took_ms: list[float] = field(default_factory=list)

    async def run(self) -> None:
        value = b"x" * self.size
        per_tick = max(int(self.rate * TICK_SECONDS), 1)
        producer = Producer(self.bootstrap, acks="all", linger_ms=LINGER_MS, batch_size=BATCH_BYTES)
        async with producer, asyncio.TaskGroup() as waiting:
            due = time.perf_counter()
            while True:
                for _ in range(per_tick):
                    handle = await producer.send(LOAD, value)
                waiting.create_task(self._note(handle, due))
                due += TICK_SECONDS
                await asyncio.sleep(max(due - time.perf_counter(), 0))

    async def _note(self, handle: Awaitable[object], due: float) -> None:
        await handle
        self.took_ms.append((time.perf_counter() - due) * 1000)


async def fill_table(bootstrap: str, table: str, megabytes: int) -> None:
    chance = random.Random(1)
    records = megabytes * measures.MEGABYTE // TABLE_RECORD
    async with Producer(bootstrap, acks="all") as producer:
        for _ in range(records // PER_BATCH):
            builder = BatchBuilder()
            for _ in range(PER_BATCH):
                key = b"%016d" % chance.randrange(records // COPIES)
                builder.append(time.time_ns() // 1_000_000, key, bytes(TABLE_RECORD - 27))
            await producer.send_batch(table, 0, builder.build())
        await producer.flush()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    while not await condition():
        await asyncio.sleep(0.1)


async def one_round(bootstrap: str, table: str, load: Load, megabytes: int, brokers: int) -> None:
    """Print the latencies of both halves."""
    async with Admin(bootstrap) as admin:
        configs = {"cleanup.policy": "delete", "segment.bytes": str(32 * 1024 * 1024)}
        await admin.create_topic(table, 1, brokers, configs=configs)
        await fill_table(bootstrap, table, megabytes)

        async def dirty() -> list[int]:
            answers = await admin.describe_replicas([table])
            return [replica.dirty_percent for answer in answers for replica in answer.replicas]

        async def is_compacted() -> bool:
            found = await dirty()
            return len(found) == brokers and set(found) == {0}

        running = asyncio.create_task(load.run())
        await asyncio.sleep(1)
        load.took_ms.clear()
        await asyncio.sleep(ALONE_SECONDS)
        alone = load.took_ms[:]
        changes = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        began = time.perf_counter()
        load.took_ms.clear()
        await admin.incremental_alter_configs(ConfigResource.topic(table), changes)
        await until(is_compacted)
        seconds, beside = time.perf_counter() - began, load.took_ms[:]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await admin.delete_topics([table])
    show("alone", alone)
    show(f"beside a pass of {seconds:.1f} s", beside)
    print(f"  p99 {percentile(beside, 99) / percentile(alone, 99):.2f} times", flush=True)


def show(what: str, took_ms: list[float]) -> None:
    figures = ", ".join(f"p{p} {percentile(took_ms, p):.1f}" for p in (50, 99))
    print(f"  {what}: {figures}, longest {max(took_ms):.1f} ms ({len(took_ms)} samples)")


async def measure(bootstrap: str, options: argparse.Namespace) -> None:
    async with Admin(bootstrap) as admin:
        await admin.create_topic(LOAD, measures.PARTITIONS, options.brokers)
    highest = 0.0
    for _ in range(2):
        rate = await measures.send(
            bootstrap,
            LOAD,
            records=options.records,
            size=options.size,
            batch_size=BATCH_BYTES,
            linger_ms=20,
        )
        highest = max(highest, rate)
    load = Load(bootstrap, highest / 2, options.size)
    print(f"{highest:,.0f} records/s of {options.size} bytes at most; sending {load.rate:,.0f}")
    for number in range(options.rounds):
        print(f"round {number + 1}, a log of {options.megabytes} MB")
        await one_round(bootstrap, f"table-{number}", load, options.megabytes, options.brokers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=1)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--records", type=int, default=500_000, help="to find the maximal rate")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=int, default=100)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(Path(folder) / "cluster", brokers=options.brokers, config=SETTINGS) as cluster,
    ):
        uvloop.run(measure(cluster.bootstrap, options))


if __name__ == "__main__":
    main()
