"""Deletes topics: every replica first, the znodes last, in as many attempts as it takes.

A wish is a znode under `/admin/delete_topics`. While a replica's broker is down the topic is
ineligible and waits; it resumes when such a broker comes back. Only when every replica has said
that its log is deleted do the topic's own znodes go.
"""

import logging
from collections.abc import Iterable, Sequence

from barnabas.error_code import ErrorCode
from barnabas.events import EventKind
from barnabas.messages.control import StopReplicaRequest, StopReplicaResponse
from barnabas.topic_partition import TopicPartition

from barnabas_controller.context import Replica
from barnabas_controller.partition_states import PartitionStateMachine
from barnabas_controller.reign import Reign
from barnabas_controller.replica_states import ReplicaStateMachine
from barnabas_controller.states import PartitionState, ReplicaState
from barnabas_controller.zookeeper.session import WatchEvent

logger = logging.getLogger(__name__)

CAUSE = "the topic is being deleted"


class TopicDeletion:
    """The deletion manager of one reign."""

    def __init__(
        self, reign: Reign, partitions: PartitionStateMachine, replicas: ReplicaStateMachine
    ) -> None:
        self._reign = reign
        self._context = reign.context
        self._partitions = partitions
        self._replicas = replicas

    def watch(self, _: WatchEvent) -> None:
        self._reign.enqueue("topics to delete changed", self.on_wishes_changed)

    async def start(self, wishes: Sequence[str]) -> None:
        """After failover: take up the wishes found; nothing is sent yet."""
        if not self._reign.config.delete_topic_enable:
            await self._refuse(wishes)
            return
        context = self._context
        for topic in wishes:
            context.topics_to_delete[topic] = None
            if context.is_being_reassigned(topic) or any(
                not context.is_online(r.broker_id, r.partition)
                for r in context.replicas_of_topic(topic)
            ):
                context.deletion_ineligible[topic] = None

    async def on_wishes_changed(self) -> None:
        """`/admin/delete_topics` has other children."""
        wishes = await self._reign.store.store.topics_to_delete(self.watch)
        unknown = [topic for topic in wishes if topic not in self._context.assignments]
        if unknown:
            logger.warning("asked to delete topics that do not exist: %s", unknown)
            await self._reign.store.delete_topic_wishes(unknown)
        known = [topic for topic in wishes if topic in self._context.assignments]
        if not self._reign.config.delete_topic_enable:
            await self._refuse(known)
            return
        if known:
            self._context.topics_to_delete.update(dict.fromkeys(known))
            for topic in known:
                if self._context.is_being_reassigned(topic):
                    self._hold(topic, "partitions of it are being reassigned")
            await self.resume()

    async def _refuse(self, topics: Sequence[str]) -> None:
        if topics:
            logger.warning("delete.topic.enable is false: %s stay", list(topics))
            for topic in topics:
                self._reign.events.record(
                    EventKind.TOPIC_DELETION_REFUSED, "delete.topic.enable is false", topic=topic
                )
            await self._reign.store.delete_topic_wishes(topics)

    async def resume_topics(self, topics: Iterable[str]) -> None:
        """What kept these topics from being deleted may be over."""
        resumed = [topic for topic in topics if self._context.is_being_deleted(topic)]
        for topic in resumed:
            self._context.deletion_ineligible.pop(topic, None)
        if resumed:
            await self.resume()

    async def resume(self) -> None:
        """Take every deletion as far as it can go now."""
        for topic in list(self._context.topics_to_delete):
            replicas = self._context.replicas_of_topic(topic)
            states = {self._context.replica_state(replica) for replica in replicas}
            if states <= {ReplicaState.DELETION_SUCCESSFUL}:
                await self._complete(topic, replicas)
            elif (
                ReplicaState.DELETION_STARTED not in states
                and topic not in self._context.deletion_ineligible
            ):
                await self._delete_replicas(topic)

    async def _delete_replicas(self, topic: str) -> None:
        partitions = self._context.partitions([topic])
        if topic not in self._context.deletion_started:
            logger.info("deleting topic %s, %d partitions", topic, len(partitions))
            self._reign.events.record(
                EventKind.TOPIC_DELETION_STARTED, "somebody asked for its deletion", topic=topic
            )
            self._partitions.change(partitions, PartitionState.OFFLINE)
            self._partitions.change(partitions, PartitionState.NON_EXISTENT)
            self._context.deletion_started[topic] = None
        self._reign.update_metadata(self._context.registered_brokers(), partitions)
        remaining = [
            replica
            for replica in self._context.replicas_of_topic(topic)
            if self._context.replica_state(replica) is not ReplicaState.DELETION_SUCCESSFUL
        ]
        dead = [r for r in remaining if not self._context.is_online(r.broker_id, r.partition)]
        alive = [r for r in remaining if self._context.is_online(r.broker_id, r.partition)]
        await self._replicas.change(remaining, ReplicaState.OFFLINE, CAUSE)
        await self._replicas.change(dead, ReplicaState.DELETION_INELIGIBLE, CAUSE)
        await self._replicas.change(alive, ReplicaState.DELETION_STARTED, CAUSE)
        if dead:
            self._hold(topic, f"brokers {sorted({r.broker_id for r in dead})} are offline")

    def _hold(self, topic: str, why: str) -> None:
        self._context.deletion_ineligible[topic] = None
        logger.warning("the deletion of topic %s waits: %s", topic, why)
        self._reign.events.record(EventKind.TOPIC_DELETION_WAITS, why, topic=topic)

    async def _complete(self, topic: str, replicas: list[Replica]) -> None:
        """Every replica is gone: now the znodes."""
        await self._replicas.change(replicas, ReplicaState.NON_EXISTENT)
        await self._reign.store.delete_topic(topic)
        self._context.remove_topic(topic)
        logger.info("topic %s is deleted", topic)
        self._reign.events.record(
            EventKind.TOPIC_DELETED, "every replica said that its log is deleted", topic=topic
        )

    async def fail(self, replicas: Sequence[Replica], why: str) -> None:
        """These replicas, of topics being deleted, cannot be deleted now."""
        for topic in dict.fromkeys(replica.partition.topic for replica in replicas):
            self._hold(topic, why)
        started = ReplicaState.DELETION_STARTED
        halted = [r for r in replicas if self._context.replica_state(r) is started]
        await self._replicas.change(halted, ReplicaState.DELETION_INELIGIBLE)
        await self.resume()

    async def on_stopped(
        self, broker_id: int, request: StopReplicaRequest, response: StopReplicaResponse
    ) -> None:
        """A broker answered a StopReplica."""
        asked = [
            TopicPartition(p.topic, p.partition) for p in request.partitions if p.delete_partition
        ]
        errors = {(p.topic, p.partition): p.error_code for p in response.partitions}
        failed: list[Replica] = []
        deleted: list[Replica] = []
        for partition in asked:
            replica = Replica(partition, broker_id)
            if self._context.replica_state(replica) is not ReplicaState.DELETION_STARTED:
                continue
            error = response.error_code or errors.get(partition, ErrorCode.NONE)
            (failed if error != ErrorCode.NONE else deleted).append(replica)
        await self._replicas.change(deleted, ReplicaState.DELETION_SUCCESSFUL)
        if failed:
            await self.fail(failed, f"broker {broker_id} could not delete its replicas")
        elif deleted:
            await self.resume()
