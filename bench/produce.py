"""Throughput and latency of Barnabas and, in the same run, of Apache Kafka on the same machine.

    python bench/produce.py [--records N] [--size 100] [--no-kafka] [--json FILE]

One producer process, three brokers, 6 partitions, replication factor 3, acks=all,
min.insync.replicas=2. Barnabas is driven by its Python client, Kafka by its own Java tools. One
system is stopped before the other starts.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import uvloop
from barnabas_tools.local.cluster import LocalCluster
from kafka_peer import KafkaCluster
from support import measures
from support.report import Report, compare, options_parser, percentile

TOPIC = "bench"
LATENCY_TOPIC = "latency"
LATENCY_RECORDS = 2_000
SMALL_BATCH = {"batch_size": 65_536, "linger_ms": 5}
LARGE_BATCH = {"batch_size": 262_144, "linger_ms": 20}
LARGE_RECORD = 1_000

FIRST = "produce, first round (64 KiB batches, linger 5 ms)"
WARM = "produce, warm (256 KiB batches, linger 20 ms)"
BYTES = "produce: prebuilt batches / Kafka: 1 kB records"
CONSUME = "consume, an object per record"
ARROW = "consume, Arrow columns"
ACK_P50, ACK_P99 = (
    "one in flight, until acknowledged: p50",
    "one in flight, until acknowledged: p99",
)
END_P50, END_P99 = "one in flight, until consumed: p50", "one in flight, until consumed: p99"


def main() -> int:
    options = _options()
    report = _report(options)
    return compare(
        report,
        options,
        None if options.no_barnabas else partial(_measure_barnabas, options, report),
        None if options.no_kafka else partial(_measure_kafka, options, report),
    )


def _options() -> argparse.Namespace:
    parser = options_parser(__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of a record's value")
    parser.add_argument("--megabytes", type=int, default=300, help="of prebuilt batches")
    parser.add_argument("--batch-size", type=int, default=131_072, help="of a prebuilt batch")
    parser.add_argument("--no-kafka", action="store_true", help="measure Barnabas alone")
    parser.add_argument("--no-barnabas", action="store_true", help="measure Kafka alone")
    return parser.parse_args()


def _report(options: argparse.Namespace) -> Report:
    report = Report(f"{options.records:,} records of {options.size} bytes, acks=all, RF 3")
    report.row(FIRST, "records/s", "200,000")
    report.row(WARM, "records/s", "200,000")
    report.row(BYTES, "MB/s", "80")
    report.row(CONSUME, "records/s")
    report.row(ARROW, "records/s")
    for row in (ACK_P50, ACK_P99, END_P50, END_P99):
        report.row(row, "ms")
    report.notes.append(
        "Barnabas: one Python producer or consumer. Kafka: ProducerPerformance, "
        "ConsumerPerformance (fetching only), EndToEndLatency (whole ms)."
    )
    return report


def _measure_barnabas(options: argparse.Namespace, report: Report, folder: Path) -> None:
    with LocalCluster(folder, brokers=3) as cluster:
        uvloop.run(_drive_barnabas(cluster.bootstrap, options, report))


async def _drive_barnabas(bootstrap: str, options: argparse.Namespace, report: Report) -> None:
    records, size = options.records, options.size
    for topic in (TOPIC, LATENCY_TOPIC):
        await measures.create_topic(bootstrap, topic)
    for what, batches in ((FIRST, SMALL_BATCH), (WARM, LARGE_BATCH)):
        rate = await measures.send(bootstrap, TOPIC, records=records, size=size, **batches)
        report.barnabas(what, rate)
    report.barnabas(CONSUME, await measures.consume(bootstrap, TOPIC, 2 * records))
    report.barnabas(ARROW, await measures.consume_arrow(bootstrap, TOPIC, 2 * records))
    megabytes = await measures.send_prebuilt(
        bootstrap, TOPIC, megabytes=options.megabytes, size=size, batch_size=options.batch_size
    )
    report.barnabas(BYTES, megabytes)
    acked, consumed = await measures.latencies(
        bootstrap, LATENCY_TOPIC, records=LATENCY_RECORDS, size=size
    )
    for what, values, percent in (
        (ACK_P50, acked, 50),
        (ACK_P99, acked, 99),
        (END_P50, consumed, 50),
        (END_P99, consumed, 99),
    ):
        report.barnabas(what, percentile(values, percent))


def _measure_kafka(options: argparse.Namespace, report: Report) -> None:
    records, size = options.records, options.size
    with KafkaCluster() as kafka:
        for topic in (TOPIC, LATENCY_TOPIC):
            kafka.create_topic(topic, measures.PARTITIONS)
        for what, batches in ((FIRST, SMALL_BATCH), (WARM, LARGE_BATCH)):
            result = kafka.produce(TOPIC, records=records, size=size, **batches)
            report.kafka(what, result.records_per_second)
        report.kafka(CONSUME, kafka.consume(TOPIC, 2 * records))
        large = kafka.produce(
            TOPIC, records=records * size // LARGE_RECORD, size=LARGE_RECORD, **LARGE_BATCH
        )
        report.kafka(BYTES, large.records_per_second * LARGE_RECORD / measures.MEGABYTE)
        p50, p99 = kafka.latency(LATENCY_TOPIC, LATENCY_RECORDS, size)
        report.kafka(END_P50, p50)
        report.kafka(END_P99, p99)


if __name__ == "__main__":
    sys.exit(main())
