"""The order in which a broker starts, and starts again after it was killed."""

import asyncio

import pytest
from barnabas import Admin
from barnabas_common.errors import TransportError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_common.runtime import Address, Runtime, Service
from barnabas_controller.store import znodes
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.session import WatchEvent
from barnabas_simulator.cluster import CLIENT_PORT, SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.config_world import store_of

SESSION_TIMEOUT_SECONDS = 60.0
CONFIG = {"zookeeper.session.timeout.ms": str(int(1000 * SESSION_TIMEOUT_SECONDS))}


async def registrations(store: Store, broker_id: int) -> list[WatchEvent]:
    """Return a list that gets the first watch event of the broker's registration."""
    events: list[WatchEvent] = []
    await store.ensure(znodes.BROKER_IDS)
    await store.exists(znodes.broker_path(broker_id), events.append)
    return events


def test_a_broker_whose_port_is_taken_never_registers() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(brokers=1)
        squatter = cluster.network.node("squatter")
        await squatter.listen("CLIENT", Address("broker-1", CLIENT_PORT), {})
        events = await registrations(await store_of(cluster), 1)
        cluster.start_broker(1)
        with pytest.raises(OSError):
            await cluster.serving()
        await asyncio.sleep(1.0)
        assert events == []

    run(story())


def test_the_fixed_znodes_are_there_when_the_first_broker_serves() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(brokers=1)
        await cluster.start()
        store = await store_of(cluster)
        for path in znodes.PERSISTENT_PATHS:
            assert await store.exists(path) is not None, path

    run(story())


def test_a_killed_broker_serves_again_long_before_its_session_ends() -> None:
    """It closes the session of its previous process, in which its id is still registered."""

    async def story() -> None:
        cluster = SimulatedCluster(brokers=1, config=CONFIG)
        await cluster.start()
        cluster.kill(1)
        started = asyncio.get_running_loop().time()
        cluster.start_broker(1)
        await cluster.serving()
        assert asyncio.get_running_loop().time() - started < SESSION_TIMEOUT_SECONDS / 10

    run(story())


def test_a_broker_whose_session_ended_registers_again_with_its_logs() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(brokers=1)
        await cluster.start()
        store = await store_of(cluster)
        before = await store.broker(1)
        cluster.expire_session(1)
        await asyncio.sleep(10.0)
        after = await store.broker(1)
        assert before is not None and after is not None and after.epoch > before.epoch

    run(story())


def test_a_broker_stops_in_the_reverse_order_of_its_start() -> None:
    """Its logs are closed and marked clean before its registration ends."""

    async def story() -> None:
        cluster = SimulatedCluster(brokers=1)
        await cluster.start()
        (directory,) = cluster.broker(1).log_manager.directories
        marker, disk = f"{directory.path}/.kafka_cleanshutdown", cluster.disks[1]
        was_clean: list[bool] = []
        store = await store_of(cluster)
        await store.exists(znodes.broker_path(1), lambda _: was_clean.append(disk.exists(marker)))
        assert not disk.exists(marker)
        await cluster.stop_broker(1)
        await asyncio.sleep(1.0)
        assert was_clean == [True]

    run(story())


@pytest.mark.lengthy
def test_no_broker_denies_a_topic_after_all_have_restarted() -> None:
    """From its first answer on, and while the new controller elects leaders."""

    async def story() -> None:
        cluster = SimulatedCluster(seed=1)
        await cluster.start()
        runtime = cluster.client_runtime("client")
        async with Admin(cluster.bootstrap, runtime=runtime) as admin:
            await admin.create_topic("flights", 3, 3)
        for broker_id in cluster.broker_ids:
            cluster.kill(broker_id)
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        codes = await asyncio.gather(*(codes_of(runtime, b) for b in cluster.broker_ids))
        for answered in codes:
            assert answered[-1] == 0, "the topic is there"
            assert set(answered) <= {0, ErrorCode.LEADER_NOT_AVAILABLE}

    run(story())


async def codes_of(runtime: Runtime, broker_id: int) -> list[int]:
    """What a broker answers about the topic, asked again and again for some seconds."""
    loop = asyncio.get_running_loop()
    codes: list[int] = []
    channel = runtime.network.connect(Address(f"broker-{broker_id}", CLIENT_PORT), Service.ADMIN)
    until = loop.time() + 10.0
    while loop.time() < until:
        try:
            answer: MetadataResponse = await channel.call(MetadataRequest(["flights"]), 3.0)
        except TransportError:
            pass  # it does not listen yet
        else:
            codes.append(answer.topics[0].error_code)
        await asyncio.sleep(0.0005)
    return codes
