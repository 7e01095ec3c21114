"""The parts of the active controller, wired together for one controller term."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventLog
from barnabas_common.messages.control import LeaderAndIsrRequest, StopReplicaRequest
from barnabas_common.runtime import Message, Runtime, TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.brokers.broker_changes import BrokerChanges
from barnabas_controller.brokers.controlled_shutdown import ControlledShutdown
from barnabas_controller.brokers.log_dir_event_notifications import log_dir_event_notifications
from barnabas_controller.channels.controller_channel_manager import ControllerChannelManager
from barnabas_controller.channels.request_batch import ControlRequest
from barnabas_controller.config import ControllerConfig
from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.partitions.epoch_refusals import EpochRefusals
from barnabas_controller.partitions.isr_changes import IsrChanges
from barnabas_controller.partitions.isr_notifications import isr_notifications
from barnabas_controller.partitions.leader_elections import LeaderElections
from barnabas_controller.partitions.partition_state_machine import PartitionStateMachine
from barnabas_controller.partitions.preferred_rebalance import PreferredRebalance
from barnabas_controller.partitions.replica_state_machine import ReplicaStateMachine
from barnabas_controller.partitions.unconfirmed_states import (
    NewestState,
    UnconfirmedStates,
    no_state,
)
from barnabas_controller.reassignment.reassignment_requests import ReassignmentRequests
from barnabas_controller.reassignment.reassignments import Reassignments
from barnabas_controller.state.context import ControllerContext
from barnabas_controller.state.states import ReplicaState
from barnabas_controller.store.fenced_store import FencedStore
from barnabas_controller.store.store import WrittenState
from barnabas_controller.topics.topic_changes import TopicChanges
from barnabas_controller.topics.topic_deletion_manager import TopicDeletionManager
from barnabas_controller.topics.topic_growth import TopicGrowth

logger = logging.getLogger(__name__)


class ActiveController:
    """Created when an election is won, closed when the term ends.

    `enqueue(active, name, handler)` puts an event on the controller's queue; it is dropped if
    `active` is no longer the active controller when its turn comes.
    """

    def __init__(
        self,
        broker_id: int,
        runtime: Runtime,
        settings: Callable[[], ControllerConfig],
        store: FencedStore,
        events: EventLog,
        enqueue: Callable[["ActiveController", str, Callable[[], Awaitable[None]]], None],
        newest_state: NewestState = no_state,
    ) -> None:
        channels = ControllerChannelManager(
            runtime,
            settings(),
            self._on_response,
            lambda broker, why: self.brokers.suspect(broker, why),
            broker_id,
        )
        self.term = term = ControllerTerm(
            broker_id,
            runtime,
            settings,
            ControllerContext(),
            store,
            channels,
            lambda name, handler: enqueue(self, name, handler),
            events,
            self._on_repaired,
            self._ask_all,
        )
        self.partitions = PartitionStateMachine(term)
        self.replicas = ReplicaStateMachine(term)
        self.epoch_refusals = EpochRefusals(term, self.partitions, self._ask_all, self._on_answered)
        self.unconfirmed = UnconfirmedStates(
            term, self.partitions, self.epoch_refusals, newest_state
        )
        self.deletion = TopicDeletionManager(term, self.partitions, self.replicas)
        self.reassignments = Reassignments(term, self.partitions, self.replicas, self.deletion)
        on_changed = self.reassignments.on_topic_changed
        on_mended = self.deletion.read_requests
        self.topics = TopicChanges(term, self.partitions, self.replicas, on_changed, on_mended)
        self.reassignment_requests = ReassignmentRequests(term, self.reassignments)
        self.growth = TopicGrowth(term)
        self.brokers = BrokerChanges(
            term,
            self.partitions,
            self.replicas,
            self.deletion,
            self.reassignments,
            self.unconfirmed,
        )
        self.log_dir_events = log_dir_event_notifications(term, self.replicas)
        self.isr_notifications = isr_notifications(term, self.reassignments.on_isr_changed)
        self.elections = LeaderElections(term, self.partitions, self.unconfirmed)
        self.isr_changes = IsrChanges(term, self.reassignments.on_isr_changed)
        self.shutdown = ControlledShutdown(term, self.partitions, self.replicas)
        self._rebalance = PreferredRebalance(term, self.partitions)
        self._scope = TaskScope(f"controller epoch {store.epoch.number}")

    def start_timers(self) -> None:
        """Start the preferred leader rebalance, which ends with the term."""
        self._scope.spawn(self._rebalance.run(), "preferred leader rebalance")

    def _on_response(self, broker_id: int, request: ControlRequest, response: Message) -> None:
        if response.error_code != ErrorCode.NONE:
            name, code = type(request).__name__, response.error_code
            logger.warning("%s: broker %d answered error %d", name, broker_id, code)
        self.epoch_refusals.on_response(broker_id, request, response)
        if isinstance(request, LeaderAndIsrRequest):
            if response.held:
                self.unconfirmed.on_held(broker_id, request, response)
                self.partitions.log_queries.on_held(broker_id, request, response)
            self.brokers.on_leader_and_isr_response(broker_id, request, response)
        elif isinstance(request, StopReplicaRequest):
            self.deletion.on_stop_replica_response(broker_id, request, response)

    async def _on_repaired(self, states: Mapping[TopicPartition, WrittenState], cause: str) -> None:
        """Do for some partitions, whose znodes were invalid, what a failover does for all."""
        context = self.term.context
        for partition, written in states.items():
            context.leadership[partition] = written.state
            if context.assignment(partition).is_being_reassigned:
                context.reassigning[partition] = None
        self.unconfirmed.find(states)
        written_at = {partition: written.zxid for partition, written in states.items()}
        unknown = self.unconfirmed.unknown_members(written_at)
        await self.partitions.handle_unclean_shutdown(written_at, cause, unknown)
        for partition in states:
            self.partitions.adopt(partition)
        await self.replicas.adopt(states, cause)
        for topic in dict.fromkeys(partition.topic for partition in states):
            await self.partitions.elect_where_missing(cause, topic)
        # A leader that has asked for another ISR in the meantime waits for the state.
        await self.isr_changes.announce(
            [
                partition
                for partition, written in states.items()
                if context.leadership[partition].leader_epoch == written.state.leader_epoch
            ]
        )
        self.term.update_metadata(context.registered_brokers(), list(states))
        await self._resume_reassignments(states, cause)

    def _ask_all(self, partitions: list[TopicPartition]) -> None:
        self.unconfirmed.ask_all(partitions)

    async def _on_answered(self, partitions: list[TopicPartition]) -> None:
        """Do what was put off until the replicas had said what they hold."""
        context, cause = self.term.context, "its replicas have said what they hold"
        led = [p for p in partitions if context.is_online(context.leadership[p].leader, p)]
        offline = [
            replica
            for replica in context.replicas_of(led)
            if not context.is_online(replica.broker_id, replica.partition)
        ]
        why = f"{cause}; its offline members leave the ISR"
        await self.replicas.change(offline, ReplicaState.OFFLINE, why)
        await self._resume_reassignments(partitions, cause)

    async def _resume_reassignments(self, partitions: Iterable[TopicPartition], cause: str) -> None:
        context = self.term.context
        for partition in partitions:
            if partition in context.reassigning:
                await self.reassignments.go_on(partition, context.assignment(partition), cause)

    async def close(self) -> None:
        """End all tasks and connections of the term."""
        await self._scope.close()
        await self.term.channels.close()
