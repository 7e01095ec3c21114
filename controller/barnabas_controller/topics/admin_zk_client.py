"""CreateTopics and DeleteTopics in ZooKeeper, on any broker (Kafka's `AdminZkClient`).

The broker that receives the request writes the znodes; the controller watches them and carries out
the rest.
"""

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

from barnabas_common.errors import (
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    InvalidTopicError,
    TopicAlreadyExistsError,
    TopicDeletionDisabledError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.messages.topics import NewTopic
from barnabas_common.runtime import Randomness, new_uuid
from barnabas_common.topic_name import colliding_topics, validate_topic_name

from barnabas_controller.store import znodes
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import ReplicaAssignment, TopicZnode
from barnabas_controller.topics.assignment import assign_replicas
from barnabas_controller.zookeeper.requests import until_answered
from barnabas_controller.zookeeper.session import (
    Create,
    NodeExists,
    NoNode,
    Operation,
    SetData,
    ZooKeeperError,
)

logger = logging.getLogger(__name__)

# ZooKeeper closes the connection of a client that sends more (jute.maxbuffer, 1 MiB by default).
MAX_ZNODE_BYTES = 1_000_000
MAX_PARTITIONS = 100_000

# Raises InvalidConfigError for an unknown name or value.
ValidateConfig = Callable[[Mapping[str, str]], None]


@dataclass(frozen=True)
class TopicDefaults:
    """`num.partitions` and `default.replication.factor`, which apply if a request has -1."""

    partitions: int = 1
    replication_factor: int = 1


@dataclass(frozen=True)
class CreatedTopic:
    """The topic that was created, or that would be created without `validate_only`."""

    topic: str
    topic_id: str
    partitions: Mapping[int, tuple[int, ...]]

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0])


class AdminZkClient:
    """Has no state: every method reads what it needs from ZooKeeper.

    Replicas are assigned only to brokers that have the `listener`, or to any broker if it is None.
    """

    def __init__(self, store: Store, randomness: Randomness, listener: str | None = None) -> None:
        self._store = store
        self._randomness = randomness
        self._listener = listener

    async def create_topic(
        self,
        new: NewTopic,
        defaults: TopicDefaults,
        validate_config: ValidateConfig,
        validate_only: bool = False,
    ) -> CreatedTopic:
        """Create a topic, or only validate the request.

        Raises InvalidTopicError, TopicAlreadyExistsError, InvalidRequestError,
        InvalidPartitionsError, InvalidReplicationFactorError, InvalidReplicaAssignmentError and
        what `validate_config` raises.
        """
        await self._check_name(new.topic)
        configs = _configs(new)
        assignment = await self._assignment(new, defaults)
        validate_config(configs)
        topic_id = new_uuid(self._randomness)
        node = TopicZnode(topic_id, {p: ReplicaAssignment(r) for p, r in assignment.items()})
        data = znodes.encode_topic(node)
        if len(data) > MAX_ZNODE_BYTES:
            raise InvalidPartitionsError(
                f"the assignment of {len(assignment)} partitions does not fit into a znode"
            )
        if not validate_only:
            await self._write(new.topic, configs, data)
        return CreatedTopic(new.topic, topic_id, assignment)

    async def _check_name(self, topic: str) -> None:
        validate_topic_name(topic)
        existing = await self._store.topics()
        if topic in existing:
            going = topic in await self._store.topics_to_delete()
            why = "is still being deleted" if going else "already exists"
            raise TopicAlreadyExistsError(f"topic {topic!r} {why}")
        colliding = colliding_topics(topic, existing)
        if colliding:
            raise InvalidTopicError(
                f"topic {topic!r} collides with {', '.join(colliding)}: "
                "names that differ in '.' and '_' alone share their metrics"
            )

    async def _assignment(
        self, new: NewTopic, defaults: TopicDefaults
    ) -> dict[int, tuple[int, ...]]:
        brokers = {
            broker_id: broker
            for broker_id, broker in (await self._store.brokers()).items()
            if self._listener is None or broker.endpoint(self._listener) is not None
        }
        if new.assignments:
            return explicit_assignment(new, list(brokers))
        partitions = defaults.partitions if new.partitions == -1 else new.partitions
        factor = (
            defaults.replication_factor if new.replication_factor == -1 else new.replication_factor
        )
        if partitions > MAX_PARTITIONS:
            raise InvalidPartitionsError(f"{partitions} partitions, more than {MAX_PARTITIONS}")
        racks = {broker.broker_id: broker.rack for broker in brokers.values()}
        return dict(enumerate(assign_replicas(racks, partitions, factor, self._randomness)))

    async def _write(self, topic: str, configs: Mapping[str, str], data: bytes) -> None:
        """Write both znodes in one transaction: of two clients that create the topic at the same
        time, the one that fails must not leave its configuration to the other's topic."""
        path, config_path = znodes.topic_path(topic), znodes.topic_config_path(topic)
        operations: list[Operation] = [
            Create(path, data),
            # Written even if empty, because a deleted topic of that name may have left one.
            SetData(config_path, znodes.encode_config(configs)),
        ]
        while True:
            await self._store.ensure(config_path)
            created, *others = await until_answered(lambda: self._store.session.multi(operations))
            if isinstance(created, str):
                break
            if isinstance(created, NodeExists):
                found = await self._store.get(path)
                if found is None or found[0] != data:  # otherwise its answer was lost
                    raise TopicAlreadyExistsError(
                        f"topic {topic!r} was just created by another client"
                    )
                break
            if not any(isinstance(result, NoNode) for result in others):
                raise created if isinstance(created, ZooKeeperError) else ZooKeeperError(path)
        logger.info("topic %s written to ZooKeeper", topic)

    async def delete_topic(self, topic: str, enabled: bool = True) -> None:
        """Request the deletion of a topic from the controller; a second request does no harm.

        `enabled` is `delete.topic.enable`. Raises UnknownTopicOrPartitionError,
        TopicDeletionDisabledError.
        """
        if not enabled:
            raise TopicDeletionDisabledError("delete.topic.enable is false")
        try:
            validate_topic_name(topic)
        except InvalidTopicError as error:
            raise UnknownTopicOrPartitionError(str(error)) from None
        if await self._store.exists(znodes.topic_path(topic)) is None:
            raise UnknownTopicOrPartitionError(f"topic {topic!r} does not exist")
        await self._store.ensure(znodes.delete_topic_path(topic))
        logger.info("deletion of topic %s requested", topic)


def _configs(new: NewTopic) -> dict[str, str]:
    configs = {entry.name: entry.value for entry in new.configs}
    if len(configs) != len(new.configs):
        raise InvalidRequestError(f"a configuration of topic {new.topic!r} is given twice")
    if len(znodes.encode_config(configs)) > MAX_ZNODE_BYTES:
        raise InvalidRequestError(f"the configuration of topic {new.topic!r} is too large")
    return configs


def explicit_assignment(new: NewTopic, registered: list[int]) -> dict[int, tuple[int, ...]]:
    """The assignment in a CreateTopics request, by partition number.

    Raises InvalidReplicaAssignmentError unless the partitions are 0 to n-1, each once, and all have
    the same number of replicas on distinct registered brokers. Raises InvalidRequestError if the
    request has counts as well.
    """
    if new.partitions != -1 or new.replication_factor != -1:
        raise InvalidRequestError(
            "give either replica assignments or counts of partitions and replicas, not both"
        )
    assignment = {item.partition: tuple(item.broker_ids) for item in new.assignments}
    if len(assignment) != len(new.assignments) or sorted(assignment) != list(
        range(len(assignment))
    ):
        raise InvalidReplicaAssignmentError("the partitions must be numbered 0 to n-1, each once")
    factor = len(assignment[0])
    for partition, replicas in sorted(assignment.items()):
        check_replicas(partition, replicas, factor, registered)
    return dict(sorted(assignment.items()))


def check_replicas(
    partition: int, replicas: Sequence[int], factor: int, allowed: Container[int]
) -> None:
    """Raise InvalidReplicaAssignmentError unless they are `factor` distinct allowed brokers."""
    if not replicas or len(replicas) != factor:
        raise InvalidReplicaAssignmentError(
            f"partition {partition} has {len(replicas)} replicas, partition 0 has {factor}"
        )
    if len(set(replicas)) != len(replicas):
        raise InvalidReplicaAssignmentError(
            f"partition {partition} names a broker twice: {list(replicas)}"
        )
    unknown = [replica for replica in replicas if replica not in allowed]
    if unknown:
        raise InvalidReplicaAssignmentError(
            f"partition {partition} names brokers that are not live: {unknown}"
        )
