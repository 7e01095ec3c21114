"""How long partitions are unavailable when a broker ends: by kill -9, and by SIGTERM.

    python bench/failover.py [--kills N] [--terms N] [--kafka-kills N] [--json FILE]

A producer with acks=all sends to all partitions continuously. In each round a broker is ended,
alternately a leader and the controller, and restarted once all partitions have recovered. The
figure is the longest gap between two acknowledgements of a partition, the worst of the six.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import uvloop
from ack_gaps import Gaps
from barnabas import Admin, Producer
from barnabas.producer import RecordMetadata
from barnabas_tools.local.cluster import LocalCluster
from kafka_peer import KafkaCluster
from support import measures
from support.report import Report, compare, console, options_parser, percentile

TOPIC = "failover"
RECORDS_PER_SECOND = 300
BETWEEN_SECONDS = 2.0
# Enough keys that every partition gets some.
KEYS = 100
VICTIMS = ("leader", "controller")
STATISTICS = (("p50", 50.0), ("p95", 95.0), ("maximum", 100.0))
TARGETS = {
    ("kill -9", "p50"): "0.5",
    ("kill -9", "p95"): "1.5",
    ("SIGTERM", "p50"): "0.3",
    ("SIGTERM", "maximum"): "1.5",
}

# Ends one broker, given its id; returns when its process is gone.
End = Callable[[int], None]


def main() -> int:
    options = _options()
    report = Report("Longest gap between acks when a broker ends, the worst of six partitions")
    for how in ("kill -9", "SIGTERM"):
        for name, _ in STATISTICS:
            report.row(f"{how}, {name}", "s", TARGETS.get((how, name), ""))
    report.row("SIGTERM, errors raised", "", "0")
    report.notes.append(
        f"{options.kills} kills, {options.terms} SIGTERMs; Kafka {options.kafka_kills} kills; "
        f"zookeeper.session.timeout.ms={options.session_timeout_ms}, acks=all, RF 3"
    )
    return compare(
        report,
        options,
        partial(_measure_barnabas, options, report),
        partial(_measure_kafka, options, report) if options.kafka_kills else None,
    )


def _options() -> argparse.Namespace:
    parser = options_parser(__doc__)
    parser.add_argument("--kills", type=int, default=100, metavar="N", help="by kill -9")
    parser.add_argument("--terms", type=int, default=20, metavar="N", help="by SIGTERM")
    parser.add_argument(
        "--kafka-kills", type=int, default=4, metavar="N", help="of Kafka beside it; 0: none"
    )
    parser.add_argument(
        "--session-timeout-ms", type=int, default=18_000, metavar="MS", help="of both systems"
    )
    return parser.parse_args()


def _note(note: Callable[[str, float], None], how: str, gaps: list[float]) -> None:
    if gaps:
        for name, percent in STATISTICS:
            note(f"{how}, {name}", percentile(gaps, percent))


def choose(leaders: dict[int, int], controller: int, victim: str) -> int:
    """Return the broker to end: the controller, or the other broker that leads most partitions."""
    others = Counter(leader for leader in leaders.values() if leader != controller)
    if victim == "controller" or not others:
        return controller
    return others.most_common(1)[0][0]


# Barnabas


def _measure_barnabas(options: argparse.Namespace, report: Report, folder: Path) -> None:
    config = {"zookeeper.session.timeout.ms": str(options.session_timeout_ms)}
    with LocalCluster(folder, brokers=3, config=config) as cluster:
        kills, terms, errors = uvloop.run(_rounds(cluster, options.kills, options.terms))
    _note(report.barnabas, "kill -9", kills)
    _note(report.barnabas, "SIGTERM", terms)
    report.barnabas("SIGTERM, errors raised", errors)


async def _rounds(
    cluster: LocalCluster, kills: int, terms: int
) -> tuple[list[float], list[float], int]:
    """Return the worst gap of each kill and each SIGTERM, and the errors during the SIGTERMs."""
    await measures.create_topic(cluster.bootstrap, TOPIC)
    gaps = Gaps(measures.PARTITIONS)
    sending = asyncio.create_task(_keep_sending(cluster.bootstrap, gaps))
    try:
        while not gaps.all_acked(100):
            await asyncio.sleep(0.1)
        killed = [await _round(cluster, gaps, cluster.kill, n) for n in range(kills)]
        before = len(gaps.errors)
        stopped = [await _round(cluster, gaps, cluster.stop_broker, n) for n in range(terms)]
        return killed, stopped, len(gaps.errors) - before
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _round(cluster: LocalCluster, gaps: Gaps, end: End, number: int) -> float:
    """End a broker, wait for recovery, restart it; returns the worst gap in seconds."""
    victim = VICTIMS[number % len(VICTIMS)]
    async with Admin(cluster.bootstrap) as admin:
        topic = await admin.describe_topic(TOPIC)
        controller = (await admin.describe_cluster()).controller_id
    leaders = {p.partition: p.leader_id for p in topic.partitions}
    broker = choose(leaders, controller, victim)
    gaps.begin()
    await asyncio.to_thread(end, broker)
    worst = await gaps.worst_after(time.monotonic())
    shown = {partition: round(gap, 2) for partition, gap in sorted(gaps.longest.items())}
    console.print(f"[dim]{number + 1}: broker {broker}, {victim}: {worst:.2f} s of {shown}")
    await asyncio.to_thread(cluster.restart, broker)
    await _until_in_sync(cluster.bootstrap)
    await asyncio.sleep(BETWEEN_SECONDS)
    return worst


async def _until_in_sync(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin:
        while True:
            topic = await admin.describe_topic(TOPIC)
            if all(len(p.in_sync_replicas) == 3 for p in topic.partitions):
                return
            await asyncio.sleep(0.1)


async def _keep_sending(bootstrap: str, gaps: Gaps) -> None:
    def delivered(metadata: RecordMetadata | None, error: Exception | None) -> None:
        if metadata is not None:
            gaps.acked(metadata.partition)
        else:
            gaps.errors.append(repr(error))

    async with Producer(bootstrap, acks="all") as producer:
        while True:
            for partition in range(measures.PARTITIONS):
                await producer.send(TOPIC, b"x" * 100, partition=partition, on_delivery=delivered)
            await asyncio.sleep(measures.PARTITIONS / RECORDS_PER_SECOND)


# Kafka, by its VerifiableProducer: one line of JSON per acknowledgement


def _measure_kafka(options: argparse.Namespace, report: Report) -> None:
    with KafkaCluster(session_timeout_ms=options.session_timeout_ms) as kafka:
        kafka.create_topic(TOPIC, measures.PARTITIONS)
        gaps = Gaps(measures.PARTITIONS)

        async def rounds() -> list[float]:
            await _until(lambda: _done(gaps.all_acked(100)))
            return [
                await _kafka_round(kafka, gaps, number) for number in range(options.kafka_kills)
            ]

        with _KafkaProducer(kafka, gaps):
            worst = asyncio.run(rounds())
    _note(report.kafka, "kill -9", worst)


async def _kafka_round(kafka: KafkaCluster, gaps: Gaps, number: int) -> float:
    victim = VICTIMS[number % len(VICTIMS)]
    leaders = await asyncio.to_thread(kafka.leaders, TOPIC)
    broker = choose(leaders, await asyncio.to_thread(kafka.controller), victim)
    gaps.begin()
    kafka.kill(broker)
    worst = await gaps.worst_after(time.monotonic())
    console.print(f"[dim]{number + 1}: Kafka's broker {broker}, {victim}: {worst:.2f} s")
    await asyncio.to_thread(kafka.restart, broker)
    await _until(lambda: asyncio.to_thread(kafka.is_in_sync, TOPIC))
    await asyncio.sleep(BETWEEN_SECONDS)
    return worst


async def _done(value: bool) -> bool:
    return value


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(120):
        while not await condition():
            await asyncio.sleep(0.2)


class _KafkaProducer:
    """Kafka's own producer in a separate process, as long as the block lasts."""

    def __init__(self, kafka: KafkaCluster, gaps: Gaps) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="barnabas-bench-")
        properties = Path(self._folder.name) / "producer.properties"
        # The tool does not retry by default.
        properties.write_text("retries=2147483647\ndelivery.timeout.ms=120000\n")
        command = kafka.command(
            "org.apache.kafka.tools.VerifiableProducer",
            *("--bootstrap-server", kafka.bootstrap, "--topic", TOPIC, "--acks", -1),
            *("--throughput", RECORDS_PER_SECOND, "--repeating-keys", KEYS),
            *("--producer.config", properties),
        )
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._reader = threading.Thread(target=_read_acks, args=(self._process, gaps))

    def __enter__(self) -> None:
        self._reader.start()

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._folder.cleanup()


def _read_acks(producer: "subprocess.Popen[str]", gaps: Gaps) -> None:
    assert producer.stdout is not None
    for line in producer.stdout:
        if '"producer_send_success"' in line:
            gaps.acked(json.loads(line)["partition"])


if __name__ == "__main__":
    sys.exit(main())
