"""Lost answers: a write that was applied counts as done, and one that was not is repeated."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from barnabas_common.errors import TopicAlreadyExistsError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import AlterPartitionItem, AlterPartitionRequest
from barnabas_common.messages.topics import NewTopic
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.brokers.registration import ensure_cluster_id, register_broker
from barnabas_controller.controller_election import elect
from barnabas_controller.errors import DuplicateBrokerId, EndpointTaken
from barnabas_controller.store import znodes
from barnabas_controller.store.fenced_store import FencedStore
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import Broker, Endpoint
from barnabas_controller.topics.admin_zk_client import AdminZkClient, TopicDefaults
from barnabas_controller.zookeeper.session import BadVersion, NodeExists, Operation, Session

from tests.support.control_world import ControlWorld, run_world

FLIGHTS = TopicPartition("flights", 0)
FIRST = LeaderAndIsr(1, 0, (1, 2), 1)
LOSSES = ["lose_next_reply", "lose_next_request"]


async def session_of(world: ControlWorld, name: str = "x") -> Session:
    return await world.zookeeper.client(name).connect(6000, 1000)


async def a_term(world: ControlWorld) -> tuple[FencedStore, Session]:
    session = await session_of(world)
    store = Store(session)
    await store.ensure(znodes.topic_path("flights"), b'{"partitions":{"0":[1,2]}}')
    return FencedStore(store, await elect(store, 1, 0)), session


@pytest.mark.parametrize("loss", LOSSES)
def test_a_state_update_is_made_once_whatever_is_lost(loss: str) -> None:
    async def test(world: ControlWorld) -> None:
        term, session = await a_term(world)
        assert (await term.create_states({FLIGHTS: FIRST}))[FLIGHTS] == FIRST
        getattr(world.zookeeper, loss)(session, znodes.CONTROLLER_EPOCH)
        results = await term.update_states({FLIGHTS: FIRST.with_leader(2, (2,))})
        assert results[FLIGHTS] == LeaderAndIsr(2, 1, (2,), 1, partition_epoch=1)
        assert await world.state(FLIGHTS) == results[FLIGHTS]

    run_world(test)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_state_is_created_once_whatever_is_lost(loss: str) -> None:
    async def test(world: ControlWorld) -> None:
        term, session = await a_term(world)
        losing = Losing(session, world, loss, znodes.state_path(FLIGHTS))
        term = FencedStore(Store(losing), term.epoch)
        assert await term.create_states({FLIGHTS: FIRST}) == {FLIGHTS: FIRST}
        assert losing.has_lost

    run_world(test)


class Losing:
    """A session that loses the first write of one znode, or its answer."""

    def __init__(self, session: Any, world: ControlWorld, loss: str, path: str) -> None:
        self._session, self._world = session, world
        self._loss, self._path = loss, path
        self.has_lost = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def multi(self, operations: Sequence[Operation]) -> Any:
        if operations[-1].path == self._path and not self.has_lost:
            self.has_lost = True
            getattr(self._world.zookeeper, self._loss)(self._session, operations[0].path)
        return await self._session.multi(operations)


def test_what_is_gone_already_counts_as_deleted() -> None:
    async def test(world: ControlWorld) -> None:
        term, _ = await a_term(world)
        await term.delete_topic("never-created")
        await term.delete_controller()
        await term.delete_controller()

    run_world(test)


def test_a_change_by_another_is_not_taken_for_ones_own() -> None:
    async def test(world: ControlWorld) -> None:
        term, _ = await a_term(world)
        await term.create_states({FLIGHTS: FIRST})
        other = znodes.encode_state(FIRST.with_leader(2, (2,)))
        await world.store.put(znodes.state_path(FLIGHTS), other)
        results = await term.update_states({FLIGHTS: FIRST.with_leader(1, (1,))})
        assert isinstance(results[FLIGHTS], BadVersion)
        again = await term.create_states({FLIGHTS: FIRST})
        assert isinstance(again[FLIGHTS], NodeExists)

    run_world(test)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_registration_is_made_once_whatever_is_lost(loss: str) -> None:
    async def test(world: ControlWorld) -> None:
        session = await session_of(world)
        getattr(world.zookeeper, loss)(session, znodes.broker_path(1))
        broker = Broker(1, (Endpoint("PLAINTEXT", "h1", 9092),))
        epoch = await register_broker(Store(session), broker, 0)
        assert await world.store.broker(1) == broker.registered(epoch)

    run_world(test)


def test_an_id_of_another_living_session_is_refused_or_waited_for() -> None:
    async def test(world: ControlWorld) -> None:
        first = await session_of(world, "first")
        broker = Broker(1, (Endpoint("PLAINTEXT", "h1", 9092),))
        await register_broker(Store(first), broker, 0)
        second = Store(await session_of(world, "second"))
        with pytest.raises(DuplicateBrokerId, match="id 1"):
            await register_broker(second, broker, 0)
        before = world.clock.monotonic()
        with pytest.raises(DuplicateBrokerId):
            await register_broker(second, broker, 0, wait_seconds=9)
        assert 9 <= world.clock.monotonic() - before < 9.1
        world.zookeeper.client("first").crash()
        epoch = await register_broker(second, broker, 0, wait_seconds=9)
        assert (await world.store.brokers())[1].epoch == epoch

    run_world(test)


def test_the_znode_of_ones_own_earlier_session_is_replaced() -> None:
    async def test(world: ControlWorld) -> None:
        first = await session_of(world, "first")
        broker = Broker(1, (Endpoint("PLAINTEXT", "h1", 9092),))
        epoch = await register_broker(Store(first), broker, 0)
        second = Store(await session_of(world, "second"))
        newer = await register_broker(second, broker, 0, previous_session_id=first.session_id)
        assert newer > epoch

    run_world(test)


def test_an_address_another_broker_advertises_is_refused() -> None:
    async def test(world: ControlWorld) -> None:
        store = Store(await session_of(world))
        await register_broker(store, Broker(1, (Endpoint("PLAINTEXT", "h1", 9092),)), 0)
        other = Broker(2, (Endpoint("PLAINTEXT", "h2", 9092), Endpoint("REPL", "h1", 9092)))
        with pytest.raises(EndpointTaken, match="h1:9092"):
            await register_broker(store, other, 0)
        assert await world.store.broker_ids() == [1]

    run_world(test)


def test_the_cluster_id_is_drawn_once() -> None:
    async def test(world: ControlWorld) -> None:
        first = await ensure_cluster_id(world.store, world.random)
        assert len(first) == 22
        assert await ensure_cluster_id(Store(await session_of(world)), world.random) == first

    run_world(test)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_topic_is_created_once_whatever_is_lost(loss: str) -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        session = await session_of(world)
        admin = AdminZkClient(Store(session), world.random)
        getattr(world.zookeeper, loss)(session, znodes.topic_path("flights"))
        new = NewTopic("flights", 2, 2)
        created = await admin.create_topic(new, TopicDefaults(), lambda configs: None)
        state = await world.until_state(FLIGHTS, lambda s: True)
        assert set(state.isr) == set(created.partitions[0]) == {1, 2}
        with pytest.raises(TopicAlreadyExistsError):
            await admin.create_topic(new, TopicDefaults(), lambda configs: None)

    run_world(test)


@pytest.mark.parametrize("loss", LOSSES)
def test_an_isr_change_is_made_once_whatever_is_lost(loss: str) -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        controller = world.brokers[9]
        getattr(world.zookeeper, loss)(controller.session, znodes.CONTROLLER_EPOCH)
        item = AlterPartitionItem("flights", 0, 0, 0, [1])
        request = AlterPartitionRequest(1, world.brokers[1].epoch, [item])
        response = await controller.controller.handle(request)
        assert response.error_code == ErrorCode.NONE
        altered = response.partitions[0]
        assert (altered.error_code, altered.in_sync_replicas) == (ErrorCode.NONE, [1])
        assert (altered.leader_epoch, altered.partition_epoch) == (0, 1)
        again = await controller.controller.handle(request)
        assert again == response, "the leader may not have heard the first answer"
        await world.until(lambda: world.brokers[2].metadata(FLIGHTS).partition_epoch == 1)  # type: ignore[union-attr]

    run_world(test)


def test_an_isr_change_is_refused_to_strangers_and_on_top_of_unknown_states() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        controller, epoch = world.brokers[9].controller, world.brokers[1].epoch
        item = AlterPartitionItem("flights", 0, 0, 0, [1])
        for stranger in (
            AlterPartitionRequest(7, 1, [item]),
            AlterPartitionRequest(1, epoch - 1, [item]),
        ):
            response = await controller.handle(stranger)
            assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
        inactive = await world.brokers[2].controller.handle(AlterPartitionRequest(1, epoch, [item]))
        assert inactive.error_code == ErrorCode.NOT_CONTROLLER
        unknown = AlterPartitionItem("unknown", 0, 0, 0, [1])
        response = await controller.handle(AlterPartitionRequest(1, epoch, [unknown, item]))
        assert [p.error_code for p in response.partitions] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NONE,
        ]
        # The state was changed by hand: the controller's write expects an old version.
        state = await world.state(FLIGHTS)
        assert state is not None
        await world.store.put(znodes.state_path(FLIGHTS), znodes.encode_state(state))
        stale = AlterPartitionItem("flights", 0, 0, 1, [1, 2])
        response = await controller.handle(AlterPartitionRequest(1, epoch, [stale]))
        assert response.partitions[0].error_code == ErrorCode.INVALID_UPDATE_VERSION
        # The controller has read it again, and tells the leader under the next leader epoch.
        role = world.brokers[1].role
        await world.until(lambda: (told := role(FLIGHTS)) is not None and told.leader_epoch == 1)
        again = dataclasses.replace(stale, leader_epoch=1, partition_epoch=3)
        response = await controller.handle(AlterPartitionRequest(1, epoch, [again]))
        assert response.partitions[0].error_code == ErrorCode.NONE

    run_world(test)
