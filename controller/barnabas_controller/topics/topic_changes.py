"""Topics are created, grow and are removed in ZooKeeper: the controller follows `/brokers/topics`.

A broker writes the znodes when it handles a request. A Kafka tool or an operator may write them as
well.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from barnabas_common.errors import InvalidTopicError
from barnabas_common.events import EventKind
from barnabas_common.runtime import new_uuid
from barnabas_common.topic_name import validate_topic_name
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.partitions.partition_state_machine import (
    NEW_PARTITION,
    PartitionStateMachine,
)
from barnabas_controller.partitions.replica_state_machine import ReplicaStateMachine
from barnabas_controller.partitions.state_reading import read_states
from barnabas_controller.state.states import PartitionState, ReplicaState
from barnabas_controller.store import znodes
from barnabas_controller.store.znodes import TopicZnode
from barnabas_controller.zookeeper.session import WatchEvent

logger = logging.getLogger(__name__)


class TopicChanges:
    """Handles the events of `/brokers/topics` and below.

    `on_changed(topic)` is called when the znode of a topic was written without new partitions,
    `on_mended()` when a malformed one can be read.
    """

    def __init__(
        self,
        term: ControllerTerm,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        on_changed: Callable[[str], None],
        on_mended: Callable[[], Awaitable[None]],
    ) -> None:
        self._term = term
        self._on_mended = on_mended
        self._on_changed = on_changed
        self._context = term.context
        self._partitions = partitions
        self._replicas = replicas
        self.watch = term.watch("topics changed", self._on_topics_changed)

    def _watch_data(self, event: WatchEvent) -> None:
        topic = event.path.rpartition("/")[2]
        self._term.enqueue(f"topic {topic} changed", lambda: self._on_topic_changed(topic))

    async def load(self, topics: Sequence[str]) -> dict[str, TopicZnode]:
        """Read topics, arm their watches, and write an id into each znode that has none.

        Topics that are malformed or have an illegal name are reported and left out.
        """
        legal = [topic for topic in topics if self._is_legal(topic)]
        found = await self._term.store.topic_assignments(legal, self._watch_data)
        return {topic: await self._with_id(topic, node) for topic, node in found.items()}

    def _is_legal(self, topic: str) -> bool:
        try:
            validate_topic_name(topic)
        except InvalidTopicError as error:
            store = self._term.store
            store.report(MalformedZnode(znodes.topic_path(topic), str(error)))
            return False
        return True

    async def _with_id(self, topic: str, node: TopicZnode) -> TopicZnode:
        """Write an id into a znode without one, which an operator or an old tool wrote."""
        if node.topic_id is not None:
            return node
        topic_id = self._context.topic_ids.get(topic) or new_uuid(self._term.runtime.randomness)
        logger.info("topic %s has no id in ZooKeeper, writing %s", topic, topic_id)
        node = replace(node, topic_id=topic_id)
        await self._term.fenced.write_topic(topic, node)
        return node

    async def _on_topics_changed(self) -> None:
        """`/brokers/topics` has other children."""
        present = await self._term.store.topics(self.watch)
        there = set(present)
        removed = [topic for topic in self._context.assignments if topic not in there]
        unreadable = [topic for topic in self._context.unreadable_topics if topic not in there]
        await self._term.fenced.delete_topic_deletions(unreadable)
        await self._remove(removed)
        new = [topic for topic in present if topic not in self._context.assignments]
        await self._create(await self.load(new))
        self._context.note_unreadable(present)
        if removed:
            self._term.send_all_metadata(self._context.registered_brokers())

    async def _remove(self, topics: Sequence[str]) -> None:
        """Forget topics whose znodes were removed by hand."""
        # A request that stayed would delete the next topic of that name.
        requested = [topic for topic in topics if self._context.is_to_be_deleted(topic)]
        await self._term.fenced.delete_topic_deletions(requested)
        for topic in topics:
            self._term.events.record(
                EventKind.TOPIC_DELETED, "its znode was removed by hand", topic=topic
            )
            self._context.remove_topic(topic)

    async def _create(self, nodes: Mapping[str, TopicZnode]) -> None:
        created: list[TopicPartition] = []
        if not self._context.unreadable_topics.keys().isdisjoint(nodes):
            self._term.enqueue("a topic can be read again", self._on_mended)
        for topic, node in nodes.items():
            self._context.set_topic(topic, node)
            partitions = self._context.partitions([topic])
            if await self._term.store.exists(znodes.partitions_path(topic)) is not None:
                created += await self._take_over(partitions)
                continue
            self._term.events.record(
                EventKind.TOPIC_CREATED,
                f"{znodes.topic_path(topic)} was created in ZooKeeper",
                topic=topic,
                topic_id=node.topic_id,
                partitions=len(node.partitions),
            )
            created += partitions
        await self._start(created)

    async def _take_over(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Take over the partitions of a topic that was malformed when this controller was elected.

        Returns those that no controller has given a leader yet.
        """
        states = await read_states(self._term, partitions)
        await self._term.on_repaired(states, "its topic's znode was repaired")
        invalid = self._context.invalid_states
        return [p for p in partitions if p not in states and p not in invalid]

    async def _on_topic_changed(self, topic: str) -> None:
        """`/brokers/topics/<topic>` was written, perhaps with more partitions."""
        nodes = await self.load([topic])
        node = nodes.get(topic)
        if node is None:
            return
        if topic in self._context.topic_ids and self._context.topic_ids[topic] != node.topic_id:
            await self._remove([topic])  # and created again, before this controller read it
        if topic not in self._context.assignments:
            await self._create(nodes)
            return
        known = self._context.assignments[topic]
        added = [TopicPartition(topic, p) for p in node.partitions if p not in known]
        if not added:
            self._on_changed(topic)
            return
        if self._context.is_to_be_deleted(topic):
            logger.error("topic %s is being deleted: its new partitions are refused", topic)
            topic_id = self._context.topic_ids[topic]
            await self._term.fenced.write_topic(topic, TopicZnode(topic_id, known))
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
