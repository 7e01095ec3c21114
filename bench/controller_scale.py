"""What grows with the number of partitions when a controller dies, in the simulator.

    python bench/controller_scale.py [--partitions 1000 2000 5000 10000] [--json FILE]

Three simulated brokers, replication factor 3; the controller's broker is killed. The network and
ZooKeeper take virtual time per message, the brokers' own work takes none: so the virtual seconds
tell how many rounds a failover needs, and the counts and processor seconds what each round costs.
"""

import argparse
import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from barnabas import Admin
from barnabas_controller.channels.controller_channel_manager import ControllerChannelManager
from barnabas_controller.channels.request_batch import ControlRequest
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run
from barnabas_simulator.zookeeper.session import MemorySession
from rich.console import Console
from rich.table import Table
from support.machine import write_figures

PARTITIONS_PER_TOPIC = 500
CALLS = ("get", "children", "exists", "multi", "set", "create", "delete")


@dataclass(frozen=True)
class Scale:
    """One failover. `virtual_seconds` from the kill until every partition is led again."""

    partitions: int
    virtual_seconds: float
    processor_seconds: float
    zookeeper_reads: int
    zookeeper_multis: int
    control_requests: int
    partitions_told: int


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count ZooKeeper operations by name, control requests, and the partitions in them."""
    counts: Counter[str] = Counter()
    with ExitStack() as replaced:
        for name in CALLS:
            replaced.enter_context(_counting(counts, name))
        replaced.enter_context(_counting_control(counts))
        yield counts


@contextmanager
def _counting(counts: Counter[str], name: str) -> Iterator[None]:
    original = getattr(MemorySession, name)

    async def call(self: MemorySession, *arguments: object, **named: object) -> object:
        counts[name] += 1
        return await original(self, *arguments, **named)

    setattr(MemorySession, name, call)
    try:
        yield
    finally:
        setattr(MemorySession, name, original)


@contextmanager
def _counting_control(counts: Counter[str]) -> Iterator[None]:
    original = ControllerChannelManager.send

    def send(self: ControllerChannelManager, broker_id: int, request: ControlRequest) -> None:
        counts["requests"] += 1
        counts["told"] += len(request.partitions)
        original(self, broker_id, request)

    ControllerChannelManager.send = send  # type: ignore[method-assign]
    try:
        yield
    finally:
        ControllerChannelManager.send = original  # type: ignore[method-assign]


async def measure(partitions: int) -> Scale:
    """Kill the controller's broker in a simulated cluster, and count until all is led again."""
    cluster = SimulatedCluster(seed=1, config={"auto.leader.rebalance.enable": "false"})
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        for number in range(0, partitions, PARTITIONS_PER_TOPIC):
            count = min(PARTITIONS_PER_TOPIC, partitions - number)
            await admin.create_topic(f"many-{number}", count, 3, timeout_ms=600_000)
        victim = (await admin.describe_cluster()).controller_id
    survivor = next(broker for broker in cluster.broker_ids if broker != victim)
    cache = cluster.broker(survivor).metadata_cache
    with counted() as counts:
        began, working = cluster.clock.monotonic(), time.process_time()
        cluster.kill(victim)
        while cache.controller_id in (victim, -1) or any(
            partition.leader in (victim, -1)
            for topic in cache.topics()
            for partition in cache.partitions(topic)
        ):
            await asyncio.sleep(0.01)
        return Scale(
            partitions,
            cluster.clock.monotonic() - began,
            time.process_time() - working,
            counts["get"] + counts["children"] + counts["exists"],
            counts["multi"],
            counts["requests"],
            counts["told"],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1000, 2000, 5000, 10_000])
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    rows = []
    for partitions in options.partitions:
        rows.append(run(measure(partitions), seed=1))
        print(rows[-1], flush=True)
    table = Table(
        *(name.replace("_", "\n") for name in asdict(rows[0])),
        title="failover of a controller, simulated",
    )
    for row in rows:
        values = asdict(row).values()
        table.add_row(*(f"{v:.2f}" if isinstance(v, float) else str(v) for v in values))
    Console().print(table)
    write_figures(options.json, scale=[asdict(row) for row in rows])


if __name__ == "__main__":
    main()
