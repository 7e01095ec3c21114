"""Topics appear, grow and vanish in ZooKeeper: the controller follows.

A topic is whatever stands under `/brokers/topics`, whoever wrote it: an administrator's request
handled by some broker, a Kafka tool, or a person with a ZooKeeper shell.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from barnabas.errors import InvalidTopicError
from barnabas.events import EventKind
from barnabas.runtime import new_uuid
from barnabas.topic_partition import TopicPartition

from barnabas_controller import znodes
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.partition_states import NEW_PARTITION, PartitionStateMachine
from barnabas_controller.reign import Reign
from barnabas_controller.replica_states import ReplicaStateMachine
from barnabas_controller.states import PartitionState, ReplicaState
from barnabas_controller.topic_name import validate_topic_name
from barnabas_controller.znodes import TopicZnode
from barnabas_controller.zookeeper.session import WatchEvent

logger = logging.getLogger(__name__)


class TopicChanges:
    """Handles the events of `/brokers/topics` and below."""

    def __init__(
        self, reign: Reign, partitions: PartitionStateMachine, replicas: ReplicaStateMachine
    ) -> None:
        self._reign = reign
        self._context = reign.context
        self._partitions = partitions
        self._replicas = replicas

    def watch(self, _: WatchEvent) -> None:
        self._reign.enqueue("topics changed", self.on_topics_changed)

    def watch_data(self, event: WatchEvent) -> None:
        topic = event.path.rpartition("/")[2]
        self._reign.enqueue(f"topic {topic} changed", lambda: self.on_topic_changed(topic))

    async def load(self, topics: Sequence[str]) -> dict[str, TopicZnode]:
        """Read topics, arm their watches, and give each an id that has none.

        Topics that are malformed or have an illegal name are left out, and logged.
        """
        legal = [topic for topic in topics if self._is_legal(topic)]
        found = await self._reign.store.store.topic_assignments(legal, self.watch_data)
        return {topic: await self._with_id(topic, node) for topic, node in found.items()}

    def _is_legal(self, topic: str) -> bool:
        try:
            validate_topic_name(topic)
        except InvalidTopicError as error:
            store = self._reign.store.store
            store.report(MalformedZnode(znodes.topic_path(topic), str(error)))
            return False
        return True

    async def _with_id(self, topic: str, node: TopicZnode) -> TopicZnode:
        """A node written by hand, or by an old tool, has no topic id: write it back with one."""
        if node.topic_id is not None:
            return node
        topic_id = self._context.topic_ids.get(topic) or new_uuid(self._reign.runtime.randomness)
        logger.info("topic %s has no id in ZooKeeper, writing %s", topic, topic_id)
        node = replace(node, topic_id=topic_id)
        await self._reign.store.write_topic(topic, node)
        return node

    async def on_topics_changed(self) -> None:
        """`/brokers/topics` has other children."""
        present = await self._reign.store.store.topics(self.watch)
        gone = [topic for topic in self._context.assignments if topic not in set(present)]
        for topic in gone:
            logger.warning("topic %s was removed from ZooKeeper by hand", topic)
            self._reign.events.record(
                EventKind.TOPIC_DELETED, "its znode was removed by hand", topic=topic
            )
            self._context.remove_topic(topic)
        new = [topic for topic in present if topic not in self._context.assignments]
        await self._create(await self.load(new))

    async def _create(self, nodes: Mapping[str, TopicZnode]) -> None:
        created: list[TopicPartition] = []
        for topic, node in nodes.items():
            logger.info(
                "new topic %s (%s), %d partitions", topic, node.topic_id, len(node.partitions)
            )
            self._context.set_topic(topic, node)
            self._reign.events.record(
                EventKind.TOPIC_CREATED,
                f"{znodes.topic_path(topic)} appeared in ZooKeeper",
                topic=topic,
                topic_id=node.topic_id,
                partitions=len(node.partitions),
            )
            created += self._context.partitions([topic])
        await self._start(created)

    async def on_topic_changed(self, topic: str) -> None:
        """`/brokers/topics/<topic>` was rewritten: it may have more partitions."""
        nodes = await self.load([topic])
        node = nodes.get(topic)
        if node is None:
            return
        if topic not in self._context.assignments:
            await self._create(nodes)
            return
        known = self._context.assignments[topic]
        added = [TopicPartition(topic, p) for p in node.partitions if p not in known]
        if not added:
            return
        if self._context.is_to_be_deleted(topic):
            logger.error("topic %s is being deleted: its new partitions are refused", topic)
            topic_id = self._context.topic_ids[topic]
            await self._reign.store.write_topic(topic, TopicZnode(topic_id, known))
            return
        logger.info("new partitions: %s", ", ".join(map(str, added)))
        self._context.set_topic(topic, node)
        await self._start(added)

    async def _start(self, partitions: list[TopicPartition]) -> None:
        """Give new partitions their first leaders (Kafka's `onNewPartitionCreation`)."""
        replicas = self._context.replicas_of(partitions)
        self._partitions.change(partitions, PartitionState.NEW)
        await self._replicas.change(replicas, ReplicaState.NEW, NEW_PARTITION)
        await self._partitions.elect(partitions, NEW_PARTITION)
        await self._replicas.change(replicas, ReplicaState.ONLINE, NEW_PARTITION)
