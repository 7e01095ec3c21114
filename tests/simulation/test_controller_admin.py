"""Creating and deleting topics on behalf of an administrator: what is refused, and why."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from barnabas_common.errors import (
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    KafkaError,
    TopicAlreadyExistsError,
    TopicDeletionDisabledError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.messages.topics import ConfigEntry, NewTopic, ReplicaAssignment
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.store import Store
from barnabas_controller.topics.admin_zk_client import AdminZkClient, CreatedTopic, TopicDefaults

from tests.support.control_world import ControlWorld, run_world


def known_configs(configs: Mapping[str, str]) -> None:
    for name in configs:
        if name != "retention.ms":
            raise InvalidConfigError(f"unknown topic config {name}")


async def create(world: ControlWorld, new: NewTopic, validate_only: bool = False) -> CreatedTopic:
    admin = AdminZkClient(world.store, world.random)
    return await admin.create_topic(new, TopicDefaults(2, 1), known_configs, validate_only)


def assign(*replicas: list[int]) -> list[ReplicaAssignment]:
    return [ReplicaAssignment(partition, ids) for partition, ids in enumerate(replicas)]


def test_a_created_topic_comes_alive_with_its_configuration() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        new = NewTopic("flights", 3, 2, configs=[ConfigEntry("retention.ms", "1000")])
        created = await create(world, new)
        assert (len(created.partitions), created.replication_factor) == (3, 2)
        for partition, replicas in created.partitions.items():
            state = await world.until_state(TopicPartition("flights", partition), lambda s: True)
            assert state.isr == replicas
        assert await world.store.topic_configs(["flights"]) == {"flights": {"retention.ms": "1000"}}
        node = await world.store.topic("flights")
        assert node is not None and node.topic_id == created.topic_id

    run_world(test)


class Writing:
    """A session that records which znodes are written together."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.together: list[set[str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def multi(self, operations: Any) -> Any:
        self.together.append({operation.path for operation in operations})
        return await self._session.multi(operations)


def test_the_configuration_of_a_topic_is_there_with_its_assignment() -> None:
    """The controller acts on the assignment, and brokers then read the configuration."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1)
        session = Writing(world.store.session)
        admin = AdminZkClient(Store(session), world.random)
        await admin.create_topic(NewTopic("flights"), TopicDefaults(2, 1), known_configs)
        both = {znodes.topic_config_path("flights"), znodes.topic_path("flights")}
        assert both in session.together

    run_world(test)


def test_of_two_clients_that_create_a_topic_the_settings_of_one_count() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1)
        sizes = (1, 2, 3)
        wanted = [
            NewTopic("flights", n, 1, configs=[ConfigEntry("retention.ms", str(n))]) for n in sizes
        ]
        outcomes = await asyncio.gather(
            *(create(world, new) for new in wanted), return_exceptions=True
        )
        (created,) = [found for found in outcomes if isinstance(found, CreatedTopic)]
        assert sum(isinstance(found, TopicAlreadyExistsError) for found in outcomes) == 2
        found = await world.store.get(znodes.topic_config_path("flights"))
        settings = {"retention.ms": str(len(created.partitions))}
        assert found is not None and znodes.decode_config("", found[0]) == settings

    run_world(test)


def test_counts_left_out_take_the_brokers_defaults() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1)
        created = await create(world, NewTopic("flights"))
        assert (len(created.partitions), created.replication_factor) == (2, 1)

    run_world(test)


def test_an_explicit_assignment_is_taken_as_it_is() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await create(world, NewTopic("flights", assignments=assign([3, 1], [2, 3])))
        state = await world.until_state(TopicPartition("flights", 1), lambda s: True)
        assert state.isr == (2, 3)

    run_world(test)


def test_validate_only_writes_nothing() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1)
        await create(world, NewTopic("flights"), validate_only=True)
        assert await world.store.topics() == []
        assert await world.store.exists(znodes.topic_config_path("flights")) is None

    run_world(test)


REFUSED: list[tuple[NewTopic, type[KafkaError]]] = [
    (NewTopic(""), InvalidTopicError),
    (NewTopic("."), InvalidTopicError),
    (NewTopic(".."), InvalidTopicError),
    (NewTopic("x" * 250), InvalidTopicError),
    (NewTopic("a/b"), InvalidTopicError),
    (NewTopic("fl\u00fcge"), InvalidTopicError),
    (NewTopic("new\nline"), InvalidTopicError),
    (NewTopic("taken.name"), TopicAlreadyExistsError),
    (NewTopic("taken_name"), InvalidTopicError),
    (NewTopic("t", 0, 1), InvalidPartitionsError),
    (NewTopic("t", -2, 1), InvalidPartitionsError),
    (NewTopic("t", 2_000_000_000, 1), InvalidPartitionsError),
    (NewTopic("t", 90_000, 3), InvalidPartitionsError),
    (NewTopic("t", 1, 0), InvalidReplicationFactorError),
    (NewTopic("t", 1, 4), InvalidReplicationFactorError),
    (NewTopic("t", 1, -1, assign([1])), InvalidRequestError),
    (NewTopic("t", -1, 1, assign([1])), InvalidRequestError),
    (NewTopic("t", assignments=assign([1, 2], [1])), InvalidReplicaAssignmentError),
    (NewTopic("t", assignments=assign([1, 1])), InvalidReplicaAssignmentError),
    (NewTopic("t", assignments=assign([1, 7])), InvalidReplicaAssignmentError),
    (NewTopic("t", assignments=assign([])), InvalidReplicaAssignmentError),
    (NewTopic("t", assignments=[ReplicaAssignment(1, [1])]), InvalidReplicaAssignmentError),
    (NewTopic("t", assignments=assign([1]) * 2), InvalidReplicaAssignmentError),
    (NewTopic("t", configs=[ConfigEntry("no.such", "1")]), InvalidConfigError),
    (NewTopic("t", configs=[ConfigEntry("retention.ms", "1")] * 2), InvalidRequestError),
]


@pytest.mark.parametrize(("new", "error"), REFUSED, ids=lambda value: str(value)[:40])
def test_an_impossible_topic_is_refused_and_nothing_is_written(
    new: NewTopic, error: type[KafkaError]
) -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await create(world, NewTopic("taken.name"))
        with pytest.raises(error):
            await create(world, new)
        assert await world.store.topics() == ["taken.name"]
        assert await world.store.children(znodes.TOPIC_CONFIGS) == ["taken.name"]

    run_world(test)


def test_a_name_of_249_characters_is_legal() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1)
        await create(world, NewTopic("x" * 249, 1, 1))
        await world.until_state(TopicPartition("x" * 249, 0), lambda s: True)

    run_world(test)


def test_deleting_a_topic_twice_is_the_same_as_once() -> None:
    async def test(world: ControlWorld) -> None:
        await create_and_wait(world)
        admin = AdminZkClient(world.store, world.random)
        await admin.delete_topic("flights")
        await admin.delete_topic("flights")

        async def gone() -> bool | None:
            return await world.store.topics() == [] or None

        await world.until_some(gone)

    run_world(test)


async def create_and_wait(world: ControlWorld) -> None:
    await world.start_brokers(1)
    await create(world, NewTopic("flights", 1, 1))
    await world.until_state(TopicPartition("flights", 0), lambda s: True)


def test_an_unknown_topic_cannot_be_deleted_nor_any_when_deletion_is_disabled() -> None:
    async def test(world: ControlWorld) -> None:
        await create_and_wait(world)
        admin = AdminZkClient(world.store, world.random)
        for unknown in ("other", "", "a/b", "x" * 300):
            with pytest.raises(UnknownTopicOrPartitionError):
                await admin.delete_topic(unknown)
        with pytest.raises(TopicDeletionDisabledError):
            await admin.delete_topic("flights", enabled=False)
        assert await world.store.topics_to_delete() == []

    run_world(test)
