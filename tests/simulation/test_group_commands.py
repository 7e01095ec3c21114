"""What the commands show of a group whose partitions have gone, or have no leader."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from barnabas import Admin
from barnabas_broker.api import router
from barnabas_broker.api.parts import BrokerParts
from barnabas_common.errors import GroupIdNotFoundError, UnknownTopicOrPartitionError
from barnabas_common.messages.groups import DeleteGroupsRequest, OffsetDeleteRequest
from barnabas_common.runtime import Peer, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run
from barnabas_tools.cli.admin.group import _describe, _reset
from barnabas_tools.cli.admin.reset_offsets import Target
from barnabas_tools.cli.observe.group_look import Watched, look_at

TOPIC = "orders"
FIRST, SECOND = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
Scenario = Callable[[SimulatedCluster, Admin], Awaitable[None]]


def story(scenario: Scenario) -> None:
    async def tell() -> None:
        cluster = SimulatedCluster(seed=3)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await scenario(cluster, admin)

    run(tell(), seed=3, max_time=1800.0)


@pytest.mark.parametrize("storage", ["kafka", "zookeeper"])
def test_a_partition_that_has_gone_does_not_hide_the_others(storage: str) -> None:
    """ZooKeeper keeps the offsets of a topic that was deleted, and created again with fewer."""

    async def scenario(cluster: SimulatedCluster, admin: Admin) -> None:
        await admin.create_topic(TOPIC, 2, 3)
        await admin.alter_group_offsets("g", {FIRST: 0, SECOND: 0}, storage)
        await admin.delete_topics([TOPIC])
        await admin.create_topic(TOPIC, 1, 3)
        if storage == "kafka":
            await admin.alter_group_offsets("g", {FIRST: 0}, storage)
        _, rows = await _describe(admin, "g", storage)
        ends = {(row["partition"], row["log_end_offset"]) for row in rows}
        assert ends == ({(0, 0)} if storage == "kafka" else {(0, 0), (1, None)})
        everything = await _reset(admin, "g", [], Target(earliest=True), True, storage)
        assert [row["partition"] for row in everything] == [0]

    story(scenario)


def test_a_partition_without_a_leader_does_not_hide_the_others() -> None:
    async def scenario(cluster: SimulatedCluster, admin: Admin) -> None:
        await admin.create_topic(TOPIC, assignments={0: [1], 1: [3]})
        await admin.alter_group_offsets("g", {FIRST: 0, SECOND: 0})
        cluster.kill(3)
        while (await admin.describe_topic(TOPIC)).partitions[1].leader_id >= 0:
            await asyncio.sleep(1.0)
        _, rows = await _describe(admin, "g", "kafka")
        look = await look_at(admin, Watched("g"))
        assert {(row["partition"], row["log_end_offset"]) for row in rows} == {(0, 0), (1, None)}
        assert [partition.end for partition in look.partitions] == [0, None]

    story(scenario)


REMOVALS: dict[type, Callable[[Admin], Awaitable[None]]] = {
    DeleteGroupsRequest: lambda admin: admin.delete_groups(["g"]),
    OffsetDeleteRequest: lambda admin: admin.delete_group_offsets("g", [FIRST]),
}


@pytest.mark.parametrize("kind", REMOVALS)
def test_a_removal_whose_answer_was_lost_has_succeeded(
    kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is sent again, and the group is not there any more."""
    table = router.HANDLERS[Service.COORDINATOR]
    handle: Any = table[kind]
    asked = []

    async def lose_the_first_answer(parts: BrokerParts, request: Any, peer: Peer) -> Any:
        asked.append(request)
        answer = await handle(parts, request, peer)
        if len(asked) == 1:
            await asyncio.Event().wait()
        return answer

    monkeypatch.setitem(table, kind, lose_the_first_answer)

    async def scenario(cluster: SimulatedCluster, admin: Admin) -> None:
        await admin.create_topic(TOPIC, 2, 3)
        await admin.alter_group_offsets("g", {FIRST: 0})
        await REMOVALS[kind](admin)
        assert len(asked) == 2
        assert not await admin.list_groups()
        with pytest.raises(GroupIdNotFoundError):
            await REMOVALS[kind](admin)

    story(scenario)


def test_listings_wait_for_no_broker_that_has_died() -> None:
    """It is still registered when the listing begins."""

    async def scenario(cluster: SimulatedCluster, admin: Admin) -> None:
        await admin.create_topic(TOPIC, 2, 3)
        for number in range(6):
            await admin.alter_group_offsets(f"g{number}", {FIRST: 0})
        expected = [f"g{number}" for number in range(6)]
        assert [group.group_id for group in await admin.list_groups()] == expected
        cluster.kill(3)
        groups, transactions = await asyncio.gather(admin.list_groups(), admin.list_transactions())
        assert [group.group_id for group in groups] == expected
        assert transactions == []

    story(scenario)


@pytest.mark.parametrize("gone", [("nope", 0), (TOPIC, 7)])
def test_an_offset_of_a_partition_that_does_not_exist_is_refused(gone: tuple[str, int]) -> None:
    """The request was repeated for a minute."""

    async def scenario(cluster: SimulatedCluster, admin: Admin) -> None:
        await admin.create_topic(TOPIC, 2, 3)
        began = asyncio.get_running_loop().time()
        with pytest.raises(UnknownTopicOrPartitionError, match=f"{gone[0]}-{gone[1]}"):
            await admin.alter_group_offsets("g", {TopicPartition(*gone): 0, FIRST: 0})
        assert asyncio.get_running_loop().time() - began < 5.0
        assert [*await admin.list_group_offsets("g")] == [FIRST]

    story(scenario)
