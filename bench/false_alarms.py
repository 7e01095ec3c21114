"""Does a busy cluster with short pauses suspect brokers that run?

    python bench/false_alarms.py [--minutes M] [--pause SECONDS] [--seed N]

A producer with acks=all saturates three brokers while random brokers are paused by SIGSTOP for a
second. The script counts suspicions, elections of leaders and controllers, and acknowledged records
that are missing or out of order. All counts should be 0; otherwise the exit code is 1.
"""

import argparse
import asyncio
import itertools
import random
import re
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import uvloop
from barnabas import Admin, Consumer, Producer
from barnabas.producer import RecordMetadata
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.local.cluster import LocalCluster
from support import measures
from support.report import console

TOPIC = "busy"
SIZE = 1024
# The consumer checks records while they arrive. The producer waits for it, so that retention
# deletes no record unread, however long the run takes.
MAX_UNREAD = 50_000
TOPIC_CONFIG = {
    "min.insync.replicas": "2",
    "segment.bytes": str(64 * 1024 * 1024),
    "retention.bytes": str(256 * 1024 * 1024),
}
CLUSTER_CONFIG = {
    "auto.leader.rebalance.enable": "false",
    "log.retention.check.interval.ms": "5000",
    "log.segment.delete.delay.ms": "1000",
}
DRAIN_SECONDS = 60.0


@dataclass
class Tally:
    """What was sent, acknowledged and read.

    The values of each partition count up, so that a gap in what is read is a loss.
    """

    sent: int = 0
    acked: dict[int, int] = field(default_factory=dict)
    read: dict[int, int] = field(default_factory=dict)
    repeated: int = 0
    errors: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    pauses: int = 0

    def check(self, partition: int, number: int) -> None:
        """Check the next record of a partition; a lower number is a batch that was sent twice."""
        expected = self.read.get(partition, 0)
        if number < expected:
            self.repeated += 1
            return
        if number > expected:
            self.lost.append(f"{TOPIC}-{partition}: {expected} to {number - 1}")
        self.read[partition] = number + 1

    @property
    def unread(self) -> int:
        return self.sent - sum(self.read.values())

    def missing(self) -> int:
        """Return the number of records that were acknowledged and never read."""
        return sum(max(0, last - self.read.get(p, 0)) for p, last in self.acked.items())


def main() -> int:
    options = _options()
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-bench-") as folder,
        LocalCluster(Path(folder), brokers=3, config=CLUSTER_CONFIG) as cluster,
    ):
        tally, elections = uvloop.run(_run(cluster, options))
        suspicions = _count(cluster, r"broker-suspected|controller-deposed")
        controllers = _count(cluster, r"controller-elected")
    acked = sum(tally.acked.values())
    console.print(
        f"{options.minutes:g} minutes, {tally.pauses} pauses of {options.pause:g} s, "
        f"{acked:,} records of {SIZE} bytes acknowledged, {tally.repeated:,} sent twice\n"
        f"suspicions {suspicions}, leader epochs begun {elections}, controllers elected "
        f"{controllers} (one at the start), errors raised {len(tally.errors)}, "
        f"gaps {len(tally.lost)}, acknowledged and not read {tally.missing()}"
    )
    for line in [*tally.lost, *tally.errors][:10]:
        console.print(f"[red]{line}")
    bad = suspicions or elections or controllers > 1 or tally.lost or tally.missing()
    return 1 if bad or not acked else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, metavar="M")
    parser.add_argument("--pause", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the choice of brokers")
    return parser.parse_args()


async def _run(cluster: LocalCluster, options: argparse.Namespace) -> tuple[Tally, int]:
    """Run load and pauses; returns the tally and the number of new leader epochs."""
    async with Admin(cluster.bootstrap) as admin:
        await admin.create_topic(TOPIC, measures.PARTITIONS, 3, configs=TOPIC_CONFIG)
    before = await _epochs(cluster.bootstrap)
    tally, stop = Tally(), asyncio.Event()
    reading = asyncio.create_task(_read(cluster.bootstrap, tally))
    sending = asyncio.create_task(_send(cluster.bootstrap, tally, stop))
    await _pause_at_random(cluster, options, tally)
    stop.set()
    await sending
    async with asyncio.timeout(DRAIN_SECONDS):
        while tally.missing() and not reading.done():
            await asyncio.sleep(0.1)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    return tally, await _epochs(cluster.bootstrap) - before


async def _send(bootstrap: str, tally: Tally, stop: asyncio.Event) -> None:
    def delivered(metadata: RecordMetadata | None, error: Exception | None) -> None:
        if metadata is None:
            tally.errors.append(repr(error))
        else:
            tally.acked[metadata.partition] = tally.acked.get(metadata.partition, 0) + 1

    padding = b"x" * (SIZE - 8)
    async with Producer(bootstrap, acks="all", batch_size=262_144, linger_ms=5) as producer:
        for number in itertools.count():
            if stop.is_set():
                break
            while tally.unread > MAX_UNREAD:
                await asyncio.sleep(0.005)
            value = number.to_bytes(8, "big") + padding
            for partition in range(measures.PARTITIONS):
                await producer.send(TOPIC, value, partition=partition, on_delivery=delivered)
            tally.sent += measures.PARTITIONS
            if number % 50 == 0:
                await asyncio.sleep(0)
        await producer.flush()


async def _read(bootstrap: str, tally: Tally) -> None:
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(TOPIC, p) for p in range(measures.PARTITIONS)])
        while True:
            for record in await consumer.poll(timeout_ms=500, max_records=10_000):
                assert record.value is not None
                tally.check(record.partition, int.from_bytes(record.value[:8], "big"))


async def _pause_at_random(
    cluster: LocalCluster, options: argparse.Namespace, tally: Tally
) -> None:
    chance = random.Random(options.seed)
    end = asyncio.get_running_loop().time() + options.minutes * 60
    while asyncio.get_running_loop().time() < end:
        await asyncio.sleep(chance.uniform(0.5, 2.0))
        broker = chance.choice(cluster.broker_ids)
        cluster.signal(broker, signal.SIGSTOP)
        await asyncio.sleep(options.pause)
        cluster.signal(broker, signal.SIGCONT)
        tally.pauses += 1


async def _epochs(bootstrap: str) -> int:
    """Return the sum of the partitions' leader epochs."""
    async with Admin(bootstrap) as admin:
        topic = await admin.describe_topic(TOPIC)
    return sum(p.leader_epoch for p in topic.partitions)


def _count(cluster: LocalCluster, pattern: str) -> int:
    logs = (cluster.broker(broker_id).log_file for broker_id in cluster.broker_ids)
    return sum(len(re.findall(pattern, log.read_text(errors="replace"))) for log in logs)


if __name__ == "__main__":
    sys.exit(main())
