"""A static member restarts, and its coordinator dies: who is fenced, and who is not."""

import asyncio

import pytest
from barnabas.errors import FencedInstanceIdError
from barnabas_broker.coordinator.group.membership.sync import Syncs
from barnabas_simulator.cluster import SimulatedCluster

from tests.simulation.test_groups_on_clusters import TOPIC, Workers, member, story
from tests.support.moving_groups import moved
from tests.support.raw_groups import Coordinators


def test_a_member_whose_new_id_died_with_its_coordinator_joins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the next coordinator it still had its old id: it was fenced forever, by nobody."""

    async def scenario(cluster: SimulatedCluster) -> None:
        coordinators = Coordinators(cluster)
        workers = Workers(cluster)
        workers.join("dynamic")
        workers.options["group_instance_id"] = "i"
        workers.join("static")
        await workers.until_shared(30)
        await workers.leave("static")
        del workers.options["group_instance_id"]
        workers.join("another")  # the rebalance waits for the static member
        while (await coordinators.describe("g")).group_state != "PreparingRebalance":
            await asyncio.sleep(0.1)
        with monkeypatch.context() as patched:
            patched.setattr(Syncs, "_write", lambda *_: None)
            workers.options["group_instance_id"] = "i"
            returned = workers.join("static")
            while returned._membership is None or returned._membership.member.generation.number < 0:
                await asyncio.sleep(0.01)
            await moved(cluster, coordinators, [])
        await workers.until_shared(60)
        await workers.end()

    story(scenario)


def test_a_member_that_another_process_has_replaced_is_fenced_after_a_move_too() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        static = {"group_instance_id": "i"}
        async with (
            member(cluster, "old", TOPIC, **static) as old,
            member(cluster, "new", TOPIC, **static) as new,
        ):
            while not old.assignment():
                await old.poll(timeout_ms=100)
            await moved(cluster, Coordinators(cluster), [])
            while not new.assignment():
                await new.poll(timeout_ms=100)
            with pytest.raises(FencedInstanceIdError):
                await old.poll(timeout_ms=30_000)

    story(scenario)
