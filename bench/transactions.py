"""Transactions per second with Kafka beside it; and what transactions and idempotence cost.

    python bench/transactions.py [--rounds N] [--seconds N] [--records N] [--no-kafka] [--json FILE]

Three brokers, 6 partitions, replication factor 3. One producer commits transactions of 100 records
over all partitions, one after the other; rounds of Barnabas and Kafka alternate, both clusters
running. Then the same records are read with each isolation level, and records are sent with and
without idempotence, in paired rounds: the figure is the median of the pairs' ratios.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import uvloop
from barnabas import Consumer, Producer
from barnabas_tools.local.cluster import LocalCluster
from kafka_peer import HERE, KafkaCluster
from support import measures
from support.machine import busy_percent, write_figures
from support.report import percentile

TOPIC, SENT = "transactions", "sent"
RECORDS, SIZE = 100, 100
KAFKA_PROGRAM = HERE / "Transactions.java"

Figures = dict[str, float]
Measure = Callable[[], Awaitable[float]]


class Transactions(NamedTuple):
    """One round: how many a second, and how long one took."""

    per_second: float
    p50_ms: float
    p99_ms: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10, help="of a round of transactions")
    parser.add_argument("--records", type=int, default=300_000, help="of a round of sending")
    parser.add_argument("--no-kafka", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures: Figures = {"busy before, %": busy_percent()}
    with tempfile.TemporaryDirectory() as folder, LocalCluster(Path(folder), brokers=3) as cluster:
        for topic in (TOPIC, SENT):
            uvloop.run(measures.create_topic(cluster.bootstrap, topic))
        with ExitStack() as stack:
            peers: dict[str, Callable[[], Transactions]] = {
                "Barnabas": lambda: uvloop.run(_transactions(cluster.bootstrap, options.seconds))
            }
            if not options.no_kafka:
                kafka = stack.enter_context(KafkaCluster())
                kafka.create_topic(TOPIC, measures.PARTITIONS)
                peers["Kafka"] = partial(_kafka_transactions, kafka, options.seconds)
            figures |= _alternate(peers, options.rounds)
        figures |= uvloop.run(_costs(cluster.bootstrap, options.records, options.rounds))
    for name, value in figures.items():
        print(f"{name}: {value:,.3f}")
    write_figures(options.json, **figures)
    return 0


def _alternate(peers: dict[str, Callable[[], Transactions]], rounds: int) -> Figures:
    done: dict[str, list[Transactions]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name, measure in peers.items():
            done[name].append(measure())
    figures: Figures = {}
    for name, measured in done.items():
        figures[f"{name}: transactions/s"] = median(one.per_second for one in measured)
        figures[f"{name}: transactions/s, slowest round"] = min(one.per_second for one in measured)
        figures[f"{name}: a transaction, p50 ms"] = median(one.p50_ms for one in measured)
        figures[f"{name}: a transaction, p99 ms"] = median(one.p99_ms for one in measured)
    return figures


async def _transactions(bootstrap: str, seconds: float) -> Transactions:
    took: list[float] = []
    transactional_id = f"bench-{time.time_ns()}"
    async with Producer(bootstrap, transactional_id=transactional_id) as producer:
        await producer.init_transactions()
        await _transaction(producer)
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            sent = time.perf_counter()
            await _transaction(producer)
            took.append((time.perf_counter() - sent) * 1000)
        rate = len(took) / (time.perf_counter() - began)
    return Transactions(rate, percentile(took, 50), percentile(took, 99))


async def _transaction(producer: Producer) -> None:
    value = b"x" * SIZE
    async with producer.transaction():
        for number in range(RECORDS):
            await producer.send(TOPIC, value, partition=number % measures.PARTITIONS)


def _kafka_transactions(kafka: KafkaCluster, seconds: int) -> Transactions:
    output = kafka.tool(
        str(KAFKA_PROGRAM),
        *(kafka.bootstrap, TOPIC, measures.PARTITIONS, RECORDS, SIZE, seconds),
    )
    count, elapsed, p50_us, p99_us = map(float, output.split())
    return Transactions(count / elapsed, p50_us / 1000, p99_us / 1000)


async def _costs(bootstrap: str, records: int, rounds: int) -> Figures:
    """How much slower reading is with `read_committed`, and sending with idempotence, in %."""
    return {
        "read_committed costs a reader, %": await _cost(
            partial(_read, bootstrap, "read_uncommitted"),
            partial(_read, bootstrap, "read_committed"),
            rounds,
        ),
        "idempotence costs a sender, %": await _cost(
            partial(_send, bootstrap, records, False),
            partial(_send, bootstrap, records, True),
            rounds,
        ),
    }


async def _cost(without: Measure, having: Measure, rounds: int) -> float:
    """The median of pairs of rounds; each of the two comes first in every second pair."""
    costs = []
    for number in range(rounds):
        if number % 2:
            plain = await without()
            costs.append(plain / await having())
        else:
            slower = await having()
            costs.append(await without() / slower)
    return (median(costs) - 1) * 100


async def _read(bootstrap: str, isolation_level: str) -> float:
    """Records/s, from the start to the last record."""
    async with Consumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level=isolation_level,
    ) as consumer:
        began = read_at = time.perf_counter()
        count = 0
        while records := await consumer.poll(timeout_ms=2_000, max_records=10_000):
            count += len(records)
            read_at = time.perf_counter()
        return count / (read_at - began)


async def _send(bootstrap: str, records: int, idempotent: bool) -> float:
    value = b"x" * SIZE
    async with Producer(
        bootstrap, batch_size=262_144, linger_ms=20, enable_idempotence=idempotent
    ) as producer:
        await producer.send_and_wait(SENT, value)  # it has its id
        began = time.perf_counter()
        for _ in range(records):
            await producer.send(SENT, value)
        await producer.flush()
        return records / (time.perf_counter() - began)


if __name__ == "__main__":
    sys.exit(main())
