"""What an administrator is told while the brokers have started and there is no controller."""

import asyncio

import pytest
from barnabas import Admin
from barnabas_common.errors import NotControllerError
from barnabas_controller.store import znodes
from barnabas_controller.zookeeper.session import Session
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run


async def without_controller() -> tuple[SimulatedCluster, Session]:
    """All brokers have started, and the session of the last controller is still open."""
    cluster = SimulatedCluster()
    session = await cluster.zookeeper.client("the last controller").connect(600_000, 1000)
    await session.create(znodes.CONTROLLER, znodes.encode_controller(9, 0), ephemeral=True)
    await cluster.start()
    return cluster, session


def test_the_brokers_are_told_when_the_one_that_answers_knows_them() -> None:
    """`topic create` made one replica: the default factor is at most the number of brokers."""

    async def story() -> None:
        cluster, session = await without_controller()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            asking = asyncio.ensure_future(admin.describe_cluster())
            await asyncio.sleep(5)
            assert not asking.done()
            await session.close()
            assert [broker.broker_id for broker in (await asking).brokers] == [1, 2, 3]

    run(story())


def test_without_a_controller_for_long_nothing_is_told() -> None:
    """The list of topics was empty, as if there were none."""

    async def story() -> None:
        cluster, session = await without_controller()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            asking = [
                asyncio.ensure_future(admin.describe_cluster()),
                asyncio.ensure_future(admin.list_topics()),
                asyncio.ensure_future(admin.describe_topics()),
            ]
            await asyncio.sleep(5)
            assert not any(one.done() for one in asking)
            for one in asking:
                with pytest.raises(NotControllerError, match="no controller"):
                    await one
            await session.close()
            assert await admin.list_topics() == []

    run(story())
