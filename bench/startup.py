"""How long a cluster takes from nothing to its first acknowledged record, and its memory then.

    python bench/startup.py [--records N] [--no-kafka] [--json FILE]

The start ends when a record of a new topic (replication factor 3, acks=all) is acknowledged. The
resident memory is each broker's after the flights of a year were produced and read back.
"""

import argparse
import asyncio
import sys
import time
from functools import partial
from pathlib import Path

import uvloop
from aiokafka import AIOKafkaProducer
from barnabas import Producer
from barnabas_tools.local.cluster import LocalCluster
from kafka_peer import KafkaCluster
from support import measures
from support.machine import resident_mb
from support.report import Report, compare, options_parser

TOPIC = "flights"
FLIGHTS = 336_776
CARRIERS = [b"UA", b"B6", b"EV", b"DL", b"AA", b"MQ", b"US", b"9E", b"WN", b"VX", b"FL", b"AS"]

SERVING = "from nothing until every broker serves"
FIRST_ACK = "from nothing until the first record is acknowledged"
IDLE = "resident memory of the largest broker, idle"
LOADED = "resident memory of the largest broker, flights produced and read"


def main() -> int:
    options = _options()
    report = Report("Start and memory, three brokers and ZooKeeper")
    report.row(SERVING, "s")
    report.row(FIRST_ACK, "s", "6")
    report.row(IDLE, "MiB")
    report.row(LOADED, "MiB", "150")
    return compare(
        report,
        options,
        partial(_measure_barnabas, options.records, report),
        None if options.no_kafka else partial(_measure_kafka, options.records, report),
    )


def _options() -> argparse.Namespace:
    parser = options_parser(__doc__)
    parser.add_argument("--records", type=int, default=FLIGHTS)
    parser.add_argument("--no-kafka", action="store_true", help="measure Barnabas alone")
    return parser.parse_args()


def _measure_barnabas(records: int, report: Report, folder: Path) -> None:
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
    """Return a record of the size and shape of the demo's."""
    return (
        b'{"row":%d,"carrier":"UA","flight":1545,"origin":"EWR","dest":"IAH","dep_delay":2.0}' % row
    )


if __name__ == "__main__":
    sys.exit(main())
