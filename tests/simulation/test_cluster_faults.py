"""The faults of a simulated broker's process and machine, one at a time."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from barnabas import Admin, Producer
from barnabas_common.events import EventKind
from barnabas_controller.store import znodes
from barnabas_simulator.cluster import CLIENT_PORT, SimulatedCluster
from barnabas_simulator.loop import run

Scenario = Callable[[SimulatedCluster], Awaitable[None]]


def simulate(scenario: Scenario) -> None:
    async def main() -> None:
        cluster = SimulatedCluster(seed=1)
        await cluster.start()
        await scenario(cluster)

    run(main(), seed=1, max_time=600)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def registered(cluster: SimulatedCluster, broker_id: int) -> int | None:
    """Return the broker's epoch in ZooKeeper; None while it is not registered."""
    node = cluster.zookeeper.tree.find(znodes.broker_path(broker_id))
    return None if node is None else node.czxid


@pytest.mark.parametrize("seconds", [3.0, 30.0])
def test_a_paused_broker_goes_on_with_its_session_or_takes_a_new_one(seconds: float) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        before = registered(cluster, 2)
        cluster.pause(2)
        await asyncio.sleep(seconds)
        assert (registered(cluster, 2) is None) is (seconds > 6)
        cluster.resume(2)
        await asyncio.sleep(3)
        assert (registered(cluster, 2) == before) is (seconds < 6)
        assert registered(cluster, 2) is not None

    simulate(scenario)


def test_a_broker_that_is_paused_while_it_registers_again_registers_afterwards() -> None:
    """Its session ended in the pause, and with it the answer to its registration."""

    async def scenario(cluster: SimulatedCluster) -> None:
        cluster.pause(2)
        await asyncio.sleep(8)
        catch_up = cluster.zookeeper.lag(cluster.host(2), 7.0, random.Random(1))
        assert catch_up is not None
        cluster.resume(2)
        await until(lambda: registered(cluster, 2) is not None)
        cluster.pause(2)
        await asyncio.sleep(15)
        assert registered(cluster, 2) is None
        cluster.resume(2)
        catch_up()
        await until(lambda: registered(cluster, 2) is not None)
        assert cluster.exits == []

    simulate(scenario)


def test_a_broker_whose_disk_fails_ends_and_says_why() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        cluster.disks[3].broken = True
        await asyncio.sleep(60)
        assert cluster.running_brokers == [1, 2]
        assert [broker_id for broker_id, _ in cluster.exits] == [3]
        assert "log directories have failed" in cluster.exits[0][1]
        assert registered(cluster, 3) is None
        cluster.disks[3].repair()
        cluster.start_broker(3)
        await cluster.serving()

    simulate(scenario)


def test_a_machine_that_lost_power_comes_back() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        cluster.lose_power(1)
        assert cluster.running_brokers == [2, 3]
        await asyncio.sleep(10)
        assert registered(cluster, 1) is None
        cluster.start_broker(1)
        await cluster.serving()
        assert registered(cluster, 1) is not None

    simulate(scenario)


def test_a_cut_between_machines_outlives_a_process_and_one_between_processes_does_not() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        network = cluster.network
        cluster.cut(1, 2)
        network.cut(cluster.host(1), cluster.host(3))
        assert network.links.swallows(("broker-1/1", "broker-2/2"))
        assert network.links.swallows(("broker-1/1", "broker-3/3"))
        for broker_id in (2, 3):
            cluster.kill(broker_id)
            cluster.start_broker(broker_id)
        assert not network.links.swallows(("broker-1/1", "broker-2/4"))
        assert network.links.swallows(("broker-1/1", "broker-3/5"))
        network.heal(cluster.host(1), cluster.host(3))
        assert not network.links.swallows(("broker-1/1", "broker-3/5"))

    simulate(scenario)


def test_a_clock_that_is_wrong_stamps_what_a_broker_records_and_the_story_puts_it_right() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        cluster.set_clock(2, -90_000)
        cluster.kill(3)
        cluster.start_broker(3)
        await asyncio.sleep(10)
        now_ms = cluster.clock.wall_ms()
        cluster.set_clock(2, 3_000_000)
        cluster.expire_session(2)
        await asyncio.sleep(1)
        (lost,) = [e for e in cluster.events() if e.kind is EventKind.SESSION_LOST]
        (stamped,) = [
            e for e in cluster.broker(2).events.since(0) if e.kind is EventKind.SESSION_LOST
        ]
        assert stamped.time_ms - lost.time_ms == 3_000_000
        assert now_ms <= lost.time_ms <= now_ms + 1_000
        times = [event.time_ms for event in cluster.events() if event.broker_id == 2]
        assert times == sorted(times)
        assert times[0] < now_ms - 5_000

    simulate(scenario)


def test_a_broker_that_has_heard_nothing_yet_denies_no_topic() -> None:
    """A client that asks this broker would otherwise conclude that the topic was deleted."""

    async def scenario(cluster: SimulatedCluster) -> None:
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("flights", replication_factor=3, partitions=1)
            ruler = (await admin.describe_cluster()).controller_id
        fresh, *_ = others = [b for b in cluster.broker_ids if b != ruler]
        cluster.kill(fresh)
        for other in (ruler, *others[1:]):
            cluster.network.cut(cluster.host(other), cluster.host(fresh))
        cluster.start_broker(fresh)
        await cluster.serving()
        runtime = cluster.client_runtime("stranger")
        async with Producer(f"broker-{fresh}:{CLIENT_PORT}", runtime=runtime) as producer:
            sent = asyncio.ensure_future(producer.send_and_wait("flights", b"a"))
            await asyncio.sleep(10.0)
            assert not sent.done()
            for other in (ruler, *others[1:]):
                cluster.network.heal(cluster.host(other), cluster.host(fresh))
            assert (await sent).offset == 0

    simulate(scenario)
