"""A producer whose answers were lost sends again to brokers that have restarted meanwhile.

A broker that was restarted knows only the last batch of each producer: its snapshots have no more.
"""

import asyncio
from collections.abc import Callable

from barnabas import Admin, Producer
from barnabas_simulator.campaign.state import partition_states
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.whole_cluster import TP, read_back

CLIENT = "producer"
BURST = 60


class Cut:
    """A producer that is cut off while several of its requests are unanswered."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.links = [(f"broker-{broker}", CLIENT) for broker in cluster.broker_ids]
        self.sent: list[bytes] = []

    async def burst(self, producer: Producer) -> None:
        for _ in range(BURST):
            value = b"%d" % len(self.sent)
            self.sent.append(value)
            await producer.send(TP.topic, value, partition=0)

    def half_is_stored(self) -> bool:
        """Whether every replica has half of the last burst: some requests of it."""
        wanted = len(self.sent) - BURST // 2
        ends = [one.log.log_end_offset for one in self.cluster.hosted(TP) if one.log is not None]
        return len(ends) == len(self.links) and min(ends) >= wanted

    def lose_answers(self) -> None:
        """From now on no answer arrives, but requests do."""
        for broker, client in self.links:
            self.cluster.network.cut(broker, client)

    def lose_requests(self) -> None:
        for broker, client in self.links:
            self.cluster.network.cut(client, broker)

    def heal(self) -> None:
        for broker, client in self.links:
            self.cluster.network.heal(broker, client)
            self.cluster.network.heal(client, broker)


async def restart_in_turn(cluster: SimulatedCluster) -> None:
    """Stop each broker in order, start it again, and wait until its replica is in sync."""
    for broker_id in cluster.broker_ids:
        await cluster.stop_broker(broker_id)
        cluster.start_broker(broker_id)
        await cluster.serving()
        await until(lambda: set(partition_states(cluster)[TP].state.isr) == {1, 2, 3})


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60.0):
        while not holds():
            await asyncio.sleep(0.05)


def test_retries_after_a_rolling_restart_are_recognized() -> None:
    async def scenario() -> None:
        cluster = SimulatedCluster(1)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            configs = {"min.insync.replicas": "2"}
            await admin.create_topic(TP.topic, 1, replication_factor=3, configs=configs)
        cut = Cut(cluster)
        async with Producer(
            cluster.bootstrap,
            runtime=cluster.client_runtime(CLIENT),
            batch_size=200,
            max_request_size=600,
            request_timeout_ms=4_000,
            metadata_max_age_ms=2_000,
            delivery_timeout_ms=600_000,
        ) as producer:
            await cut.burst(producer)
            await producer.flush()
            cut.lose_answers()
            await cut.burst(producer)
            await until(cut.half_is_stored)
            assert producer.metrics().requests_in_flight > 1
            cut.lose_requests()
            await restart_in_turn(cluster)
            cut.heal()
            await producer.flush()
        assert [value for _, value in await read_back(cluster)] == cut.sent

    run(scenario(), seed=1, max_time=900.0)
