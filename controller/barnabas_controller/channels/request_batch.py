"""The requests of one step of the controller, collected per broker and sent together.

Every broker receives LeaderAndIsr first, then UpdateMetadata, then StopReplica. Each partition of a
LeaderAndIsr is also sent to all brokers as metadata. Only registered brokers receive requests.
"""

from collections.abc import Iterable, Iterator

from barnabas_common.messages.control import (
    BrokerEndpoint,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    StopReplicaPartition,
    StopReplicaRequest,
    SuspectedBroker,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
)
from barnabas_common.messages.sentinels import (
    EPOCH_DURING_DELETE,
    LEADER_DURING_DELETE,
    NO_EPOCH,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.state.context import ControllerContext
from barnabas_controller.store.leader_and_isr import NOT_CREATED, LeaderAndIsr
from barnabas_controller.store.znodes import Broker

ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest


class RequestBatch:
    """Collects requests; `requests` returns them.

    LeaderAndIsr and StopReplica contain what the context had when they were added, UpdateMetadata
    and all endpoints what it has when `requests` is called. So a batch belongs to one event.
    `listener` names the listener on which brokers connect to each other.
    """

    def __init__(
        self, context: ControllerContext, controller_id: int, controller_epoch: int, listener: str
    ) -> None:
        self._context = context
        self._sender = (controller_id, controller_epoch)
        self._listener = listener
        self._leaders: dict[int, dict[TopicPartition, LeaderAndIsrPartition]] = {}
        self._metadata: dict[TopicPartition, None] = {}
        self._informed: dict[int, None] = {}
        self._names_all_topics = False
        self._stops: dict[int, dict[TopicPartition, StopReplicaPartition]] = {}

    def leader_and_isr(
        self,
        broker_ids: Iterable[int],
        partition: TopicPartition,
        state: LeaderAndIsr,
        is_new: bool = False,
        cause: str = "",
        tell_only: bool = False,
    ) -> None:
        """Make these brokers leader and followers, and send all brokers the metadata.

        `is_new` means that the replica need not have a log yet; it stays set for a replica within
        the batch. The receiver records `cause` in its event. With `tell_only` it takes no role, and
        answers with what it holds.
        """
        for broker_id in broker_ids:
            known = self._leaders.setdefault(broker_id, {})
            before = known.get(partition)
            new = is_new or (before is not None and before.is_new)
            known[partition] = self._leader_partition(partition, state, new, cause, tell_only)
        if not tell_only:
            self.update_metadata(self._context.registered_brokers(), [partition])

    def _leader_partition(
        self,
        partition: TopicPartition,
        state: LeaderAndIsr,
        is_new: bool,
        cause: str,
        tell_only: bool,
    ) -> LeaderAndIsrPartition:
        assignment = self._context.assignment(partition)
        return LeaderAndIsrPartition(
            topic=partition.topic,
            partition=partition.partition,
            topic_id=self._context.topic_ids.get(partition.topic, ""),
            controller_epoch=state.controller_epoch,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            in_sync_replicas=list(state.isr),
            replicas=list(assignment.replicas),
            adding_replicas=list(assignment.adding),
            removing_replicas=list(assignment.removing),
            is_new=is_new,
            leader_recovery_state=state.recovery_state,
            cause=cause,
            tell_only=tell_only or partition in self._context.unconfirmed,
            eligible_leader_replicas=list(state.eligible),
        )

    def update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Send these brokers which brokers are alive, and who leads these partitions."""
        self._informed.update(dict.fromkeys(broker_ids))
        self._metadata.update(dict.fromkeys(partitions))

    def all_metadata(self, broker_ids: Iterable[int]) -> None:
        """Send these brokers, and all others of the batch, the metadata of all topics.

        A receiver forgets the other topics: it may have missed their deletion.
        """
        self.update_metadata(broker_ids, self._context.partitions())
        self._names_all_topics = True

    def stop_replica(
        self, broker_id: int, partition: TopicPartition, delete: bool, cause: str = ""
    ) -> None:
        """Stop a replica, or stop and delete it; `delete` stays set within the batch."""
        known = self._stops.setdefault(broker_id, {})
        before = known.get(partition)
        state = self._context.leadership.get(partition)
        if self._context.is_being_deleted(partition.topic):
            leader_epoch = EPOCH_DURING_DELETE
        else:
            leader_epoch = NO_EPOCH if state is None else state.leader_epoch
        known[partition] = StopReplicaPartition(
            partition.topic,
            partition.partition,
            leader_epoch,
            delete or (before is not None and before.delete_partition),
            cause,
            self._context.topic_ids.get(partition.topic, ""),
        )

    def requests(self) -> list[tuple[Broker, ControlRequest]]:
        """All requests with their receivers, in the order in which they must be sent."""
        return [*self._leader_requests(), *self._metadata_requests(), *self._stop_requests()]

    def _registered(self, broker_ids: Iterable[int]) -> list[Broker]:
        brokers = self._context.brokers
        return [brokers[broker_id] for broker_id in sorted(broker_ids) if broker_id in brokers]

    def _leader_requests(self) -> Iterator[tuple[Broker, ControlRequest]]:
        for broker in self._registered(self._leaders):
            partitions = list(self._leaders[broker.broker_id].values())
            leaders = self._registered({partition.leader for partition in partitions})
            endpoints = [
                endpoint
                for leader in leaders
                for endpoint in _endpoints(leader)
                if endpoint.listener == self._listener
            ]
            yield (
                broker,
                LeaderAndIsrRequest(*self._sender, broker.epoch, partitions, endpoints),
            )

    def _metadata_requests(self) -> Iterator[tuple[Broker, ControlRequest]]:
        context = self._context
        # A partition of a topic being deleted may have no state any more, or a malformed one.
        partitions = [
            self._metadata_partition(partition, context.leadership.get(partition, NOT_CREATED))
            for partition in self._metadata
            if partition in context.leadership or context.is_being_deleted(partition.topic)
        ]
        # Clients spread keys over all partitions, so they must know of these too.
        without_state = [
            self._metadata_partition(partition, NOT_CREATED)
            for partition in self._metadata
            if partition not in context.leadership and not context.is_being_deleted(partition.topic)
        ]
        endpoints = [
            endpoint
            for broker in self._registered(context.brokers)
            for endpoint in _endpoints(broker)
        ]
        suspected = [SuspectedBroker(b, context.suspects[b]) for b in context.suspected_brokers()]
        stopping = sorted(context.shutting_down)
        others = self._other_topics() if self._names_all_topics else []
        for broker in self._registered(self._informed):
            yield (
                broker,
                UpdateMetadataRequest(
                    *self._sender,
                    broker.epoch,
                    partitions,
                    endpoints,
                    suspected,
                    stopping,
                    self._names_all_topics,
                    others,
                    partitions_without_state=without_state,
                ),
            )

    def _other_topics(self) -> list[str]:
        """The topics of which no partition has a known leadership, sorted."""
        context = self._context
        deleting = filter(context.is_being_deleted, context.assignments)
        named = {*deleting, *(partition.topic for partition in context.leadership)}
        return sorted({*context.assignments, *context.unreadable_topics} - named)

    def _metadata_partition(
        self, partition: TopicPartition, state: LeaderAndIsr
    ) -> UpdateMetadataPartition:
        deleting = self._context.is_being_deleted(partition.topic)
        # What a broker is told counts as known when it becomes controller.
        asked = self._context.unconfirmed.get(partition)
        unknown = () if asked is None else asked.unknown
        return UpdateMetadataPartition(
            topic=partition.topic,
            partition=partition.partition,
            topic_id=self._context.topic_ids.get(partition.topic, ""),
            controller_epoch=state.controller_epoch,
            leader=LEADER_DURING_DELETE if deleting else state.leader,
            leader_epoch=0 if deleting else state.leader_epoch,
            partition_epoch=state.partition_epoch,
            in_sync_replicas=[member for member in state.isr if member not in unknown],
            replicas=list(self._context.replicas(partition)),
            offline_replicas=list(self._context.offline_replicas(partition)),
            eligible_leader_replicas=list(state.eligible),
        )

    def _stop_requests(self) -> Iterator[tuple[Broker, ControlRequest]]:
        for broker in self._registered(self._stops):
            partitions = list(self._stops[broker.broker_id].values())
            yield broker, StopReplicaRequest(*self._sender, broker.epoch, partitions)


def _endpoints(broker: Broker) -> list[BrokerEndpoint]:
    return [
        BrokerEndpoint(
            broker.broker_id, e.listener, e.host, e.port, broker.rack or "", broker.epoch
        )
        for e in broker.endpoints
    ]
