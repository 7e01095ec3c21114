"""A client sees its own creation, growth, deletion or alteration on every broker immediately."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from barnabas import Admin, NewTopic
from barnabas.admin import ConfigResource, DeletedTopic
from barnabas_common.errors import (
    InvalidRequestError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from barnabas_controller.store import znodes
from barnabas_simulator.cluster import CLIENT_PORT, SimulatedCluster
from barnabas_simulator.loop import run

MAX_SECONDS = 300.0
SLOW = 2.0
Change = Callable[[Admin], Awaitable[object]]
See = Callable[[Admin], Awaitable[bool]]


async def slowed(cluster: SimulatedCluster) -> int:
    """Delay one broker's control requests; returns that broker."""
    await cluster.start()
    while cluster.zookeeper.tree.find(znodes.CONTROLLER) is None:
        await asyncio.sleep(0.05)
    node = cluster.zookeeper.tree.node(znodes.CONTROLLER)
    controller = znodes.decode_controller(node.data)
    slow = next(b for b in cluster.broker_ids if b != controller)
    cluster.network.links.delay((cluster.host(controller), cluster.host(slow)), SLOW)
    return slow


def admin_of(cluster: SimulatedCluster, *brokers: int) -> Admin:
    """An admin client that knows no other broker at first."""
    addresses = [f"broker-{b}:{CLIENT_PORT}" for b in brokers or cluster.broker_ids]
    return Admin(addresses, runtime=cluster.client_runtime(f"admin-{len(brokers)}"))


async def seen_by_each(cluster: SimulatedCluster, see: See) -> dict[int, bool]:
    """Return each broker's answer to a separate client."""
    said = {}
    for broker in cluster.broker_ids:
        async with admin_of(cluster, broker) as admin:
            admin._cluster._candidates = lambda _, admin=admin: list(  # type: ignore[method-assign]
                admin._cluster.config.bootstrap_servers
            )
            said[broker] = await see(admin)
    return said


async def created(admin: Admin) -> object:
    return await admin.create_topic("flights", 3, 3)


async def grown(admin: Admin) -> object:
    await admin.create_topic("flights", 1, 3)
    return await admin.create_partitions("flights", 3)


async def deleted(admin: Admin) -> object:
    await admin.create_topic("flights", 3, 3)
    return await admin.delete_topics(["flights"])


async def altered(admin: Admin) -> object:
    await admin.create_topic("flights", 3, 3)
    return await admin.incremental_alter_configs(
        ConfigResource.topic("flights"), {"retention.ms": "5000"}
    )


async def default_altered(admin: Admin) -> object:
    return await admin.incremental_alter_configs(
        ConfigResource.all_brokers(), {"log.retention.ms": "5000"}
    )


async def has_three(admin: Admin) -> bool:
    return len((await admin.describe_topic("flights")).partitions) == 3


async def is_gone(admin: Admin) -> bool:
    try:
        await admin.describe_topic("flights")
    except UnknownTopicOrPartitionError:
        return "flights" not in await admin.list_topics()
    return False


async def retains(admin: Admin) -> bool:
    configs = {c.name: c.value for c in await admin.describe_configs("flights")}
    return configs["retention.ms"] == "5000"


async def brokers_retain(admin: Admin) -> bool:
    found = []
    for broker in (await admin.describe_cluster()).brokers:
        configs = await admin.describe_broker_configs(broker.broker_id)
        found.append({c.name: c.value for c in configs}["log.retention.ms"])
    return set(found) == {"5000"}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("change", "see"),
    [
        (created, has_three),
        (grown, has_three),
        (deleted, is_gone),
        (altered, retains),
        (default_altered, brokers_retain),
    ],
    ids=lambda function: function.__name__,
)
def test_every_broker_knows_of_a_change_when_the_call_returns(
    change: Change, see: See, seed: int
) -> None:
    async def story() -> dict[int, bool]:
        cluster = SimulatedCluster(seed)
        await slowed(cluster)
        async with admin_of(cluster) as admin:
            await change(admin)
            return await seen_by_each(cluster, see)

    said = run(story(), seed=seed, max_time=MAX_SECONDS)
    assert all(said.values()), said


def test_a_broker_that_cannot_be_reached_is_not_waited_for() -> None:
    async def story() -> float:
        cluster = SimulatedCluster(1, config={"zookeeper.session.timeout.ms": "60000"})
        slow = await slowed(cluster)
        async with admin_of(cluster) as admin:
            await admin.list_topics()
            cluster.kill(slow)
            began = asyncio.get_running_loop().time()
            others = [b for b in cluster.broker_ids if b != slow]
            await admin.create_topic("flights", assignments={0: others})
            return asyncio.get_running_loop().time() - began

    assert run(story(), seed=1, max_time=MAX_SECONDS) < 5.0


def test_a_topic_whose_leaders_are_slow_is_named_as_created() -> None:
    async def story() -> str:
        cluster = SimulatedCluster(1)
        await slowed(cluster)
        async with admin_of(cluster) as admin:
            with pytest.raises(RequestTimedOutError) as failure:
                await admin.create_topic("flights", 3, 3, timeout_ms=0)
            await asyncio.sleep(10.0)
            assert await has_three(admin)
            return str(failure.value)

    said = run(story(), seed=1, max_time=MAX_SECONDS)
    assert "topic 'flights' exists, but after 0 s not every partition has a leader yet" in said


def test_a_topic_that_is_named_twice_is_not_created() -> None:
    async def story() -> list[str]:
        cluster = SimulatedCluster(1)
        await cluster.start()
        await cluster.serving()
        async with admin_of(cluster) as admin:
            with pytest.raises(InvalidRequestError, match="named twice"):
                await admin.create_topics([NewTopic(name) for name in ("twice", "once", "twice")])
            return await admin.list_topics()

    assert run(story(), seed=1, max_time=MAX_SECONDS) == ["once"]


@pytest.mark.parametrize("seed", range(4))
def test_a_deleted_topic_can_be_created_again_when_the_call_returns(seed: int) -> None:
    async def story() -> int:
        cluster = SimulatedCluster(seed)
        await slowed(cluster)
        async with admin_of(cluster) as admin:
            assert await deleted(admin) == [DeletedTopic("flights")]
            return (await admin.create_topic("flights", 2, 3)).partitions

    assert run(story(), seed=seed, max_time=MAX_SECONDS) == 2


def test_a_deletion_that_waits_for_a_broker_does_not_keep_the_caller() -> None:
    async def story() -> float:
        cluster = SimulatedCluster(1)
        slow = await slowed(cluster)
        async with admin_of(cluster) as admin:
            await admin.create_topic("flights", 3, 3)
            cluster.kill(slow)
            while cluster.zookeeper.tree.find(znodes.broker_path(slow)) is not None:
                await asyncio.sleep(0.1)
            began = asyncio.get_running_loop().time()
            assert await admin.delete_topics(["flights"]) == [DeletedTopic("flights", (slow,))]
            took = asyncio.get_running_loop().time() - began
            assert await is_gone(admin)
            assert cluster.zookeeper.tree.find(znodes.topic_path("flights")) is not None
            cluster.start_broker(slow)
            await cluster.serving()
            while cluster.zookeeper.tree.find(znodes.topic_path("flights")) is not None:
                await asyncio.sleep(0.1)
            return took

    assert run(story(), seed=1, max_time=MAX_SECONDS) < 2.0


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.1, 0.105])
def test_a_change_is_sent_again_while_the_broker_has_no_session(seconds: float) -> None:
    """Its session has just ended, and the broker registers again within a second."""

    async def scenario() -> None:
        cluster = SimulatedCluster()
        await cluster.start()
        async with admin_of(cluster, 2) as admin:
            await admin.create_topic("old", assignments={0: [1]})
            cluster.expire_session(2)
            await asyncio.sleep(seconds)
            await admin.delete_topics(["old"])
            cluster.expire_session(2)
            await asyncio.sleep(seconds)
            assert (await admin.create_topic("new", assignments={0: [1]})).partitions == 1
            assert await admin.list_topics() == ["new"]
            cluster.expire_session(2)
            await asyncio.sleep(seconds)
            topic = ConfigResource.topic("new")
            await admin.incremental_alter_configs(topic, {"segment.bytes": "1000000"})
            cluster.expire_session(2)
            await asyncio.sleep(seconds)
            configs = {one.name: one.value for one in await admin.describe_configs("new")}
            assert configs["segment.bytes"] == "1000000"

    run(scenario(), max_time=MAX_SECONDS)
