"""Deletes topics: all replicas first, then the znodes, with as many attempts as needed.

A deletion request is a znode under `/admin/delete_topics`. While a replica is offline the topic is
ineligible for deletion and waits; the deletion is resumed when the broker registers. The topic's
znodes are deleted after all brokers have reported that their logs of the topic are deleted. While
the topic's own znode is malformed the request waits too: some replicas may be deleted already.
"""

import logging
from collections.abc import Container, Iterable, Sequence
from functools import partial

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import (
    StopReplicaRequest,
    StopReplicaResponse,
)
from barnabas_common.topic_name import is_legal_topic_name
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.partitions.partition_state_machine import PartitionStateMachine
from barnabas_controller.partitions.replica_state_machine import ReplicaStateMachine
from barnabas_controller.state.context import Replica
from barnabas_controller.state.states import PartitionState, ReplicaState

logger = logging.getLogger(__name__)

CAUSE = "the topic is being deleted"


class TopicDeletionManager:
    """Follows `/admin/delete_topics`, and the responses to StopReplica."""

    def __init__(
        self, term: ControllerTerm, partitions: PartitionStateMachine, replicas: ReplicaStateMachine
    ) -> None:
        self._term = term
        self._context = term.context
        self._partitions = partitions
        self._replicas = replicas
        self.watch = term.watch("topics to delete changed", self.read_requests)

    async def start(self, to_delete: Sequence[str]) -> None:
        """At failover: adopt the deletion requests. `resume` starts the deletions later."""
        if not self._term.config.delete_topic_enable:
            await self._refuse(to_delete)
            return
        context = self._context
        known = [topic for topic in to_delete if topic in context.assignments]
        if len(known) < len(to_delete):
            # The others have no replicas to delete, as far as the controller could read them.
            self._term.enqueue("unknown topics are to be deleted", self.read_requests)
        for topic in known:
            context.topics_to_delete[topic] = None
            if context.is_being_reassigned(topic) or any(
                not context.is_online(r.broker_id, r.partition)
                for r in context.replicas_of_topic(topic)
            ):
                context.deletion_ineligible[topic] = None

    async def read_requests(self) -> None:
        """`/admin/delete_topics` has other children, or a topic can be read again."""
        to_delete = await self._term.store.topics_to_delete(self.watch)
        known, unreadable = self._context.assignments, self._context.unreadable_topics
        unknown = [
            topic
            for topic in to_delete
            if topic not in known and not (topic in unreadable and is_legal_topic_name(topic))
        ]
        new = await self._not_read_yet(unknown)
        if new:  # the event that reads them is in the queue already
            self._term.enqueue("new topics are to be deleted", self.read_requests)
        unknown = [topic for topic in unknown if topic not in new]
        if unknown:
            logger.warning("deletion of unknown topics requested: %s", unknown)
            await self._term.fenced.delete_topic_deletions(unknown)
        requested = [topic for topic in to_delete if topic in known]
        if not self._term.config.delete_topic_enable:
            await self._refuse(requested)
            return
        if requested:
            self._context.topics_to_delete.update(dict.fromkeys(requested))
            for topic in requested:
                if self._context.is_being_reassigned(topic):
                    self._mark_ineligible_for_deletion(
                        topic, "partitions of it are being reassigned"
                    )
            await self.resume()

    async def _not_read_yet(self, unknown: Sequence[str]) -> Container[str]:
        """Which of these topics exist, and are only too new for the controller to know them."""
        legal = [topic for topic in unknown if is_legal_topic_name(topic)]
        return await self._term.store.topic_assignments(legal)

    async def _refuse(self, topics: Sequence[str]) -> None:
        if topics:
            for topic in topics:
                self._term.events.record(
                    EventKind.TOPIC_DELETION_REFUSED, "delete.topic.enable is false", topic=topic
                )
            await self._term.fenced.delete_topic_deletions(topics)

    async def resume_topics(self, topics: Iterable[str]) -> None:
        """Resume the deletions of these topics, where they wait."""
        resumed = [topic for topic in topics if self._context.is_being_deleted(topic)]
        for topic in resumed:
            self._context.deletion_ineligible.pop(topic, None)
        if resumed:
            await self.resume()

    async def resume(self) -> None:
        """Continue every deletion as far as possible."""
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
            self._term.events.record(
                EventKind.TOPIC_DELETION_STARTED, "its deletion was requested", topic=topic
            )
            self._partitions.change(partitions, PartitionState.OFFLINE)
            self._partitions.change(partitions, PartitionState.NON_EXISTENT)
            self._context.deletion_started[topic] = None
        self._term.update_metadata(self._context.registered_brokers(), partitions)
        remaining = [
            replica
            for replica in self._context.replicas_of_topic(topic)
            if self._context.replica_state(replica) is not ReplicaState.DELETION_SUCCESSFUL
        ]
        # A broker that cannot use its log may still be able to delete it, so it is asked as well.
        offline = [r for r in remaining if not self._context.is_alive(r.broker_id)]
        alive = [r for r in remaining if self._context.is_alive(r.broker_id)]
        await self._replicas.change(remaining, ReplicaState.OFFLINE, CAUSE)
        await self._replicas.change(offline, ReplicaState.DELETION_INELIGIBLE, CAUSE)
        await self._replicas.change(alive, ReplicaState.DELETION_STARTED, CAUSE)
        if offline:
            self._mark_ineligible_for_deletion(
                topic, f"brokers {sorted({r.broker_id for r in offline})} are offline"
            )

    def _mark_ineligible_for_deletion(self, topic: str, why: str) -> None:
        self._context.deletion_ineligible[topic] = None
        self._term.events.record(EventKind.TOPIC_DELETION_WAITS, why, topic=topic)

    async def _complete(self, topic: str, replicas: list[Replica]) -> None:
        """Delete the znodes of a topic whose replicas are all deleted.

        Kafka deletes the configuration after the topic's znode. The name is free then, and the
        configuration may already be that of another topic.
        """
        await self._replicas.change(replicas, ReplicaState.NON_EXISTENT)
        await self._term.fenced.delete_topic(topic)
        self._context.remove_topic(topic)
        self._term.events.record(
            EventKind.TOPIC_DELETED,
            "all replicas reported that their logs are deleted",
            topic=topic,
        )

    async def fail(self, replicas: Sequence[Replica], why: str) -> None:
        """Make the topics of these replicas wait until their brokers register again."""
        for topic in dict.fromkeys(replica.partition.topic for replica in replicas):
            self._mark_ineligible_for_deletion(topic, why)
        started = ReplicaState.DELETION_STARTED
        halted = [r for r in replicas if self._context.replica_state(r) is started]
        await self._replicas.change(halted, ReplicaState.DELETION_INELIGIBLE)
        await self.resume()

    def on_stop_replica_response(
        self, broker_id: int, request: StopReplicaRequest, response: StopReplicaResponse
    ) -> None:
        """Enqueue the response if its request deletes replicas."""
        if any(p.delete_partition for p in request.partitions):
            self._term.enqueue(
                f"StopReplica answered by broker {broker_id}",
                partial(self._on_replicas_deleted, broker_id, request, response),
            )

    async def _on_replicas_deleted(
        self, broker_id: int, request: StopReplicaRequest, response: StopReplicaResponse
    ) -> None:
        """Record which replicas are deleted, and which deletions failed.

        INCONSISTENT_TOPIC_ID means that the broker has a log of another topic of the same name, so
        the log to delete is gone. The answer of an earlier incarnation of the broker is ignored:
        the present one is asked when it registers.
        """
        broker = self._context.brokers.get(broker_id)
        if broker is None or broker.epoch != request.broker_epoch:
            return
        errors = {(p.topic, p.partition): p.error_code for p in response.partitions}
        failed: list[Replica] = []
        deleted: list[Replica] = []
        for item in request.partitions:
            if not item.delete_partition:
                continue
            partition = TopicPartition(item.topic, item.partition)
            replica = Replica(partition, broker_id)
            if self._context.replica_state(
                replica
            ) is not ReplicaState.DELETION_STARTED or item.topic_id != self._context.topic_ids.get(
                item.topic, ""
            ):
                continue
            error = response.error_code or errors.get(partition, ErrorCode.NONE)
            is_gone = error in (ErrorCode.NONE, ErrorCode.INCONSISTENT_TOPIC_ID)
            (deleted if is_gone else failed).append(replica)
        await self._replicas.change(deleted, ReplicaState.DELETION_SUCCESSFUL)
        if failed:
            await self.fail(failed, f"broker {broker_id} could not delete its replicas")
        elif deleted:
            await self.resume()
