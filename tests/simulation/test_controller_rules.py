"""Rules of the controller that no longer scenario covers; `docs/rules-controller.md` has all."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from barnabas import Admin
from barnabas_common.errors import RequestTimedOutError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import (
    AlterPartitionItem,
    AlterPartitionRequest,
    LeaderAndIsrRequest,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from barnabas_common.messages.control import ControlledShutdownRequest as ShutdownRequest
from barnabas_common.runtime import Address, Message, Peer, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.active_controller import ActiveController
from barnabas_controller.brokers.registration import register_broker
from barnabas_controller.channels.controller_channel_manager import ControllerChannelManager
from barnabas_controller.channels.request_batch import ControlRequest
from barnabas_controller.config import ControllerConfig
from barnabas_controller.controller_election import elect
from barnabas_controller.state.context import Replica
from barnabas_controller.state.states import PartitionState, ReplicaState
from barnabas_controller.store import znodes
from barnabas_controller.store.fenced_store import FencedStore
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import Broker, Endpoint, ReplicaAssignment, TopicZnode
from barnabas_controller.zookeeper.session import Operation
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.control_world import QUIET, ControlWorld, run_world

FLIGHTS = TopicPartition("flights", 0)
SECOND = TopicPartition("flights", 1)


def test_a_state_that_must_not_follow_is_left_out_and_the_others_go_on() -> None:
    async def test(world: ControlWorld) -> None:
        def never(_: ActiveController, name: str, __: Callable[[], Awaitable[None]]) -> None:
            raise AssertionError(name)

        term = FencedStore(world.store, await elect(world.store, 1, 0))
        active = ActiveController(
            1, world.runtime("x"), lambda: QUIET, term, world.store.events, never
        )
        context = active.term.context
        context.set_topic("flights", TopicZnode("id", {0: ReplicaAssignment((1,))}))
        context.partition_states[SECOND] = PartitionState.OFFLINE
        active.partitions.change([FLIGHTS, SECOND], PartitionState.NON_EXISTENT)
        active.partitions.change([FLIGHTS, SECOND], PartitionState.OFFLINE)
        assert context.partition_states == {}
        active.partitions.change([FLIGHTS], PartitionState.NEW)
        assert context.partition_states == {FLIGHTS: PartitionState.NEW}
        replicas = [Replica(FLIGHTS, 1), Replica(SECOND, 1)]
        context.replica_states[replicas[1]] = ReplicaState.OFFLINE
        await active.replicas.change(replicas, ReplicaState.DELETION_STARTED)
        assert context.replica_states == {replicas[1]: ReplicaState.DELETION_STARTED}

    run_world(test)


class SlowBroker:
    """Takes a while for each request, and notes whether two overlap."""

    def __init__(self) -> None:
        self.orders: list[int] = []
        self.at_once = 0
        self._busy = 0

    async def handle(self, request: Any, _: Peer) -> Message:
        self._busy += 1
        self.at_once = max(self.at_once, self._busy)
        await asyncio.sleep(0.05)
        self._busy -= 1
        self.orders.append(request.controller_epoch)
        return UpdateMetadataResponse()


def test_orders_reach_a_broker_one_by_one_in_order_and_again_until_it_answers() -> None:
    async def test(world: ControlWorld) -> None:
        slow, answered = SlowBroker(), list[int]()
        node = world.network.node("slow")
        address = Address("slow", 1)

        def on_response(_: int, request: ControlRequest, __: Message) -> None:
            answered.append(request.controller_epoch)

        channels = ControllerChannelManager(
            world.runtime("controller"),
            ControllerConfig(suspects_on_evidence=False),
            on_response,
            lambda _, why: None,
        )
        channels.add(Broker(1, (Endpoint("PLAINTEXT", *address),)))
        for number in range(1, 6):
            channels.send(1, UpdateMetadataRequest(9, number, 1))
        await asyncio.sleep(0.45)  # no listener is open yet
        listener = await node.listen("PLAINTEXT", address, {Service.CONTROL: slow.handle})
        await world.until(lambda: answered == [1, 2, 3, 4, 5])
        assert slow.orders == [1, 2, 3, 4, 5]
        assert slow.at_once == 1
        await listener.close(0)
        channels.send(1, UpdateMetadataRequest(9, 6, 1))
        await channels.remove(1)  # its registration is gone: its pending requests are dropped
        await node.listen("PLAINTEXT", address, {Service.CONTROL: slow.handle})
        await world.settle()
        assert slow.orders == [1, 2, 3, 4, 5]
        await channels.close()

    run_world(test)


def test_a_broker_that_moved_is_told_its_roles_where_it_is_now() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        moved, orders = world.brokers[1], list[Message]()
        await world.until(lambda: "UpdateMetadata" in moved.kinds())

        async def handle(request: Any, peer: Peer) -> Message:
            orders.append(request)
            answer: Message = await moved.handle(request, peer)
            return answer

        address = Address("elsewhere", 1)
        await world.network.node(moved.node).listen("PLAINTEXT", address, {Service.CONTROL: handle})
        data = znodes.encode_broker(Broker(1, (Endpoint("PLAINTEXT", *address),)), 0)
        await world.store.put(znodes.broker_path(1), data)
        await world.settle()
        await world.create_topic_unseen("flights", {0: [1]})
        await world.until(lambda: any(isinstance(o, LeaderAndIsrRequest) for o in orders))

    run_world(test)


def test_what_could_not_be_sent_to_a_wrong_address_is_sent_when_it_is_corrected() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1)
        broker, path = world.brokers[1], znodes.broker_path(1)
        await world.until(lambda: "UpdateMetadata" in broker.kinds())
        right = await world.store.get(path)
        assert right is not None
        wrong = Broker(1, (Endpoint("PLAINTEXT", "nowhere", 1),))
        await world.store.put(path, znodes.encode_broker(wrong, 0))
        await world.settle()
        await world.create_topic_unseen("flights", {0: [1], 1: [1]})
        await world.settle()
        assert "LeaderAndIsr" not in broker.kinds()
        await world.store.put(path, right[0])
        await world.until(lambda: broker.role(TopicPartition("flights", 1)) is not None)
        assert broker.metadata(TopicPartition("flights", 1)) is not None

    run_world(test)


def test_a_broker_that_cannot_hand_all_over_tries_three_times_and_stops_all_the_same() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=1)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("flights", assignments={0: [3, 2]})
            cluster.kill(2)
            await asyncio.sleep(5)
            began = cluster.clock.monotonic()
            await cluster.stop_broker(3)
            assert 10 <= cluster.clock.monotonic() - began < 12, "two pauses of 5 s"

    run(story(), seed=1)


def test_the_one_that_creates_a_topic_is_answered_when_it_has_leaders_or_in_time() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=1)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            cluster.kill(3)
            await asyncio.sleep(2)  # suspected, and still registered
            with pytest.raises(RequestTimedOutError, match="not every partition has a leader"):
                await admin.create_topic("flights", assignments={0: [3]}, timeout_ms=1000)
            creating = asyncio.create_task(admin.create_topic("trains", assignments={0: [3]}))
            await asyncio.sleep(1)
            assert not creating.done()
            cluster.start_broker(3)
            await creating

    run(story(), seed=1)


def test_a_topic_being_deleted_does_not_grow() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [2, 3]})
        before = await world.store.topic("flights")
        await world.kill_and_expire(3)  # so that the deletion has to wait
        await world.store.ensure(znodes.delete_topic_path("flights"))
        await world.until(lambda: FLIGHTS in world.brokers[2].stops(delete=True))
        grown = b'{"version":3,"topic_id":"id-of-flights","partitions":{"0":[2,3],"1":[2]}}'
        await world.store.put(znodes.topic_path("flights"), grown)

        async def as_before() -> bool | None:
            return await world.store.topic("flights") == before or None

        await world.until_some(as_before)
        await world.settle()
        assert await world.state(SECOND) is None

    run_world(test)


def test_a_deletion_waits_for_a_broker_that_cannot_and_goes_on_when_it_can() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [2, 3]})
        world.brokers[3].failing[FLIGHTS] = ErrorCode.KAFKA_STORAGE_ERROR
        await world.store.ensure(znodes.delete_topic_path("flights"))
        waits = EventKind.TOPIC_DELETION_WAITS

        def causes() -> list[str]:
            return [e.cause for e in world.brokers[1].events.since(0) if e.kind is waits]

        await world.until(lambda: causes() == ["broker 3 could not delete its replicas"])
        await world.settle()
        assert await world.store.exists(znodes.topic_path("flights")) is not None
        await world.kill_and_expire(3)
        await world.start_broker(3)

        async def gone() -> bool | None:
            return await world.store.exists(znodes.delete_topic_path("flights")) is None or None

        await world.until_some(gone)
        assert world.controller() is world.brokers[1]

    run_world(test)


def test_a_new_controller_removes_the_wishes_to_delete_where_deletion_is_disabled() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1)
        await world.create_topic("flights", {0: [1]})
        await world.kill_and_expire(1)
        await world.store.ensure(znodes.delete_topic_path("flights"))
        await world.start_broker(2)

        async def gone() -> bool | None:
            path = znodes.delete_topic_path("flights")
            return await world.store.exists(path) is None or None

        await world.until_some(gone)
        assert await world.store.exists(znodes.topic_path("flights")) is not None

    run_world(test, dataclasses.replace(QUIET, delete_topic_enable=False))


def test_a_broker_without_replicas_is_told_of_when_it_dies() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2]})
        await world.kill_and_expire(3)
        await world.until(lambda: world.brokers[2].live_brokers() == {1, 2})

    run_world(test)


def test_a_follower_outside_the_isr_that_dies_changes_no_state() -> None:
    """LeaderAndIsr with a known epoch would be ignored, but all brokers must know it is offline."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2, 3)
        await world.create_topic("flights", {0: [1, 2, 3]})
        item = AlterPartitionItem(*FLIGHTS, 0, 0, [1, 2])
        request = AlterPartitionRequest(1, world.brokers[1].epoch, [item])
        await world.brokers[9].controller.handle(request)
        before = await world.state(FLIGHTS)
        orders = world.brokers[2].kinds().count("LeaderAndIsr")
        await world.kill_and_expire(3)
        await world.until(lambda: world.brokers[2].metadata(FLIGHTS).offline_replicas == [3])  # type: ignore[union-attr]
        await world.settle()
        assert await world.state(FLIGHTS) == before
        assert world.brokers[2].kinds().count("LeaderAndIsr") == orders

    run_world(test)


def test_a_new_controller_takes_a_dead_follower_out_of_the_isr() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2, 3)
        await world.create_topic("flights", {0: [1, 2, 3]})
        await world.kill_and_expire(9, 3)
        state = await world.until_state(FLIGHTS, lambda s: s.isr == (1, 2))
        assert (state.leader, state.leader_epoch, state.controller_epoch) == (1, 1, 2)

    run_world(test)


def test_a_broker_that_asked_to_stop_counts_again_when_it_is_back() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        controller = world.brokers[9].controller
        await controller.handle(ShutdownRequest(1, world.brokers[1].epoch))
        state = await world.until_state(FLIGHTS, lambda s: s.isr == (2,))

        async def let_in() -> int:
            item = AlterPartitionItem(
                "flights", 0, state.leader_epoch, state.partition_epoch, [2, 1]
            )
            request = AlterPartitionRequest(2, world.brokers[2].epoch, [item])
            return (await controller.handle(request)).partitions[0].error_code

        assert await let_in() == ErrorCode.INELIGIBLE_REPLICA
        await world.kill_and_expire(1)
        await world.start_broker(1)
        await world.until(lambda: world.brokers[1].role(FLIGHTS) is not None)
        assert await let_in() == ErrorCode.NONE

    run_world(test)


def test_the_first_rebalance_comes_five_seconds_after_a_failover() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [2, 3]})
        state = await world.state(FLIGHTS)
        assert state is not None
        drifted = dataclasses.replace(state, leader=3, leader_epoch=1)
        await world.kill_and_expire(1)
        await world.store.put(znodes.state_path(FLIGHTS), znodes.encode_state(drifted))
        await world.until(lambda: world.controller() is not None)
        since = world.clock.monotonic()
        await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert 4.5 < world.clock.monotonic() - since < 5.5

    run_world(test, dataclasses.replace(QUIET, auto_leader_rebalance_enable=True))


def test_followers_are_told_of_an_election_by_metadata_wherever_they_are() -> None:
    """LeaderAndIsr of a new partition goes to its ISR only, UpdateMetadata to every broker."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [4, 2]})
        for broker in world.brokers.values():
            await world.until(lambda b=broker: b.metadata(FLIGHTS) is not None)  # type: ignore[misc]
        ordered = [
            broker_id
            for broker_id, broker in world.brokers.items()
            if any(isinstance(request, LeaderAndIsrRequest) for request in broker.told)
        ]
        assert ordered == [2]

    run_world(test)


class Vanishing:
    """A session whose registration is refused because of a znode that is gone at the next read."""

    def __init__(self, session: Any, world: ControlWorld, path: str) -> None:
        self._session, self._world, self._path = session, world, path
        self.attempts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def multi(self, operations: Sequence[Operation]) -> Any:
        self.attempts += 1
        results = await self._session.multi(operations)
        if self.attempts == 1:
            await self._world.store.remove(self._path)
        return results


def test_a_registration_that_vanishes_while_it_is_looked_at_is_replaced() -> None:
    async def test(world: ControlWorld) -> None:
        path = znodes.broker_path(1)
        await world.store.ensure(path)
        session = await world.zookeeper.client("x").connect(6000, 1000)
        vanishing = Vanishing(session, world, path)
        broker = Broker(1, (Endpoint("PLAINTEXT", "h1", 9092),))
        epoch = await register_broker(Store(vanishing), broker, 0)
        assert vanishing.attempts == 2
        assert await world.store.broker(1) == broker.registered(epoch)

    run_world(test)
