"""Topics grow: by request, by hand, under faults; clients find the new partitions themselves."""

import asyncio
import json

import pytest
from barnabas import Consumer, Producer
from barnabas_common.errors import (
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    KafkaError,
    ReassignmentInProgressError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.messages.topics import NewPartitions
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.controller_election import elect
from barnabas_controller.store import znodes
from barnabas_controller.store.fenced_store import FencedStore
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import ReplicaAssignment, TopicZnode
from barnabas_controller.topics.topic_growth import added_partitions
from barnabas_simulator.loop import run

from tests.support.control_world import ControlWorld, run_world
from tests.support.meddling import Meddling
from tests.support.reassigning import TP, MovingPartition

MAX_SECONDS = 600.0
RACKS = dict.fromkeys((1, 2, 3))


@pytest.mark.parametrize(
    ("existing", "count", "added"),
    [
        ({0: (1, 2)}, 3, {1: (2, 1), 2: (3, 1)}),
        ({0: (2, 3), 1: (3, 1)}, 3, {2: (1, 3)}),
        ({0: (9,)}, 3, {1: (2,), 2: (3,)}),
    ],
)
def test_new_partitions_go_on_round_the_brokers(
    existing: dict[int, tuple[int, ...]], count: int, added: dict[int, tuple[int, ...]]
) -> None:
    """The order is that of Kafka's `createNewPartitionsAssignment`: on from partition 0's first."""
    assignment = {p: ReplicaAssignment(r) for p, r in existing.items()}
    found = added_partitions(NewPartitions("t", count), assignment, RACKS)
    assert {p: r[0] for p, r in found.items()} == {p: r[0] for p, r in added.items()}
    assert all(len(set(r)) == len(existing[0]) for r in found.values())


@pytest.mark.parametrize("numbers", [[], [0, 2], [1]])
def test_a_topic_with_missing_partitions_does_not_grow(numbers: list[int]) -> None:
    existing = {number: ReplicaAssignment((1, 2)) for number in numbers}
    with pytest.raises(InvalidPartitionsError, match="not 0 to n"):
        added_partitions(NewPartitions("t", 3), existing, RACKS)


def test_what_is_refused() -> None:
    async def story() -> None:
        moving = MovingPartition(1, [1, 2], brokers=3)
        await moving.start()

        async def refused(error: type[KafkaError], topic: str, count: int, **rest: object) -> None:
            async with moving.admin() as admin:
                with pytest.raises(error):
                    await admin.create_partitions(topic, count, **rest)  # type: ignore[arg-type]

        await refused(UnknownTopicOrPartitionError, "nobody", 2)
        await refused(InvalidPartitionsError, "flights", 1)
        for assignments in ({1: [1]}, {1: [1, 9]}, {1: [1, 1]}, {2: [1, 2]}, {1: [1, 2], 2: [1]}):
            await refused(InvalidReplicaAssignmentError, "flights", 2, assignments=assignments)
        async with moving.admin() as admin:
            await admin.create_partitions("flights", 3, validate_only=True)
            assert len((await admin.describe_topic("flights")).partitions) == 1
            await admin.create_partitions("flights", 3, assignments={1: [3, 1], 2: [1, 3]})
            topic = await admin.describe_topic("flights")
        assert [p.replicas for p in topic.partitions] == [[1, 2], [3, 1], [1, 3]]
        assert all(p.leader_id == p.replicas[0] for p in topic.partitions)
        await refused(InvalidPartitionsError, "flights", 2)
        moving.cluster.kill(3)
        await refused(InvalidReplicaAssignmentError, "flights", 4, assignments={3: [3, 1]})
        moving.cluster.start_broker(3)
        await moving.cluster.serving()
        moving.cluster.cut(1, 3)  # so that it takes its time
        await moving.reassign([3, 2])
        await refused(ReassignmentInProgressError, "flights", 9)

    run(story(), seed=1, max_time=MAX_SECONDS)


def test_producers_and_consumers_find_the_new_partitions() -> None:
    async def story() -> None:
        moving = MovingPartition(2, [1, 2, 3], brokers=3)
        await moving.start()
        cluster = moving.cluster
        async with (
            moving.admin() as admin,
            Producer(
                cluster.bootstrap,
                runtime=cluster.client_runtime("producer"),
                metadata_max_age_ms=1000,
            ) as producer,
            Consumer(
                "flights",
                bootstrap_servers=cluster.bootstrap,
                runtime=cluster.client_runtime("consumer"),
                auto_offset_reset="earliest",
                metadata_max_age_ms=1000,
            ) as consumer,
        ):
            await producer.send_and_wait("flights", b"before")
            assert [r.value for r in await consumer.poll(timeout_ms=5000)] == [b"before"]
            await admin.create_partitions("flights", 4)
            await asyncio.sleep(3)
            expected, found = set(), set()
            for number in range(40):
                value = b"%d" % number
                await producer.send_and_wait("flights", value, key=value)
                expected.add(value)
            partitions = set()
            async with asyncio.timeout(20):
                while found != expected:
                    for record in await consumer.poll(timeout_ms=500):
                        found.add(record.value)
                        partitions.add(record.partition)
            assert partitions == {0, 1, 2, 3}

    run(story(), seed=2, max_time=MAX_SECONDS)


@pytest.mark.parametrize("dies_after", [1, 2, 3, 4])
def test_growth_survives_the_death_of_the_controller(dies_after: int) -> None:
    async def story() -> None:
        moving = MovingPartition(dies_after, [1, 2, 3], brokers=3)
        await moving.start()
        with moving.controller_dies_after(dies_after):
            async with moving.admin() as admin:
                try:
                    await admin.create_partitions(TP.topic, 3, timeout_ms=10_000)
                except Exception:  # the outcome is unknown; ask again
                    await asyncio.sleep(5)
                    if len((await admin.describe_topic(TP.topic)).partitions) == 1:
                        await admin.create_partitions(TP.topic, 3)
        await moving.cluster.serving()
        async with moving.admin() as admin:
            for _ in range(100):
                topic = await admin.describe_topic(TP.topic)
                if len(topic.partitions) == 3 and all(p.leader_id > 0 for p in topic.partitions):
                    return
                await asyncio.sleep(0.2)
        raise AssertionError(topic)

    run(story(), seed=dies_after, max_time=MAX_SECONDS)


def test_partitions_added_between_reading_and_writing_are_not_overwritten() -> None:
    async def test(world: ControlWorld) -> None:
        path, first = znodes.topic_path("flights"), {0: ReplicaAssignment((1, 2))}
        await world.store.ensure(path, znodes.encode_topic(TopicZnode("id", first)))
        epoch = await elect(world.store, 1, 0)
        by_hand = TopicZnode("id", {**first, 1: ReplicaAssignment((2, 1))})
        session = Meddling(
            world.store.session, path, lambda: world.store.put(path, znodes.encode_topic(by_hand))
        )
        fenced = FencedStore(Store(session), epoch)
        assert await fenced.write_assignments("flights", {2: ReplicaAssignment((1, 2))})
        topic = await world.store.topic("flights")
        assert topic is not None and set(topic.partitions) == {0, 1, 2}
        assert session.has_meddled

    run_world(test)


def test_partitions_added_by_hand_at_the_same_moment_are_not_overwritten() -> None:
    """Kafka's controller writes its own copy; here it adds to the znode's content."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        path = znodes.topic_path("flights")
        found = await world.store.get(path)
        assert found is not None
        content = json.loads(found[0])
        content["partitions"] |= {"1": [2, 1], "2": [2, 1]}
        await world.store.put(path, json.dumps(content).encode())
        controller = world.controller()
        assert controller is not None
        # In the same turn: the controller has not read the change yet.
        await controller.controller.create_partitions(NewPartitions("flights", 2))
        await world.until_state(TopicPartition("flights", 2), lambda state: True)
        topic = await world.store.topic("flights")
        assert topic is not None and set(topic.partitions) == {0, 1, 2}
        assert topic.partitions[2] == ReplicaAssignment((2, 1))

    run_world(test)
