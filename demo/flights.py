"""The demo: a real cluster, a real data set, a leader killed on the way, nothing lost.

Starts three brokers, produces 336,776 flights with acks=all, kills -9 the broker that leads most
partitions while batches are in flight, restarts it, reads everything back with the Python client
and with Spark. Exit code 0 only if nothing acknowledged is missing and Spark agrees with pandas.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from barnabas import Admin, Consumer, Producer
from barnabas.topic_partition import TopicPartition
from barnabas_broker.local.cluster import LocalCluster
from barnabas_broker.local.errors import ClusterError
from dataset import Flights, load_flights, row_of
from deliveries import Deliveries, ReadBack, compare
from monitor import Monitor
from rich.console import Console
from rich.table import Table
from spark_check import agrees, spark_mean_delay

TOPIC = "flights"
PARTITIONS = 6
CONFIG = {"zookeeper.session.timeout.ms": "6000"}

console = Console()


def main() -> int:
    options = _options()
    flights = load_flights(options.rows)
    console.print(f"[bold]{len(flights):,} flights[/bold] that left New York City in 2013")
    with tempfile.TemporaryDirectory(prefix="barnabas-demo-") as folder:
        try:
            with LocalCluster(
                Path(folder), brokers=3, config=CONFIG, report=console.print
            ) as cluster:
                return _run(cluster, flights, with_spark=not options.no_spark)
        except ClusterError as error:
            console.print(f"[red]{error}")
            return 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, help="how many of the flights (default: all)")
    parser.add_argument("--no-spark", action="store_true", help="leave the Spark part out")
    return parser.parse_args()


def _run(cluster: LocalCluster, flights: Flights, *, with_spark: bool) -> int:
    deliveries = Deliveries(len(flights))
    monitor = Monitor(console, cluster.bootstrap, TOPIC, deliveries)
    producing = asyncio.run(_produce_and_kill(cluster, flights, deliveries, monitor))
    read_back = compare(deliveries, asyncio.run(_read_everything(cluster.bootstrap)))
    console.print(_table(flights, deliveries, read_back, producing, monitor))
    good = read_back.lost == 0 and deliveries.acked_count == len(flights)
    good &= producing["batches retried"] > 0
    if with_spark:
        good &= _check_spark(cluster.bootstrap, flights)
    console.print("[bold green]nothing acknowledged is missing" if good else "[bold red]FAILED")
    return 0 if good else 1


async def _produce_and_kill(
    cluster: LocalCluster, flights: Flights, deliveries: Deliveries, monitor: Monitor
) -> dict[str, float]:
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        await admin.create_topic(
            TOPIC,
            partitions=PARTITIONS,
            replication_factor=3,
            configs={"min.insync.replicas": "2"},
        )
    watching = asyncio.create_task(monitor.run())
    began = time.monotonic()
    try:
        async with Producer(
            cluster.bootstrap, acks="all", linger_ms=5, batch_size=65_536, request_timeout_ms=5_000
        ) as producer:
            victim = None
            for row, (key, value) in enumerate(zip(flights.keys, flights.values, strict=True)):
                await producer.send(TOPIC, value, key=key, on_delivery=deliveries.callback(row))
                if victim is None and row >= len(flights) * 2 // 5:
                    victim = await _kill_with_batches_in_flight(cluster, producer, monitor)
            await producer.flush()
            took = time.monotonic() - began
            metrics = producer.metrics()
        assert victim is not None
        monitor.say(f"broker {victim} starts again")
        await asyncio.to_thread(cluster.start_broker, victim)
        await _until_in_sync(cluster.bootstrap)
        monitor.say(f"[green]broker {victim} is in sync again")
        await asyncio.sleep(0.6)  # let the monitor show it
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    return {"batches retried": metrics.batches_retried, "seconds": took}


async def _kill_with_batches_in_flight(
    cluster: LocalCluster, producer: Producer, monitor: Monitor
) -> int:
    """kill -9 whoever leads most partitions, at a moment when requests are unanswered."""
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        topic = (await admin.describe_topics([TOPIC]))[0]
    victim, led = Counter(p.leader_id for p in topic.partitions).most_common(1)[0]
    async with asyncio.timeout(5.0):
        while producer.metrics().requests_in_flight == 0:
            await asyncio.sleep(0)
    in_flight = producer.metrics().requests_in_flight
    cluster.kill(victim)
    monitor.leader_killed(victim)
    monitor.say(
        f"[bold red]kill -9 broker {victim}[/bold red], which leads {led} of {PARTITIONS}"
        f" partitions; {in_flight} requests are in flight"
    )
    return victim


async def _until_in_sync(bootstrap: str, within: float = 30.0) -> None:
    async with asyncio.timeout(within), Admin(bootstrap_servers=bootstrap) as admin:
        while True:
            topic = (await admin.describe_topics([TOPIC]))[0]
            if all(len(p.in_sync_replicas) == 3 for p in topic.partitions):
                return
            await asyncio.sleep(0.1)


async def _read_everything(bootstrap: str) -> list[tuple[int, int]]:
    """(partition, row number) of every record of the topic."""
    partitions = [TopicPartition(TOPIC, p) for p in range(PARTITIONS)]
    rows: list[tuple[int, int]] = []
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        while any([await consumer.position(tp) < ends[tp] for tp in partitions]):
            for record in await consumer.poll(timeout_ms=500, max_records=100_000):
                rows.append((record.partition, row_of(record.value)))
    return rows


def _table(
    flights: Flights,
    deliveries: Deliveries,
    read_back: ReadBack,
    producing: dict[str, float],
    monitor: Monitor,
) -> Table:
    table = Table(title="What happened", show_header=False)
    election = monitor.elected_after
    gaps = deliveries.longest_gap
    for name, value in {
        "rows sent": f"{len(flights):,}",
        "rows acknowledged (acks=all)": f"{deliveries.acked_count:,}",
        "rows given up": f"{len(deliveries.failures):,}",
        "batches retried": f"{producing['batches retried']:,.0f}",
        "records read back": f"{read_back.records:,}",
        "acknowledged and lost": f"{read_back.lost:,}",
        "duplicated by a retry": f"{read_back.duplicated:,}",
        "seconds of producing, the kill included": f"{producing['seconds']:.1f}",
        "longest gap between acks": "  ".join(
            f"{partition}: {gaps[partition]:.1f} s" for partition in sorted(gaps)
        ),
        "election: new leaders after the kill": f"{election:.1f} s" if election else "not seen",
    }.items():
        table.add_row(name, value)
    return table


def _check_spark(bootstrap: str, flights: Flights) -> bool:
    began = time.monotonic()
    rows, delays = spark_mean_delay(bootstrap, TOPIC)
    same = agrees(flights.frame, rows, delays)
    worst = sorted(delays.items(), key=lambda item: -item[1])[:3]
    console.print(
        f"Spark read {rows:,} distinct rows in {time.monotonic() - began:.1f} s; mean delay by"
        f" carrier {'equals' if same else '[red]differs from[/red]'} pandas on the source"
        f" (worst: {', '.join(f'{carrier} {delay:.1f} min' for carrier, delay in worst)})"
    )
    return same


if __name__ == "__main__":
    sys.exit(main())
