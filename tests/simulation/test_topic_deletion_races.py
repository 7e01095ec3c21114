"""Deletions that meet other changes of the same topic: nothing of another topic is deleted."""

import asyncio

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import (
    HeldRole,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
)
from barnabas_common.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignPartition,
)
from barnabas_common.runtime import Peer
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.brokers.registration import reregister
from barnabas_controller.store import znodes
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import ReplicaAssignment, TopicZnode

from tests.support.control_world import ControlWorld, RecordingBroker, run_world

FLIGHTS = TopicPartition("flights", 0)
TOPIC, REQUEST = znodes.topic_path("flights"), znodes.delete_topic_path("flights")
SETTINGS = znodes.topic_config_path("flights")


async def until_gone(world: ControlWorld, path: str) -> None:
    async def gone() -> bool | None:
        return await world.store.exists(path) is None or None

    await world.until_some(gone)


async def remove_by_hand(world: ControlWorld, path: str) -> None:
    for name in await world.store.session.children(path):
        await remove_by_hand(world, f"{path}/{name}")
    await world.store.remove(path)


async def reassign(world: ControlWorld, target: list[int] | None) -> ErrorCode:
    """Request a reassignment, or its cancel; returns the partition's error code."""
    controller = world.controller()
    assert controller is not None
    item = ReassignPartition(*FLIGHTS, target or [], not target)
    response = await controller.controller.handle(AlterPartitionReassignmentsRequest([item]))
    return ErrorCode(response.partitions[0].error_code)


def test_a_topic_that_is_created_as_soon_as_the_name_is_free_keeps_its_settings() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.store.put(SETTINGS, znodes.encode_config({"retention.ms": "1"}))
        await world.create_topic("flights", {0: [1, 2]})
        free = asyncio.Event()
        await world.store.exists(TOPIC, lambda _: free.set())
        await world.store.ensure(REQUEST)
        await free.wait()
        settings = znodes.encode_config({"cleanup.policy": "compact"})
        await world.store.put(SETTINGS, settings)
        await world.create_topic("flights", {0: [2, 1]})
        await world.settle()
        found = await world.store.get(SETTINGS)
        assert found is not None and found[0] == settings

    run_world(test)


def test_a_controller_that_dies_as_soon_as_the_name_is_free_leaves_no_request_behind() -> None:
    """The next controller would delete the topic that has the name then."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [2]})
        dead: list[RecordingBroker] = []
        await world.store.exists(TOPIC, lambda _: dead.append(world.kill(1)))
        await world.store.ensure(REQUEST)
        await world.until(lambda: bool(dead))
        await world.create_topic("flights", {0: [2]})
        world.zookeeper.expire(dead[0].session)
        await world.until(lambda: world.controller() is world.brokers[2])
        await world.settle()
        assert await world.store.topic("flights") is not None
        assert await world.store.exists(REQUEST) is None

    run_world(test)


def test_the_request_for_a_topic_that_was_removed_by_hand_deletes_no_later_topic() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [2, 3]})
        await world.store.ensure(REQUEST)
        await world.settle()  # the deletion waits for broker 3
        await remove_by_hand(world, TOPIC)
        await until_gone(world, REQUEST)
        await world.create_topic("flights", {0: [2]})
        await world.kill_and_expire(1)
        await world.until_state(FLIGHTS, lambda s: True)
        await world.until(lambda: world.controller() is world.brokers[2])
        await world.settle()
        assert await world.store.topic("flights") is not None

    run_world(test)


def test_a_topic_is_deleted_although_the_controller_has_not_read_it_yet() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.settle()
        await world.create_topic_unseen("busy", {p: [1, 2] for p in range(300)})
        await world.store.ensure(znodes.delete_topic_path("nowhere"))
        await world.create_topic_unseen("flights", {0: [1, 2]})
        await world.store.ensure(REQUEST)
        await until_gone(world, REQUEST)
        assert await world.store.exists(TOPIC) is None
        assert await world.store.exists(znodes.delete_topic_path("nowhere")) is None

    run_world(test)


def test_a_request_for_a_topic_of_an_illegal_name_is_removed() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1)
        await world.settle()
        illegal = "not a legal name"
        await world.store.ensure(znodes.topic_path(illegal), b'{"partitions":{"0":[1]}}')
        await world.store.ensure(znodes.delete_topic_path(illegal))
        await until_gone(world, znodes.delete_topic_path(illegal))

    run_world(test)


async def to_delete_what_cannot_be_read(world: ControlWorld) -> bytes:
    """Broker 2 is controller and cannot read the topic, whose deletion is requested. Returns what
    the topic's znode was."""
    await world.start_brokers(1, 2)
    await world.create_topic("flights", {0: [2]})
    await world.until_state(FLIGHTS, lambda state: state.leader == 2)
    good = await world.store.get(TOPIC)
    assert good is not None
    await world.store.put(TOPIC, b"nonsense")
    dead = world.kill(1)
    await world.store.ensure(REQUEST)
    await world.store.ensure(znodes.delete_topic_path("nowhere"))
    world.zookeeper.expire(dead.session)
    await world.until(lambda: world.controller() is world.brokers[2])
    await until_gone(world, znodes.delete_topic_path("nowhere"))
    assert await world.store.exists(znodes.state_path(FLIGHTS)) is not None
    return good[0]


def test_the_deletion_of_a_topic_that_cannot_be_read_goes_on_once_it_is_mended() -> None:
    """If the znodes were deleted at once, the logs would stay. If the request were, the topic would
    live on without the replicas that are deleted already."""

    async def test(world: ControlWorld) -> None:
        good = await to_delete_what_cannot_be_read(world)
        assert await world.store.exists(REQUEST) is not None
        await world.store.put(TOPIC, good)
        await until_gone(world, TOPIC)
        await until_gone(world, REQUEST)

    run_world(test)


def test_the_request_for_a_topic_that_cannot_be_read_and_was_removed_deletes_no_later_one() -> None:
    async def test(world: ControlWorld) -> None:
        await to_delete_what_cannot_be_read(world)
        await world.store.session.delete(znodes.state_path(FLIGHTS))
        for path in (f"{TOPIC}/partitions/0", f"{TOPIC}/partitions", TOPIC):
            await world.store.session.delete(path)
        await until_gone(world, REQUEST)
        await world.create_topic("flights", {0: [2]})
        await world.until_state(FLIGHTS, lambda state: state.leader == 2)

    run_world(test)


def test_a_role_refused_for_the_topic_that_had_the_name_elects_no_leader_of_the_next() -> None:
    """What a replica held of the deleted topic says nothing about the log of this one."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        await world.until(lambda: world.brokers[1].role(FLIGHTS) is not None)
        arrived, released = asyncio.Event(), asyncio.Event()
        record = world.brokers[1].handle

        async def refuse(request: object, peer: Peer) -> object:
            response = await record(request, peer)
            if isinstance(response, LeaderAndIsrResponse) and not arrived.is_set():
                arrived.set()
                await released.wait()
                response.held = [HeldRole(*FLIGHTS, leader_epoch=7, log_epoch=7)]
            return response

        world.brokers[1].handle = refuse  # type: ignore[method-assign]
        await world.store.propagate_log_dir_event(1)
        await arrived.wait()
        await remove_by_hand(world, TOPIC)
        await world.settle()
        node = TopicZnode("another-id", {0: ReplicaAssignment((1, 2))})
        await world.store.ensure(TOPIC, znodes.encode_topic(node))
        await world.until_state(FLIGHTS, lambda state: state.leader == 1)
        released.set()
        await world.settle(5.0)
        state = await world.state(FLIGHTS)
        assert state is not None and (state.leader_epoch, state.isr) == (0, (1, 2))

    run_world(test)


def test_a_reassignment_that_delays_a_deletion_can_be_cancelled() -> None:
    """A target that never comes back would keep the topic forever."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2]})
        assert await reassign(world, [1, 3]) is ErrorCode.NONE
        await world.kill_and_expire(3)
        await world.store.ensure(REQUEST)
        await world.settle()
        assert await reassign(world, [1, 2]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await reassign(world, None) is ErrorCode.NONE
        await until_gone(world, REQUEST)
        assert await world.store.exists(TOPIC) is None

    run_world(test)


def test_a_broker_that_registers_again_while_it_is_to_delete_is_not_waited_for_in_vain() -> None:
    """Its earlier incarnation refuses the request, and the controller, which was busy, reads that
    only after it has asked the present one."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        broker, controller = world.brokers[2], world.brokers[9].controller
        arrived, released = asyncio.Event(), asyncio.Event()
        record, epoch = broker.handle, broker.epoch

        async def refuse(request: object, peer: Peer) -> object:
            response = await record(request, peer)
            if isinstance(request, StopReplicaRequest) and request.broker_epoch == epoch:
                arrived.set()
                await released.wait()
                return StopReplicaResponse(ErrorCode.STALE_BROKER_EPOCH)
            return response

        broker.handle = refuse  # type: ignore[method-assign]
        await world.store.ensure(REQUEST)
        await arrived.wait()
        controller._enqueue("something that takes long", lambda: asyncio.sleep(1))
        registered = await world.store.broker(2)
        assert registered is not None
        await reregister(Store(broker.session), registered, world.clock.wall_ms())
        await asyncio.sleep(0.1)  # the watch fires, and its event waits behind the long one
        released.set()
        await until_gone(world, TOPIC)

    run_world(test)


def test_a_topic_that_was_removed_and_created_again_before_the_controller_read_it() -> None:
    """Its partitions would go on under the id of the one that does not exist any more."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        await world.until(lambda: world.brokers[1].role(FLIGHTS) is not None)
        world.brokers[9].controller._enqueue("something that takes long", lambda: asyncio.sleep(1))
        await remove_by_hand(world, TOPIC)
        node = TopicZnode("another-id", {0: ReplicaAssignment((2, 1))})
        await world.store.ensure(TOPIC, znodes.encode_topic(node))
        await world.until_state(FLIGHTS, lambda state: state.leader == 2)

        def is_told() -> bool:
            role, told = world.brokers[1].role(FLIGHTS), world.brokers[9].metadata(FLIGHTS)
            return {role and role.topic_id, told and told.topic_id} == {"another-id"}

        await world.until(is_told)

    run_world(test)
