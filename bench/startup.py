"""How long a cluster takes from nothing to its first acknowledged record, and what it then weighs.

    python bench/startup.py [--records N] [--no-kafka] [--json FILE]

The start ends when a record of a new topic (replication factor 3, acks=all) is acknowledged. The
resident memory is each broker's after the flights of a year were produced and read back.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import measures
import uvloop
from aiokafka import AIOKafkaProducer
from barnabas import Producer
from barnabas_broker.local.cluster import LocalCluster
from barnabas_broker.local.errors import ClusterError
from kafka_peer import KafkaCluster, KafkaUnavailable
from machine import resident_mb
from report import NotQuiet, Report, console

TOPIC = "flights"
FLIGHTS = 336_776
CARRIERS = [b"UA", b"B6", b"EV", b"DL", b"AA", b"MQ", b"US", b"9E", b"WN", b"VX", b"FL", b"AS"]

SERVING = "from nothing until every broker serves"
FIRST_ACK = "from nothing until the first record is acknowledged"
IDLE = "resident memory of the largest broker, idle"
LOADED = "resident memory of the largest broker, flights produced and read"


def main() -> int:
    options = _options()
    exit_code = 0
    report = Report("Start and memory, three brokers and ZooKeeper")
    report.row(SERVING, "s")
    report.row(FIRST_ACK, "s", "6")
    report.row(IDLE, "MiB")
    report.row(LOADED, "MiB", "150")
    try:
        with (
            report.turn("Barnabas", options.quiet_within),
            tempfile.TemporaryDirectory(prefix="barnabas-bench-") as folder,
        ):
            _measure_barnabas(Path(folder), options.records, report)
        if not options.no_kafka:
            with report.turn("Kafka", options.quiet_within):
                _measure_kafka(options.records, report)
    except NotQuiet as error:
        console.print(f"[red]{error}")
        exit_code = 1
    except (ClusterError, KafkaUnavailable) as error:
        console.print(f"[red]{error}")
        return 1
    report.print()
    if options.json:
        report.write(options.json)
    return exit_code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=FLIGHTS)
    parser.add_argument("--no-kafka", action="store_true", help="measure Barnabas alone")
    parser.add_argument(
        "--quiet-within",
        type=float,
        metavar="SECONDS",
        help="measure only while nobody else uses the machine; wait so long for that",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return parser.parse_args()


def _measure_barnabas(folder: Path, records: int, report: Report) -> None:
    began = time.perf_counter()
    with LocalCluster(folder, brokers=3) as cluster:
        report.barnabas(SERVING, time.perf_counter() - began)
        uvloop.run(_drive_barnabas(cluster, records, began, report))


async def _drive_barnabas(
    cluster: LocalCluster, records: int, began: float, report: Report
) -> None:
    await measures.create_topic(cluster.bootstrap, TOPIC)
    async with Producer(cluster.bootstrap, acks="all", linger_ms=5, batch_size=65_536) as producer:
        await producer.send_and_wait(TOPIC, b"first")
        report.barnabas(FIRST_ACK, time.perf_counter() - began)
        report.barnabas(IDLE, _largest(cluster))
        for row in range(records):
            await producer.send(TOPIC, flight(row), key=CARRIERS[row % len(CARRIERS)])
    await measures.consume(cluster.bootstrap, TOPIC, records + 1)
    report.barnabas(LOADED, _largest(cluster))


def _largest(cluster: LocalCluster) -> float:
    pids = [cluster.pid(broker_id) for broker_id in cluster.broker_ids]
    return max(resident_mb(pid) for pid in pids if pid is not None)


def _measure_kafka(records: int, report: Report) -> None:
    began = time.perf_counter()
    with KafkaCluster() as kafka:
        report.kafka(SERVING, time.perf_counter() - began)
        kafka.create_topic(TOPIC, measures.PARTITIONS)
        asyncio.run(_first_record(kafka.bootstrap))
        report.kafka(FIRST_ACK, time.perf_counter() - began)
        report.kafka(IDLE, max(kafka.resident_mb().values()))
        kafka.produce(TOPIC, records=records, size=len(flight(0)))
        kafka.consume(TOPIC, records)
        report.kafka(LOADED, max(kafka.resident_mb().values()))


async def _first_record(bootstrap: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all")
    await producer.start()
    try:
        await producer.send_and_wait(TOPIC, b"first")
    finally:
        await producer.stop()


def flight(row: int) -> bytes:
    """A record of the size and shape of the demo's."""
    return (
        b'{"row":%d,"carrier":"UA","flight":1545,"origin":"EWR","dest":"IAH","dep_delay":2.0}' % row
    )


if __name__ == "__main__":
    sys.exit(main())
