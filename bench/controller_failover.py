"""How long a cluster with many partitions has no controller, and partitions have no leader.

    python bench/controller_failover.py [--partitions 1000] [--kills 5] [--json FILE]

Three brokers, replication factor 3. The broker that is controller, and leads a third of the
partitions, is killed with kill -9. Two times are measured from the kill: until a survivor says that
another broker is controller, and until a survivor knows a running leader for every partition.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from barnabas import Admin
from barnabas_common.errors import TransportError
from barnabas_common.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_common.runtime import Address, Channel, Service
from barnabas_common.transport.grpc_network import GrpcNetwork
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.ports import HOST
from rich.console import Console
from support.machine import write_figures

PARTITIONS_PER_TOPIC = 100
PATIENCE_SECONDS = 120.0
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Failover:
    """Seconds from the kill of broker `killed`."""

    killed: int
    new_controller: float
    all_led: float


class Watcher:
    """Asks one surviving broker for everything it knows."""

    def __init__(self, cluster: LocalCluster, survivor: int) -> None:
        port = cluster.layout.ports(survivor)[0]
        self._channel: Channel = GrpcNetwork().connect(Address(HOST, port), Service.ADMIN)

    async def ask(self) -> MetadataResponse:
        response: MetadataResponse = await self._channel.call(
            MetadataRequest(all_topics=True), PATIENCE_SECONDS
        )
        return response

    async def close(self) -> None:
        await self._channel.close()


async def make_topics(bootstrap: str, partitions: int) -> None:
    async with Admin(bootstrap) as admin:
        for number in range(0, partitions, PARTITIONS_PER_TOPIC):
            await admin.create_topic(
                f"many-{number}",
                partitions=min(PARTITIONS_PER_TOPIC, partitions - number),
                replication_factor=3,
                configs={"min.insync.replicas": "2"},
                timeout_ms=60_000,
            )


async def until_full(cluster: LocalCluster, partitions: int) -> float:
    """Wait until a broker sees three in-sync replicas everywhere; returns the seconds it took."""
    watcher, began = Watcher(cluster, cluster.broker_ids[0]), time.monotonic()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                found = [p for topic in (await watcher.ask()).topics for p in topic.partitions]
                full = [p for p in found if p.leader_id >= 0 and len(p.in_sync_replicas) == 3]
                if len(full) >= partitions:
                    return time.monotonic() - began
                await asyncio.sleep(0.1)
    finally:
        await watcher.close()


async def fail_over(cluster: LocalCluster) -> Failover:
    """Kill the controller's broker, and wait until another is controller and all is led again."""
    async with Admin(cluster.bootstrap) as admin:
        controller = (await admin.describe_cluster()).controller_id
    survivor = next(broker for broker in cluster.broker_ids if broker != controller)
    watcher = Watcher(cluster, survivor)
    await watcher.ask()
    began = time.monotonic()
    cluster.kill(controller)
    elected = None
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    answer = await watcher.ask()
                except TransportError:
                    continue
                now = time.monotonic() - began
                if elected is None and answer.controller_id not in (controller, -1):
                    elected = now
                leaders = {p.leader_id for topic in answer.topics for p in topic.partitions}
                if elected is not None and not leaders & {controller, -1}:
                    return Failover(controller, elected, now)
                await asyncio.sleep(POLL_SECONDS)
    finally:
        await watcher.close()


async def measure(cluster: LocalCluster, partitions: int, kills: int) -> list[Failover]:
    """Create the partitions, then kill and restart the controller's broker `kills` times."""
    console = Console()
    began = time.monotonic()
    await make_topics(cluster.bootstrap, partitions)
    await until_full(cluster, partitions)
    console.print(f"{partitions} partitions made in {time.monotonic() - began:.1f} s")
    failovers = []
    for _ in range(kills):
        failover = await fail_over(cluster)
        failovers.append(failover)
        await asyncio.to_thread(cluster.start_broker, failover.killed)
        back = await until_full(cluster, partitions)
        console.print(
            f"broker {failover.killed} killed: another controller after"
            f" {failover.new_controller:.2f} s, every partition led after {failover.all_led:.2f} s;"
            f" restarted, all in sync after {back:.1f} s"
        )
    return failovers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as folder:
        config = {"zookeeper.session.timeout.ms": "6000", "auto.leader.rebalance.enable": "false"}
        with LocalCluster(Path(folder), brokers=3, config=config) as cluster:
            failovers = asyncio.run(measure(cluster, options.partitions, options.kills))
    led = [failover.all_led for failover in failovers]
    Console().print(f"median {statistics.median(led):.2f} s, maximum {max(led):.2f} s")
    write_figures(
        options.json,
        partitions=options.partitions,
        failovers=[asdict(failover) for failover in failovers],
    )


if __name__ == "__main__":
    main()
