"""How long partitions stand still when a broker is killed with kill -9.

    python bench/failover.py [--victim leader|controller] [--no-kafka] [--json FILE]

A producer with acks=all sends to every partition all the time; one broker is killed; per partition
the longest time between two acknowledgements counts. Both systems run with
`zookeeper.session.timeout.ms=6000` on a ZooKeeper with the same settings.
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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import measures
import uvloop
from barnabas import Admin, Producer
from barnabas.producer import RecordMetadata
from barnabas_broker.local.cluster import LocalCluster
from barnabas_broker.local.errors import ClusterError
from kafka_peer import KafkaCluster, KafkaUnavailable
from report import NotQuiet, Report, console

TOPIC = "failover"
SESSION_TIMEOUT_MS = 6_000
RECORDS_PER_SECOND = 300
BEFORE_KILL, AFTER_KILL = 4.0, 25.0
# Enough keys that every partition gets some.
KEYS = 100


@dataclass
class Gaps:
    """The longest time between two acknowledgements, by partition, from `begin` on."""

    longest: dict[int, float] = field(default_factory=dict)
    _last: dict[int, float] = field(default_factory=dict)
    _counting: bool = False

    def begin(self) -> None:
        self._counting = True

    def acked(self, partition: int, now: float) -> None:
        last = self._last.get(partition)
        if self._counting and last is not None:
            self.longest[partition] = max(self.longest.get(partition, 0.0), now - last)
        self._last[partition] = now

    def check(self) -> None:
        """A partition that never came back has no gap, which must not pass for a good one."""
        silent = set(range(measures.PARTITIONS)) - set(self.longest)
        if silent:
            raise RuntimeError(f"partitions {sorted(silent)} were not acknowledged after the kill")


def main() -> int:
    options = _options()
    exit_code = 0
    report = Report(f"Longest gap between acks after kill -9 of a {options.victim}")
    for partition in range(measures.PARTITIONS):
        report.row(_row(partition), "s", "8")
    report.notes.append(f"zookeeper.session.timeout.ms={SESSION_TIMEOUT_MS}, acks=all, RF 3")
    try:
        with (
            report.turn("Barnabas", options.quiet_within),
            tempfile.TemporaryDirectory(prefix="barnabas-bench-") as folder,
        ):
            _note(report.barnabas, _measure_barnabas(Path(folder), options.victim))
        if not options.no_kafka:
            with report.turn("Kafka", options.quiet_within):
                _note(report.kafka, _measure_kafka(options.victim))
    except NotQuiet as error:
        console.print(f"[red]{error}")
        exit_code = 1
    except (ClusterError, KafkaUnavailable, RuntimeError) as error:
        console.print(f"[red]{error}")
        return 1
    report.print()
    if options.json:
        report.write(options.json)
    return exit_code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--victim",
        choices=["leader", "controller"],
        default="leader",
        help="a leader that is not the controller, or the controller",
    )
    parser.add_argument("--no-kafka", action="store_true", help="measure Barnabas alone")
    parser.add_argument(
        "--quiet-within",
        type=float,
        metavar="SECONDS",
        help="measure only while nobody else uses the machine; wait so long for that",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return parser.parse_args()


def _row(partition: int) -> str:
    return f"partition {partition}"


def _note(note: Callable[[str, float], None], gaps: Gaps) -> None:
    gaps.check()
    for partition, gap in sorted(gaps.longest.items()):
        note(_row(partition), gap)


def choose(leaders: dict[int, int], controller: int, victim: str) -> int:
    """The broker to kill: the controller, or of the others the one that leads most."""
    if victim == "controller":
        return controller
    others = Counter(leader for leader in leaders.values() if leader != controller)
    return others.most_common(1)[0][0]


# Barnabas


def _measure_barnabas(folder: Path, victim: str) -> Gaps:
    config = {"zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS)}
    with LocalCluster(folder, brokers=3, config=config) as cluster:
        gaps: Gaps = uvloop.run(_kill_in_barnabas(cluster, victim))
        return gaps


async def _kill_in_barnabas(cluster: LocalCluster, victim: str) -> Gaps:
    await measures.create_topic(cluster.bootstrap, TOPIC)
    async with Admin(cluster.bootstrap) as admin:
        topic = await admin.describe_topic(TOPIC)
        controller = (await admin.describe_cluster()).controller_id
    leaders = {p.partition: p.leader_id for p in topic.partitions}
    gaps = Gaps()
    sending = asyncio.create_task(_keep_sending(cluster.bootstrap, gaps))
    await asyncio.sleep(BEFORE_KILL)
    gaps.begin()
    cluster.kill(choose(leaders, controller, victim))
    await asyncio.sleep(AFTER_KILL)
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    return gaps


async def _keep_sending(bootstrap: str, gaps: Gaps) -> None:
    def delivered(metadata: RecordMetadata | None, error: Exception | None) -> None:
        if metadata is not None:
            gaps.acked(metadata.partition, time.monotonic())

    async with Producer(bootstrap, acks="all") as producer:
        while True:
            for partition in range(measures.PARTITIONS):
                await producer.send(TOPIC, b"x" * 100, partition=partition, on_delivery=delivered)
            await asyncio.sleep(measures.PARTITIONS / RECORDS_PER_SECOND)


# Kafka, by its VerifiableProducer: one line of JSON an acknowledgement


def _measure_kafka(victim: str) -> Gaps:
    with KafkaCluster(session_timeout_ms=SESSION_TIMEOUT_MS) as kafka:
        kafka.create_topic(TOPIC, measures.PARTITIONS)
        doomed = choose(kafka.leaders(TOPIC), kafka.controller(), victim)
        with tempfile.NamedTemporaryFile("w", suffix=".properties") as properties:
            # The tool does not retry unless told to.
            properties.write("retries=2147483647\ndelivery.timeout.ms=120000\n")
            properties.flush()
            command = kafka.command(
                "org.apache.kafka.tools.VerifiableProducer",
                *("--bootstrap-server", kafka.bootstrap, "--topic", TOPIC, "--acks", -1),
                *("--throughput", RECORDS_PER_SECOND, "--repeating-keys", KEYS),
                *("--producer.config", properties.name),
            )
            return _kill_in_kafka(kafka, command, doomed)


def _kill_in_kafka(kafka: KafkaCluster, command: list[str], doomed: int) -> Gaps:
    gaps, first_ack = Gaps(), threading.Event()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as producer:
        reader = threading.Thread(target=_read_acks, args=(producer, gaps, first_ack))
        reader.start()
        try:
            if not first_ack.wait(30.0):
                raise KafkaUnavailable("Kafka acknowledged nothing within 30 s")
            time.sleep(BEFORE_KILL)
            gaps.begin()
            kafka.kill(doomed)
            time.sleep(AFTER_KILL)
        finally:
            producer.kill()
            reader.join()
    return gaps


def _read_acks(producer: "subprocess.Popen[str]", gaps: Gaps, first_ack: threading.Event) -> None:
    assert producer.stdout is not None
    for line in producer.stdout:
        if '"producer_send_success"' in line:
            gaps.acked(json.loads(line)["partition"], time.monotonic())
            first_ack.set()


if __name__ == "__main__":
    sys.exit(main())
