"""A broker starts without some of its `log.dirs`: the logs in them are not there."""

import asyncio

import pytest
from barnabas import Admin
from barnabas_common.events import EventKind
from barnabas_simulator.campaign import state
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.whole_cluster import TP
from tests.support.zookeeper_scene import SECONDS_TO_HEAL, SETTINGS, Scene


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_broker_without_one_of_its_directories_does_not_lead_by_an_empty_log(how: str) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(config={**SETTINGS, "log.dirs": "/a,/b"})
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("first", 1, 3)
            await admin.create_topic(TP.topic, 1, 3, configs={"min.insync.replicas": "2"})
        scene = Scene(cluster)
        await scene.produce()
        await scene.whole()
        last = scene.leader()
        assert cluster.disks[last].is_directory(f"/b/{TP}")
        others = [b for b in cluster.broker_ids if b != last]
        for broker_id in others:
            cluster.kill(broker_id)
            async with asyncio.timeout(SECONDS_TO_HEAL):
                while broker_id in state.partition_states(cluster)[TP].state.isr:
                    await asyncio.sleep(0.05)
        if how == "killed":
            cluster.kill(last)
        else:
            await cluster.stop_broker(last)
        both = cluster._config
        cluster._config = {**both, "log.dirs": "/a"}
        cluster.start_broker(last)
        await asyncio.sleep(10)  # long enough to lead by the empty log
        (started,) = [e for e in scene.events(EventKind.BROKER_STARTED) if e.broker_id == last][-1:]
        cluster._config = both
        for broker_id in others:
            cluster.start_broker(broker_id)
        await scene.whole(within=60)
        await scene.check()
        assert "log.dirs" in started.cause

    run(story(), max_time=600)


def test_a_partition_that_comes_back_to_a_broker_is_not_created_beside_its_failed_directory() -> (
    None
):
    """Otherwise two folders have its name once the directory works again."""

    async def story() -> None:
        cluster = SimulatedCluster(brokers=4, config={**SETTINGS, "log.dirs": "/a,/b"})
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(TP.topic, assignments={0: [1, 2, 3]})
            scene = Scene(cluster)
            await scene.produce()
            cluster.disks[3].failing.add("/a")
            await scene.produce()
            async with asyncio.timeout(SECONDS_TO_HEAL):
                while 3 in state.partition_states(cluster)[TP].state.isr:
                    await asyncio.sleep(0.05)
            cluster.kill(3)
            cluster.start_broker(3)
            await cluster.serving()
            await admin.alter_partition_reassignments({TP: [1, 2, 4]})
            await _moved(admin)
            await admin.alter_partition_reassignments({TP: [1, 2, 3]})
            await asyncio.sleep(2)
            assert not cluster.disks[3].is_directory(f"/b/{TP}")
            cluster.kill(3)
            cluster.disks[3].repair()
            cluster.start_broker(3)
            await _moved(admin)
        cluster.kill(4)
        await scene.check()

    run(story(), max_time=600)


async def _moved(admin: Admin) -> None:
    async with asyncio.timeout(SECONDS_TO_HEAL):
        while await admin.list_partition_reassignments():
            await asyncio.sleep(0.05)
