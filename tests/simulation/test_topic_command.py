"""`barnabas topic create` on a cluster that is half up."""

import asyncio

import pytest
from barnabas import Admin
from barnabas_common.errors import NotControllerError
from barnabas_controller.store import znodes
from barnabas_controller.zookeeper.session import Session
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run
from barnabas_tools.cli.admin.placement import PATIENCE_SECONDS, registered_brokers
from barnabas_tools.cli.settings import CommandFailed


async def without_controller() -> tuple[SimulatedCluster, Session]:
    """All brokers have started, and the session of the last controller is still open."""
    cluster = SimulatedCluster()
    session = await cluster.zookeeper.client("the last controller").connect(600_000, 1000)
    await session.create(znodes.CONTROLLER, znodes.encode_controller(9, 0), ephemeral=True)
    await cluster.start()
    return cluster, session


def test_it_waits_until_the_broker_that_answers_knows_the_others() -> None:
    """A topic got one replica, because the default factor is at most the number of brokers."""

    async def story() -> None:
        cluster, session = await without_controller()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            assert (await admin.describe_cluster()).brokers == []
            asking = asyncio.ensure_future(registered_brokers(admin))
            await asyncio.sleep(5)
            assert not asking.done()
            await session.close()
            assert await asking == [1, 2, 3]

    run(story())


def test_it_gives_up_if_there_is_no_controller_for_long() -> None:
    async def story() -> None:
        cluster, _ = await without_controller()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            async with asyncio.timeout(PATIENCE_SECONDS + 5):
                with pytest.raises(CommandFailed, match="no controller"):
                    await registered_brokers(admin)

    run(story())


def test_topics_are_listed_when_the_broker_that_answers_knows_them() -> None:
    """The list was empty, as if there were no topics."""

    async def story() -> None:
        cluster, session = await without_controller()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            listing = asyncio.ensure_future(admin.list_topics())
            describing = asyncio.ensure_future(admin.describe_topics())
            await asyncio.sleep(5)
            assert not listing.done() and not describing.done()
            with pytest.raises(NotControllerError):
                await listing
            with pytest.raises(NotControllerError):
                await describing
            await session.close()
            assert await admin.list_topics() == []

    run(story())
