"""LeaderAndIsr and StopReplica: the controller decides what this broker leads, follows and deletes.

One such request is handled at a time. Logs are opened first, off the event loop; then all roles of
a request change without an await between them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from barnabas_common.errors import KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import (
    HeldRole,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
)
from barnabas_common.messages.sentinels import EPOCH_DURING_DELETE, NO_EPOCH
from barnabas_common.runtime import PausePoint, Pauses
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.config import Config, InvalidConfig, LogConfig
from barnabas_broker.log.errors import LostLogError
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.controller_fence import ControllerFence
from barnabas_broker.replica.damaged_replicas import DamagedReplicas
from barnabas_broker.replica.epoch_refusals import held_role, is_below_log, refusal_with_role
from barnabas_broker.replica.follower.replica_fetcher_manager import ReplicaFetcherManager
from barnabas_broker.replica.leader.environment import LeaderEnvironment
from barnabas_broker.replica.partition.partition import DamagedReplicaError, Partition
from barnabas_broker.replica.partition.partitions import Partitions
from barnabas_broker.replica.role_listeners import RoleListener, RoleListeners
from barnabas_broker.replica.topic_identity import same_topic
from barnabas_broker.replica.vanished import VanishedReplicas

logger = logging.getLogger(__name__)

NO_CAUSE = "the controller requested it"


@dataclass(frozen=True)
class RolesContext:
    """The parts that a change of role touches.

    `replica_lost` has the broker registered again, as one that has lost records.
    """

    config: Config
    log_manager: LogManager
    topic_config: Callable[[str], Awaitable[dict[str, str]]]
    environment: LeaderEnvironment
    fence: ControllerFence
    damaged: DamagedReplicas
    vanished: VanishedReplicas
    replica_lost: Callable[[str], None]
    pauses: Pauses | None = None


class Roles:
    """Changes the roles of partitions, and notifies the listeners of it."""

    def __init__(
        self, partitions: Partitions, fetchers: ReplicaFetcherManager, context: RolesContext
    ) -> None:
        self._partitions = partitions
        self._fetchers = fetchers
        self._context = context
        self._listeners = RoleListeners()
        self._one_at_a_time = asyncio.Lock()

    def add_listener(self, topic: str, listener: RoleListener) -> None:
        """Notify a listener of the partitions of a topic that are led now, and of every change."""
        self._listeners.add(topic, listener, self._partitions)

    async def configure_logs(
        self, topic: str | None, config_of: Callable[[str], LogConfig]
    ) -> None:
        """Call `LogManager.configure`, but not while logs are opened with earlier settings."""
        async with self._one_at_a_time:
            self._context.log_manager.configure(topic, config_of)

    # ---- LeaderAndIsr

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Take the given roles; each partition of the request succeeds or fails separately."""
        async with self._one_at_a_time:
            refusal = self._context.fence.check(request)
            if refusal:
                return LeaderAndIsrResponse(
                    refusal, controller_epoch=self._context.fence.controller_epoch
                )
            self._fetchers.learn(request.live_leaders, self._context.config.inter_broker_listener)
            outcomes = [self._check(partition_state) for partition_state in request.partitions]
            accepted = [i for i, outcome in enumerate(outcomes) if outcome is ErrorCode.NONE]
            if self._context.pauses is not None:
                await self._context.pauses.at(PausePoint.ROLE_BEFORE_CHANGE)
            logs = await self._open_logs([request.partitions[index] for index in accepted])
            for index, log in zip(accepted, logs, strict=True):
                if isinstance(log, ErrorCode):
                    outcomes[index] = log
                else:
                    outcomes[index] = self._make_leader_or_follower(request.partitions[index], log)
            self._report_failures(request.partitions, outcomes)
            return LeaderAndIsrResponse(
                partitions=[
                    PartitionError(partition_state.topic, partition_state.partition, outcome)
                    for partition_state, outcome in zip(request.partitions, outcomes, strict=True)
                ],
                held=self._held(request.partitions, outcomes),
            )

    def _held(
        self, partition_states: Sequence[LeaderAndIsrPartition], outcomes: Sequence[ErrorCode]
    ) -> list[HeldRole]:
        """The roles that this broker holds where it refused the controller's leader epoch."""
        held = []
        for partition_state, outcome in zip(partition_states, outcomes, strict=True):
            key = TopicPartition(partition_state.topic, partition_state.partition)
            if outcome is ErrorCode.STALE_CONTROLLER_EPOCH:
                log = self._context.log_manager.get(key)
                broker_id = self._context.environment.broker_id
                found = held_role(partition_state, broker_id, self._partitions.get(key), log)
                held += [] if found is None else [found]
        return held

    def _report_failures(
        self, partition_states: Sequence[LeaderAndIsrPartition], outcomes: Sequence[ErrorCode]
    ) -> None:
        """Record the roles that were not taken, except those that merely came late."""
        for partition_state, outcome in zip(partition_states, outcomes, strict=True):
            if outcome not in (ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH):
                self._context.environment.events.record(
                    EventKind.ROLE_REFUSED,
                    f"this broker answered {outcome.name}",
                    TopicPartition(partition_state.topic, partition_state.partition),
                    leader=partition_state.leader,
                    leader_epoch=partition_state.leader_epoch,
                    appointed_because=partition_state.cause,
                )

    def _check(self, partition_state: LeaderAndIsrPartition) -> ErrorCode:
        """Return NONE if a role can be taken, else why not. As in Kafka, its epoch must be new."""
        key = TopicPartition(partition_state.topic, partition_state.partition)
        partition = self._partitions.get(key)
        if self._context.environment.broker_id not in partition_state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition is not None and partition.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if partition_state.tell_only:
            return refusal_with_role(self._context.log_manager, key, partition_state)
        if partition is None:
            return ErrorCode.NONE
        if not same_topic(partition.topic_id, partition_state.topic_id):
            names = partition.topic_partition, partition_state.topic_id, partition.topic_id
            logger.error("%s: the controller sent topic id %s, the log here has %s", *names)
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if self._context.damaged.refuses(partition_state):
            return self._step_down(partition, partition_state)
        # Under a newer leader epoch any partition epoch is new: the state znode, whose version it
        # is, may have been deleted and created again. (Kafka compares both.)
        newest = partition.leader_epoch
        if partition_state.leader_epoch > newest:
            return ErrorCode.NONE
        if partition_state.leader_epoch < newest:
            self._report_fenced(partition_state, newest, f"it is {newest} now")
            return ErrorCode.STALE_CONTROLLER_EPOCH
        is_older = partition_state.partition_epoch < partition.partition_epoch
        is_repeated = is_older or not partition.waits_for_role
        return ErrorCode.STALE_CONTROLLER_EPOCH if is_repeated else ErrorCode.NONE

    def _step_down(self, partition: Partition, partition_state: LeaderAndIsrPartition) -> ErrorCode:
        """Refuse a role because the log is damaged and other members of the ISR have the rest."""
        self._fetchers.stop([partition.topic_partition])
        self._context.damaged.step_down(partition, partition_state)
        self._listeners.stopped(partition.topic_partition)
        return ErrorCode.CORRUPT_MESSAGE

    def _report_fenced(
        self, partition_state: LeaderAndIsrPartition, leader_epoch: int, why: str
    ) -> None:
        self._context.environment.events.record(
            EventKind.REQUEST_FENCED,
            f"a LeaderAndIsr with leader epoch {partition_state.leader_epoch} came late, {why}",
            TopicPartition(partition_state.topic, partition_state.partition),
            error=ErrorCode.STALE_CONTROLLER_EPOCH.name,
            requested_epoch=partition_state.leader_epoch,
            leader_epoch=leader_epoch,
        )

    async def _open_logs(
        self, partition_states: Sequence[LeaderAndIsrPartition]
    ) -> list[UnifiedLog | ErrorCode]:
        """Load or create the log of each partition, concurrently because each takes an fsync."""
        configs: dict[str, dict[str, str] | ErrorCode] = {}
        for partition_state in partition_states:
            key = TopicPartition(partition_state.topic, partition_state.partition)
            if partition_state.topic not in configs and self._open_log(key) is None:
                configs[partition_state.topic] = await self._topic_config(partition_state.topic)
        return list(
            await asyncio.gather(
                *(
                    self._open(partition_state, configs.get(partition_state.topic, {}))
                    for partition_state in partition_states
                )
            )
        )

    def _open_log(self, key: TopicPartition) -> UnifiedLog | None:
        partition = self._partitions.get(key)
        return partition.log if partition is not None else None

    async def _topic_config(self, topic: str) -> dict[str, str] | ErrorCode:
        try:
            return await self._context.topic_config(topic)
        except InvalidConfig as error:
            # The controller treats this replica as offline; one with valid settings may lead.
            logger.error("topic %s: %s", topic, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        except Exception as error:
            # Never serve it without min.insync.replicas: a new session brings the role again.
            logger.error("cannot read the configuration of topic %s: %s", topic, error)
            return ErrorCode.UNKNOWN_SERVER_ERROR

    async def _open(
        self, partition_state: LeaderAndIsrPartition, overrides: dict[str, str] | ErrorCode
    ) -> UnifiedLog | ErrorCode:
        key = TopicPartition(partition_state.topic, partition_state.partition)
        log = self._open_log(key)
        if log is not None:
            return log
        if isinstance(overrides, ErrorCode):
            return overrides
        if self._context.vanished.must_not_be_empty(partition_state):
            self._report_lost(key, partition_state)
            return ErrorCode.KAFKA_STORAGE_ERROR
        was_lost, found = key in self._context.log_manager.lost, self._context.log_manager.get(key)
        try:
            config = self._context.config.log_config(overrides)
            log = await self._context.log_manager.get_or_create(
                key,
                partition_state.topic_id,
                config,
                partition_state.is_new,
                is_first=partition_state.is_first,
                in_sync=self._context.environment.broker_id in partition_state.in_sync_replicas,
                has_leader=partition_state.leader >= 0,
            )
        except InvalidConfig as error:
            logger.error("%s: the configuration of its topic is invalid: %s", key, error)
            return ErrorCode.INVALID_CONFIG
        except KafkaError as error:
            logger.error("%s: cannot open the log: %s", key, error)
            if isinstance(error, LostLogError):
                self._report_lost(key, partition_state)
                return ErrorCode.CORRUPT_MESSAGE
            return error.code
        if found is not None and log is not found:
            self._context.environment.events.record(
                EventKind.REPLICA_STRAY,
                f"the log that was found here is of topic id {found.topic_id}, not {log.topic_id}:"
                " its folder is renamed, and stays until an operator deletes it",
                key,
            )
        if was_lost and log.cut_at_start:
            self._context.environment.events.record(
                EventKind.LOG_RECOVERED,
                log.cut_at_start,
                key,
                log_end_offset=log.log_end_offset,
                high_watermark=log.high_watermark,
            )
        return log

    def _report_lost(self, key: TopicPartition, partition_state: LeaderAndIsrPartition) -> None:
        self._context.environment.events.record(
            EventKind.REPLICA_OFFLINE,
            "its log is lost or damaged, and one that holds less must not take its place:"
            f" the ISR is {partition_state.in_sync_replicas}, the leader"
            f" {partition_state.leader}",
            key,
        )

    def _make_leader_or_follower(
        self, partition_state: LeaderAndIsrPartition, log: UnifiedLog
    ) -> ErrorCode:
        """Change one partition's role; nothing awaits between its first and its last step."""
        context = self._context
        key = TopicPartition(partition_state.topic, partition_state.partition)
        partition = self._partitions.get(key)
        if partition is not None and partition.offline:
            # Its directory failed while other logs were opened.
            return ErrorCode.KAFKA_STORAGE_ERROR
        leads = partition_state.leader == context.environment.broker_id
        if is_below_log(partition_state, leads, partition, log):
            newest = log.latest_epoch() or 0
            self._report_fenced(partition_state, newest, f"the log here has records of {newest}")
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if partition is None:
            partition = Partition(key, context.environment)
            self._partitions.add(partition)
        context.damaged.take_note(log)
        if context.damaged.refuses(partition_state):
            return self._step_down(partition, partition_state)
        self._fetchers.stop([key])
        try:
            if leads:
                partition.become_leader(partition_state, log)
                if partition.leadership is not None:
                    context.damaged.leads(partition.leadership)
            else:
                partition.become_follower(partition_state, log)
                context.damaged.mend(partition)
                self._fetchers.follow(partition)
        except KafkaError as error:
            logger.error("%s: cannot take the role given: %s", key, error)
            self._give_up(partition, error)
            return error.code
        self._listeners.role_taken(partition)
        context.vanished.role_taken(key, partition_state.topic_id)
        return ErrorCode.NONE

    # ---- StopReplica

    async def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop replicas, and delete those that the request wants deleted with their logs."""
        async with self._one_at_a_time:
            refusal = self._context.fence.check(request)
            if refusal:
                return StopReplicaResponse(
                    refusal, controller_epoch=self._context.fence.controller_epoch
                )
            return StopReplicaResponse(
                partitions=[
                    PartitionError(item.topic, item.partition, await self._stop(item))
                    for item in request.partitions
                ]
            )

    async def _stop(self, item: StopReplicaPartition) -> ErrorCode:
        key = TopicPartition(item.topic, item.partition)
        partition = self._partitions.get(key)
        if self._is_of_another_topic(key, item):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if partition is not None:
            if partition.offline:
                return ErrorCode.KAFKA_STORAGE_ERROR
            if (
                item.leader_epoch not in (NO_EPOCH, EPOCH_DURING_DELETE)
                and item.leader_epoch < partition.leader_epoch
            ):
                return ErrorCode.FENCED_LEADER_EPOCH
            self._fetchers.leave(key)
            if not item.delete_partition:
                partition.stop_following()
                self._context.environment.events.record(
                    EventKind.REPLICA_STOPPED,
                    item.cause or NO_CAUSE,
                    key,
                    leader_epoch=partition.leader_epoch,
                )
            partition.delayed_operations.leadership_ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            if item.delete_partition:
                self._drop(partition)
            self._listeners.stopped(key)
        if not item.delete_partition:
            return ErrorCode.NONE
        self._context.environment.events.record(
            EventKind.REPLICA_DELETED, item.cause or NO_CAUSE, key
        )
        if self._context.vanished.removed(key):
            self._context.replica_lost(f"{key} was deleted here while this replica was in the ISR")
        return await self._delete_log(key)

    def _is_of_another_topic(self, key: TopicPartition, item: StopReplicaPartition) -> bool:
        """Whether the log here, hosted or not, belongs to another topic of that name."""
        log = self._context.log_manager.get(key)
        if log is None or same_topic(log.topic_id, item.topic_id):
            return False
        self._context.environment.events.record(
            EventKind.REQUEST_FENCED,
            f"a StopReplica for topic id {item.topic_id} came, and the log here is of topic id"
            f" {log.topic_id}, another topic of that name",
            key,
            error=ErrorCode.INCONSISTENT_TOPIC_ID.name,
            requested_topic_id=item.topic_id,
            topic_id=log.topic_id,
        )
        return True

    async def leave(self, key: TopicPartition, is_stray: Callable[[], bool], why: str) -> None:
        """Give up the role of a partition that is not assigned to this broker; the log stays.

        `is_stray` is asked again: the replica may have got a role, or be gone, meanwhile.
        """
        async with self._one_at_a_time:
            if not is_stray():
                return
            partition = self._partitions.get(key)
            self._fetchers.leave(key)
            if partition is not None:
                self._drop(partition)
                self._listeners.stopped(key)
            self._context.vanished.removed(key)
            self._context.log_manager.unassign(key)
            self._context.environment.events.record(
                EventKind.REPLICA_STRAY,
                f"{why}; its log stays until an operator deletes it",
                key,
                leader_epoch=NO_EPOCH if partition is None else partition.leader_epoch,
            )

    def _drop(self, partition: Partition) -> None:
        partition.stop()
        self._partitions.remove(partition.topic_partition)
        self._context.damaged.forget(partition.topic_partition)

    def damaged(self, partition: Partition, error: DamagedReplicaError) -> None:
        """A follower cannot truncate its log, or read what is left."""
        self._fetchers.stop([partition.topic_partition])
        self._give_up(partition, error)

    def _give_up(self, partition: Partition, error: KafkaError) -> None:
        """Have no role; with a damaged log, ask for it again."""
        key = partition.topic_partition
        partition.give_up_role()
        self._listeners.stopped(key)
        if isinstance(error, DamagedReplicaError):
            self._context.damaged.found_by_follower(key, error.offset, error.message)

    def go_offline(self, partition: Partition, directory: str) -> None:
        """The log directory of a partition has failed."""
        self._fetchers.stop([partition.topic_partition])
        partition.go_offline(f"its log directory {directory} has failed")
        self._listeners.stopped(partition.topic_partition)

    async def _delete_log(self, key: TopicPartition) -> ErrorCode:
        try:
            await self._context.log_manager.delete(key)
        except KafkaError as error:
            logger.error("%s: cannot delete the log: %s", key, error)
            return error.code
        return ErrorCode.NONE
