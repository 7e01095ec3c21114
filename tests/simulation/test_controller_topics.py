"""Topics appear, grow and are deleted, as ZooKeeper's znodes say."""

import dataclasses
import json

import pytest
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.znodes import ReplicaAssignment, TopicZnode

from tests.support.control_world import QUIET, ControlWorld, run_world

FLIGHTS = TopicPartition("flights", 0)
NO_DELETION = dataclasses.replace(QUIET, delete_topic_enable=False)


async def ask_to_delete(world: ControlWorld, topic: str) -> None:
    await world.store.ensure(znodes.delete_topic_path(topic))


async def until_gone(world: ControlWorld, path: str) -> None:
    async def gone() -> bool | None:
        return await world.store.exists(path) is None or None

    await world.until_some(gone)


def test_a_topic_written_by_hand_comes_alive_and_gets_an_id() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        data = b'{"version":1,"partitions":{"0":[2,1],"1":[3,2]}}'
        await world.store.ensure(znodes.topic_path("flights"), data)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert (state.isr, state.leader_epoch, state.controller_epoch) == ((2, 1), 0, 1)
        assert state.partition_epoch == 0
        node = await world.store.topic("flights")
        assert node is not None and node.topic_id is not None and len(node.topic_id) == 22
        found = await world.store.get(znodes.topic_path("flights"))
        assert found is not None and json.loads(found[0])["version"] == 3
        for broker_id in (1, 2):
            broker = world.brokers[broker_id]
            await world.until(lambda b=broker: b.role(FLIGHTS) is not None)  # type: ignore[misc]
            role = broker.role(FLIGHTS)
            assert role is not None and role.is_new
            assert (role.leader, role.replicas) == (2, [2, 1])
            assert role.topic_id == node.topic_id
        assert world.brokers[3].role(FLIGHTS) is None
        await world.until(lambda: world.brokers[3].metadata(FLIGHTS) is not None)

    run_world(test)


def test_a_topic_created_while_a_replica_is_down_starts_without_it() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [3, 1, 2]})
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 1)
        assert state.isr == (1, 2)
        await world.start_broker(3)
        await world.until(lambda: world.brokers[3].role(FLIGHTS) is not None)

    run_world(test)


def test_a_topic_without_any_live_replica_waits_for_one() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1)
        await world.create_topic_unseen("flights", {0: [2, 3]})
        await world.settle()
        assert await world.state(FLIGHTS) is None
        await world.start_broker(3)
        state = await world.until_state(FLIGHTS, lambda s: True)
        assert (state.leader, state.isr) == (3, (3,))

    run_world(test)


def test_partitions_added_to_the_znode_come_alive_and_the_others_stay() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        before = await world.state(FLIGHTS)
        data = b'{"version":1,"partitions":{"0":[2,1],"1":[2,1]}}'  # and without its id
        await world.store.put(znodes.topic_path("flights"), data)
        await world.until_state(TopicPartition("flights", 1), lambda s: s.leader == 2)
        assert await world.state(FLIGHTS) == before
        node = await world.store.topic("flights")
        assert node is not None and node.topic_id == "id-of-flights"

    run_world(test)


def test_a_malformed_topic_is_ignored_until_it_is_mended() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        path = znodes.topic_path("flights")
        await world.store.ensure(path, b'{"partitions": oops')
        await world.store.ensure(znodes.topic_path("not a legal name"), b'{"partitions":{"0":[1]}}')
        await world.create_topic("other", {0: [1, 2]})
        await world.store.put(path, b'{"partitions":{"0":[1,2]}}')
        await world.until_state(FLIGHTS, lambda s: s.leader == 1)
        illegal = await world.store.children(znodes.topic_path("not a legal name"))
        assert illegal == []

    run_world(test)


def test_a_malformed_state_is_never_overwritten() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        await world.create_topic("other", {0: [1, 2]})
        await world.store.put(znodes.state_path(FLIGHTS), b"rubbish")
        await world.kill_and_expire(1)
        await world.until_state(TopicPartition("other", 0), lambda s: s.leader == 2)
        await world.settle()
        found = await world.store.get(znodes.state_path(FLIGHTS))
        assert found is not None and found[0] == b"rubbish"

    run_world(test)


def test_a_deleted_topic_leaves_nothing_behind() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.store.put(znodes.topic_config_path("flights"), znodes.encode_config({}))
        await world.create_topic("flights", {0: [1, 2], 1: [2, 3]})
        await ask_to_delete(world, "flights")
        await until_gone(world, znodes.delete_topic_path("flights"))
        assert await world.store.exists(znodes.topic_path("flights")) is None
        assert await world.store.exists(znodes.topic_config_path("flights")) is None
        second = TopicPartition("flights", 1)
        assert world.brokers[1].stops(delete=True) == [FLIGHTS]
        assert world.brokers[2].stops(delete=True) == [FLIGHTS, second]
        assert world.brokers[3].stops(delete=True) == [second]
        for broker in world.brokers.values():
            metadata = broker.metadata(FLIGHTS)
            assert metadata is not None and metadata.leader == -2

    run_world(test)


def test_the_wish_to_delete_goes_last() -> None:
    """A controller that dies earlier leaves the request for the next one."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        await world.store.put(znodes.topic_config_path("flights"), b"")
        await ask_to_delete(world, "flights")
        gone: list[str] = []
        for path in (
            znodes.delete_topic_path("flights"),
            znodes.topic_config_path("flights"),
            znodes.topic_path("flights"),
        ):
            await world.store.exists(path, lambda event: gone.append(event.path))
        await until_gone(world, znodes.delete_topic_path("flights"))
        await world.settle()
        assert gone == [
            znodes.topic_config_path("flights"),
            znodes.topic_path("flights"),
            znodes.delete_topic_path("flights"),
        ]

    run_world(test)


def test_a_topic_may_be_created_again_after_its_deletion() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        await ask_to_delete(world, "flights")
        await until_gone(world, znodes.delete_topic_path("flights"))
        await world.create_topic("flights", {0: [2, 1]})
        state = await world.state(FLIGHTS)
        assert state is not None and (state.leader, state.leader_epoch) == (2, 0)

    run_world(test)


def test_a_deletion_waits_for_the_broker_that_is_down() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [2, 3]})
        await world.kill_and_expire(3)
        await world.until_state(FLIGHTS, lambda s: s.isr == (2,))
        await ask_to_delete(world, "flights")
        await world.until(lambda: world.brokers[2].stops(delete=True) == [FLIGHTS])
        await world.settle()
        assert await world.store.exists(znodes.topic_path("flights")) is not None
        await world.start_broker(3)
        await until_gone(world, znodes.topic_path("flights"))
        assert world.brokers[3].stops(delete=True) == [FLIGHTS]
        assert world.brokers[3].role(FLIGHTS) is None, "it is not started only to be deleted"

    run_world(test)


def test_a_deletion_outlives_the_controller_and_a_broker_that_cannot() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [2, 3]})
        world.brokers[3].failing[FLIGHTS] = ErrorCode.KAFKA_STORAGE_ERROR
        await ask_to_delete(world, "flights")
        await world.until(lambda: FLIGHTS in world.brokers[3].stops(delete=True))
        await world.settle()
        assert await world.store.exists(znodes.delete_topic_path("flights")) is not None
        world.brokers[3].failing.clear()
        await world.kill_and_expire(1)
        await until_gone(world, znodes.topic_path("flights"))
        await until_gone(world, znodes.delete_topic_path("flights"))

    run_world(test)


@pytest.mark.parametrize("evidence", [True, False], ids=["evidence", "session"])
def test_a_broker_that_dies_while_it_deletes_is_waited_for(evidence: bool) -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [2, 3]})
        world.kill(3)  # dead, but its session is open: it gets the request and does not answer
        await ask_to_delete(world, "flights")
        await world.settle(seconds=10)
        assert await world.store.exists(znodes.topic_path("flights")) is not None
        await world.start_broker(3)
        await until_gone(world, znodes.topic_path("flights"))

    run_world(test, dataclasses.replace(QUIET, suspects_on_evidence=evidence))


def test_with_deletion_disabled_the_wish_is_removed_and_the_topic_stays() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        await ask_to_delete(world, "flights")
        await until_gone(world, znodes.delete_topic_path("flights"))
        await world.settle()
        assert await world.store.exists(znodes.topic_path("flights")) is not None
        assert world.brokers[1].stops(delete=True) == []
        told = [e for broker in world.brokers.values() for e in broker.events.since(0)]
        (refused,) = [e for e in told if e.kind is EventKind.TOPIC_DELETION_REFUSED]
        assert refused.details == {"topic": "flights"}

    run_world(test, NO_DELETION)


def test_the_wish_to_delete_an_unknown_topic_is_removed() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1)
        await world.settle()  # a failover deletes such a request too
        await ask_to_delete(world, "no-such-topic")
        await until_gone(world, znodes.delete_topic_path("no-such-topic"))

    run_world(test)


@pytest.mark.lengthy
def test_a_thousand_partitions_come_alive_and_change_leaders() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        partitions = {p: ReplicaAssignment((1, 2)) for p in range(1000)}
        data = znodes.encode_topic(TopicZnode("x", partitions))
        await world.store.ensure(znodes.topic_path("flights"), data)
        await world.until_state(TopicPartition("flights", 999), lambda s: s.leader == 1)
        before = world.clock.monotonic()
        await world.kill_and_expire(1)
        await world.until_state(TopicPartition("flights", 999), lambda s: s.leader == 2)
        assert world.clock.monotonic() - before < 1, "in chunks, not one after the other"

    run_world(test)
