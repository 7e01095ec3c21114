"""Commits per second of fifty consumers in one group, with Kafka beside it.

    python bench/group_commits.py [--rounds N] [--seconds N] [--no-kafka] [--json FILE]

Each consumer commits its own partition and waits for the answer, again and again; all fifty have
one coordinator, which writes every commit with acks=all. Three brokers each, both clusters running;
rounds of the two alternate. Barnabas' consumers share one Python process and one event loop,
Kafka's are fifty threads of one JVM.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

import uvloop
from barnabas import Admin, Consumer
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.local.cluster import LocalCluster
from kafka_peer import HERE, KafkaCluster
from support.machine import busy_percent, write_figures
from support.report import percentile

TOPIC = "commits"
MEMBERS = 50
KAFKA_PROGRAM = HERE / "GroupCommits.java"


@dataclass(frozen=True)
class Commits:
    """One round."""

    per_second: float
    p50_ms: float
    p99_ms: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10, help="of each round")
    parser.add_argument("--no-kafka", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    load = busy_percent()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        cluster = stack.enter_context(LocalCluster(Path(folder), brokers=3))
        uvloop.run(_create_topic(cluster.bootstrap))
        peers: dict[str, Callable[[], Commits]] = {
            "Barnabas": lambda: uvloop.run(_commits(cluster.bootstrap, options.seconds))
        }
        if not options.no_kafka:
            kafka = stack.enter_context(KafkaCluster())
            kafka.create_topic(TOPIC, MEMBERS)
            peers["Kafka"] = partial(_kafka_commits, kafka, options.seconds)
        rounds = _alternate(peers, options.rounds)
    print(f"{load:.0f} % of the machine busy before; each commit and its answer, {MEMBERS} members")
    for name, done in rounds.items():
        _print(name, done)
    write_figures(
        options.json, **{name: [asdict(c) for c in done] for name, done in rounds.items()}
    )
    return 0


def _alternate(peers: dict[str, Callable[[], Commits]], rounds: int) -> dict[str, list[Commits]]:
    done: dict[str, list[Commits]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name, measure in peers.items():
            done[name].append(measure())
    return done


def _print(name: str, done: list[Commits]) -> None:
    rate, p50, p99 = (
        median(getattr(commits, field) for commits in done)
        for field in ("per_second", "p50_ms", "p99_ms")
    )
    slowest = min(commits.per_second for commits in done)
    print(f"{name}: {rate:,.0f}/s (slowest {slowest:,.0f}), p50 {p50:.1f} ms, p99 {p99:.1f} ms")


async def _create_topic(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin:
        await admin.create_topic(TOPIC, MEMBERS, 3, configs={"min.insync.replicas": "2"})


async def _commits(bootstrap: str, seconds: float) -> Commits:
    consumers = [
        Consumer(bootstrap_servers=bootstrap, group_id="commits", enable_auto_commit=False)
        for _ in range(MEMBERS)
    ]
    for number, consumer in enumerate(consumers):
        consumer.assign([TopicPartition(TOPIC, number)])
        await consumer.start()
        await consumer.commit({TopicPartition(TOPIC, number): 0})
    took: list[float] = []
    began = time.perf_counter()

    async def commit(partition: TopicPartition, consumer: Consumer) -> None:
        while time.perf_counter() - began < seconds:
            sent = time.perf_counter()
            await consumer.commit({partition: 0})
            took.append((time.perf_counter() - sent) * 1000)

    partitions = [TopicPartition(TOPIC, number) for number in range(MEMBERS)]
    await asyncio.gather(*map(commit, partitions, consumers))
    rate = len(took) / (time.perf_counter() - began)
    for consumer in consumers:
        await consumer.close()
    return Commits(rate, percentile(took, 50), percentile(took, 99))


def _kafka_commits(kafka: KafkaCluster, seconds: int) -> Commits:
    output = kafka.tool(str(KAFKA_PROGRAM), kafka.bootstrap, TOPIC, MEMBERS, seconds)
    count, elapsed, p50_us, p99_us = map(float, output.split())
    return Commits(count / elapsed, p50_us / 1000, p99_us / 1000)


if __name__ == "__main__":
    sys.exit(main())
