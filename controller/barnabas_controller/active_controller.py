"""The parts of an elected controller, wired together for one reign."""

import logging
from collections.abc import Awaitable, Callable

from barnabas.error_code import ErrorCode
from barnabas.events import EventLog
from barnabas.messages.control import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
)
from barnabas.runtime import Message, Runtime, TaskScope
from barnabas.topic_partition import TopicPartition

from barnabas_controller.broker_changes import BrokerChanges
from barnabas_controller.broker_channels import BrokerChannels
from barnabas_controller.config import ControllerConfig
from barnabas_controller.context import ControllerContext
from barnabas_controller.controlled_shutdown import ControlledShutdown
from barnabas_controller.disk_failures import DiskFailures
from barnabas_controller.fenced_store import FencedStore
from barnabas_controller.isr_changes import IsrChanges
from barnabas_controller.isr_notifications import IsrNotifications
from barnabas_controller.leader_elections import LeaderElections
from barnabas_controller.partition_states import PartitionStateMachine
from barnabas_controller.preferred_rebalance import PreferredRebalance
from barnabas_controller.reassignment_requests import ReassignmentRequests
from barnabas_controller.reassignments import Reassignments
from barnabas_controller.reign import Reign
from barnabas_controller.replica_states import ReplicaStateMachine
from barnabas_controller.request_batch import ControlRequest
from barnabas_controller.topic_changes import TopicChanges
from barnabas_controller.topic_deletion import TopicDeletion
from barnabas_controller.topic_growth import TopicGrowth
from barnabas_controller.znodes import Broker

logger = logging.getLogger(__name__)


class ActiveController:
    """Made when an election is won, closed when the reign ends.

    `enqueue(active, name, handler)` puts an event on the controller's queue; it is dropped if this
    is no longer the active controller when its turn comes.
    """

    def __init__(
        self,
        broker_id: int,
        runtime: Runtime,
        settings: Callable[[], ControllerConfig],
        store: FencedStore,
        events: EventLog,
        enqueue: Callable[["ActiveController", str, Callable[[], Awaitable[None]]], None],
    ) -> None:
        self.reign = Reign(
            broker_id,
            runtime,
            settings,
            ControllerContext(),
            store,
            BrokerChannels(runtime, settings(), self._on_response, self._on_evidence, broker_id),
            lambda name, handler: enqueue(self, name, handler),
            events,
            self._on_mended,
        )
        reign = self.reign
        self.partitions = PartitionStateMachine(reign)
        self.replicas = ReplicaStateMachine(reign)
        self.deletion = TopicDeletion(reign, self.partitions, self.replicas)
        self.topics = TopicChanges(reign, self.partitions, self.replicas)
        self.reassignments = Reassignments(reign, self.partitions, self.replicas, self.deletion)
        self.reassignment_requests = ReassignmentRequests(reign, self.reassignments)
        self.growth = TopicGrowth(reign)
        self.brokers = BrokerChanges(
            reign, self.partitions, self.replicas, self.deletion, self.reassignments
        )
        self.disks = DiskFailures(reign, self.replicas)
        self.isr_notifications = IsrNotifications(reign, self.reassignments.on_isr_changed)
        self.elections = LeaderElections(reign, self.partitions)
        self.isr_changes = IsrChanges(reign, self.reassignments.on_isr_changed)
        self.shutdown = ControlledShutdown(reign, self.partitions, self.replicas)
        self._rebalance = PreferredRebalance(reign, self.partitions)
        self._scope = TaskScope(f"controller epoch {store.epoch.number}")

    async def _on_mended(self, partition: TopicPartition) -> None:
        """A partition's state is known again: what a failover does for all, for this one."""
        context, cause = self.reign.context, "its state znode was mended"
        self.partitions.adopt(partition)
        await self.replicas.adopt([partition], cause)
        await self.partitions.elect_where_missing(cause, partition.topic)
        self.reign.update_metadata(context.registered_brokers(), [partition])
        if partition in context.reassigning:
            assignment = context.assignment(partition)
            await self.reassignments.go_on(partition, assignment, cause)

    def start_timers(self) -> None:
        self._scope.spawn(self._rebalance.run(), "preferred leader rebalance")

    def _on_evidence(self, broker: Broker, evidence: str) -> None:
        self.reign.enqueue(
            f"broker {broker.broker_id} seems to be dead",
            lambda: self.brokers.on_evidence(broker, evidence),
        )

    def _on_response(self, broker_id: int, request: ControlRequest, response: Message) -> None:
        """Only answers that can change something get a turn on the queue."""
        if response.error_code != ErrorCode.NONE:
            logger.warning(
                "%s: broker %d answered error %d",
                type(request).__name__,
                broker_id,
                response.error_code,
            )
        if isinstance(request, LeaderAndIsrRequest):
            answered: LeaderAndIsrResponse = response
            if self._tells_of_disks(broker_id, answered):
                self.reign.enqueue(
                    f"LeaderAndIsr answered by broker {broker_id}",
                    lambda: self.brokers.on_leader_and_isr_answered(broker_id, answered),
                )
        elif isinstance(request, StopReplicaRequest):
            stopped: StopReplicaResponse = response
            if any(partition.delete_partition for partition in request.partitions):
                self.reign.enqueue(
                    f"StopReplica answered by broker {broker_id}",
                    lambda: self.deletion.on_stopped(broker_id, request, stopped),
                )

    def _tells_of_disks(self, broker_id: int, response: LeaderAndIsrResponse) -> bool:
        return bool(self.reign.context.failed_replicas.get(broker_id)) or any(
            partition.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            for partition in response.partitions
        )

    async def close(self) -> None:
        """End all tasks and connections of the reign."""
        await self._scope.close()
        await self.reign.channels.close()
