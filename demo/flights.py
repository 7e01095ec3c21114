"""The demo: a real cluster, a real data set, a leader killed while records flow, nothing lost.

Starts three brokers, produces 336,776 flights with acks=all, kills -9 the broker that leads most
partitions while batches are in flight, restarts it, reads everything back with the Python client
and with Spark. Exit code 0 only if nothing acknowledged is missing and Spark agrees with pandas.
"""

from early_interrupt import INTERRUPTED, clean_up_on_interrupt  # isort: skip

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from barnabas import Admin, Consumer, ConsumerRecord, Producer
from barnabas_common.errors import BarnabasError
from barnabas_common.runtime.event_loop import program_runner
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.errors import ClusterError
from dataset import Flights, load_flights
from deliveries import Deliveries, compare
from monitor import Monitor
from screen import Screen
from spark_check import SparkError, agrees, spark_mean_delay
from summary import Run, summary

TOPIC = "flights"
PARTITIONS = 6
CONFIG = {"zookeeper.session.timeout.ms": "6000"}
KILL_AFTER = 0.4  # of the rows


def main() -> int:
    options = _options()
    screen = Screen()
    try:
        flights = load_flights(options.rows)
        clean_up_on_interrupt()
        screen.say(f"[bold]{len(flights):,} flights[/bold] that left New York City in 2013")
        with tempfile.TemporaryDirectory(prefix="barnabas-demo-") as folder:
            began = time.monotonic()
            with LocalCluster(Path(folder), brokers=3, config=CONFIG, report=screen.say) as cluster:
                run = Run(cluster_start=time.monotonic() - began)
                screen.say(f"the cluster serves after {run.cluster_start:.1f} s")
                return _show(cluster, flights, screen, run, with_spark=not options.no_spark)
    except KeyboardInterrupt:
        screen.console.print("\ninterrupted: the cluster is gone, nothing is left behind")
        return INTERRUPTED
    except (ClusterError, BarnabasError, SparkError, TimeoutError) as error:
        screen.console.print(f"[bold red]FAILED[/bold red]: {type(error).__name__}: {error}")
        return 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, help="how many of the flights (default: all)")
    parser.add_argument("--no-spark", action="store_true", help="leave the Spark part out")
    return parser.parse_args()


def _show(
    cluster: LocalCluster, flights: Flights, screen: Screen, run: Run, *, with_spark: bool
) -> int:
    deliveries = Deliveries(len(flights))
    with program_runner() as loop:
        loop.run(_produce_and_kill(cluster, flights, deliveries, screen, run))
        screen.say("read everything back with the Python client")
        began = time.monotonic()
        records = loop.run(_read_everything(cluster.bootstrap))
        run.reading = time.monotonic() - began
    read_back = compare(flights.values, deliveries, records)
    good = read_back.good and deliveries.acked == len(flights) and run.batches_retried > 0
    same = _check_spark(cluster, flights, screen) if with_spark else True
    screen.console.print(summary(len(flights), PARTITIONS, deliveries, read_back, run))
    memory = [p.memory_mb for b in cluster.broker_ids if (p := cluster.broker(b).process)]
    screen.console.print(f"resident memory of the brokers: {memory} MiB")
    if good and same:
        screen.console.print("[bold green]Nothing acknowledged is missing.")
        return 0
    screen.console.print("[bold red]FAILED")
    return 1


async def _produce_and_kill(
    cluster: LocalCluster, flights: Flights, deliveries: Deliveries, screen: Screen, run: Run
) -> None:
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        configs = {"min.insync.replicas": "2"}
        await admin.create_topic(TOPIC, PARTITIONS, 3, configs=configs)
    screen.say(f"topic {TOPIC}: {PARTITIONS} partitions, 3 replicas each, 2 must be in sync")
    monitor = Monitor(cluster.bootstrap, TOPIC)
    watching = asyncio.create_task(monitor.run())
    try:
        with screen.live(monitor, deliveries):
            await _produce(cluster, flights, deliveries, monitor, screen, run)
            await _bring_back(cluster, monitor, screen, run)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    run.election = monitor.election


async def _produce(
    cluster: LocalCluster,
    flights: Flights,
    deliveries: Deliveries,
    monitor: Monitor,
    screen: Screen,
    run: Run,
) -> None:
    """Send every row; after two fifths of them kill a leader while sending continues."""
    began = time.monotonic()
    deliveries.begin()
    kill_at = int(len(flights) * KILL_AFTER)
    async with Producer(cluster.bootstrap, acks="all", linger_ms=5, batch_size=65_536) as producer:
        killing: asyncio.Task[int] | None = None
        for row, (key, value) in enumerate(zip(flights.keys, flights.values, strict=True)):
            await producer.send(TOPIC, value, key=key, on_delivery=deliveries.callback(row))
            if row == kill_at:
                killing = asyncio.create_task(_kill(cluster, producer, monitor, screen))
        await producer.flush()
        run.victim = await killing if killing is not None else -1
        run.producing = time.monotonic() - began
        run.batches_retried = producer.metrics().batches_retried
    screen.say(f"all {len(flights):,} rows are sent, {deliveries.acked:,} acknowledged")


async def _kill(cluster: LocalCluster, producer: Producer, monitor: Monitor, screen: Screen) -> int:
    """kill -9 the broker that leads most partitions, while requests are in flight."""
    async with asyncio.timeout(60.0):
        while len(monitor.partitions) < PARTITIONS:
            await asyncio.sleep(0.01)
    leaders = Counter(p.leader for p in monitor.partitions.values())
    victim, led = leaders.most_common(1)[0]
    await _requests_in_flight(producer, len(leaders))
    waiting, requests = producer.undelivered, producer.metrics().requests_in_flight
    cluster.kill(victim)
    monitor.leader_killed(victim)
    screen.say(
        f"[bold red]kill -9 broker {victim}[/bold red], leader of {led} of {PARTITIONS} partitions,"
        f" with {waiting:,} rows not acknowledged and {requests} requests in flight"
    )
    return victim


async def _requests_in_flight(producer: Producer, wanted: int) -> None:
    """Wait until `wanted` requests are in flight together; after a second, until one is.

    Returns also if everything has been delivered, which happens with few rows.
    """
    deadline = time.monotonic() + 1.0
    while producer.undelivered and producer.metrics().requests_in_flight < wanted:
        if time.monotonic() > deadline:
            wanted = 1
        await asyncio.sleep(0)


async def _bring_back(cluster: LocalCluster, monitor: Monitor, screen: Screen, run: Run) -> None:
    """Restart the killed broker and wait until every replica is in sync again."""
    screen.say(f"broker {run.victim} starts again")
    began = time.monotonic()
    await asyncio.to_thread(cluster.start_broker, run.victim)
    async with asyncio.timeout(60.0):
        while any(len(p.in_sync_replicas) < 3 for p in monitor.partitions.values()):
            await asyncio.sleep(0.05)
    run.in_sync_again = time.monotonic() - began
    screen.say(f"[green]every replica is in sync again[/green], {run.in_sync_again:.1f} s later")
    await asyncio.sleep(1.0)  # time to see it


async def _read_everything(bootstrap: str) -> list[ConsumerRecord]:
    """Return every record of the topic, up to the present high watermarks."""
    records: list[ConsumerRecord] = []
    async with Consumer(
        TOPIC, bootstrap_servers=bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        while any([await consumer.position(tp) < end for tp, end in ends.items()]):
            records += await consumer.poll(timeout_ms=500, max_records=100_000)
    return records


def _check_spark(cluster: LocalCluster, flights: Flights, screen: Screen) -> bool:
    screen.say("Spark reads the topic, computes the mean delay by carrier")
    began = time.monotonic()
    rows, delays = spark_mean_delay(cluster.bootstrap, TOPIC, cluster.directory / "spark.log")
    same = agrees(flights.frame, rows, delays)
    worst = sorted(delays.items(), key=lambda item: -(item[1] or 0.0))[:3]
    screen.say(
        f"Spark saw {rows:,} distinct rows in {time.monotonic() - began:.1f} s; its means"
        f" {'[green]equal[/green]' if same else '[bold red]differ from[/bold red]'} those of pandas"
        f" on the source (worst: {', '.join(f'{c} {delay:.1f} min' for c, delay in worst)})"
    )
    return same


if __name__ == "__main__":
    sys.exit(main())
