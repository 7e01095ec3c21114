"""LeaderAndIsr and StopReplica: the controller's word on what this broker leads, follows and drops.

One such request at a time. Logs are opened first, off the event loop; then all roles of a request
change in one turn.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from barnabas.error_code import ErrorCode
from barnabas.errors import KafkaError
from barnabas.events import EventKind
from barnabas.messages.control import (
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
)
from barnabas.runtime import PausePoint, Pauses
from barnabas.topic_partition import TopicPartition

from barnabas_broker.config import Config, InvalidConfig, LogConfig
from barnabas_broker.log.errors import LostLogError
from barnabas_broker.log.log import Log
from barnabas_broker.log.log_manager import LogManager
from barnabas_broker.replica.controller_fence import ControllerFence
from barnabas_broker.replica.fetchers import Fetchers
from barnabas_broker.replica.leadership import LeaderEnvironment
from barnabas_broker.replica.partition import Partition
from barnabas_broker.replica.partitions import Partitions

logger = logging.getLogger(__name__)

UNKNOWN_EPOCH = -1
EPOCH_DURING_DELETE = -2


@dataclass(frozen=True)
class RolesContext:
    """The parts that a change of role touches."""

    config: Config
    log_manager: LogManager
    topic_config: Callable[[str], Awaitable[dict[str, str]]]
    environment: LeaderEnvironment
    fence: ControllerFence
    pauses: Pauses | None = None


class Roles:
    """Changes the roles of partitions."""

    def __init__(self, partitions: Partitions, fetchers: Fetchers, context: RolesContext) -> None:
        self._partitions = partitions
        self._fetchers = fetchers
        self._context = context
        self._one_at_a_time = asyncio.Lock()

    async def configure_logs(
        self, topic: str | None, config_of: Callable[[str], LogConfig]
    ) -> None:
        """See `LogManager.configure`. Never while logs are opened: the settings they are opened
        with were read earlier, and would win."""
        async with self._one_at_a_time:
            self._context.log_manager.configure(topic, config_of)

    # ---- LeaderAndIsr

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Take the roles given; each partition of the request succeeds or fails by itself."""
        async with self._one_at_a_time:
            refusal = self._context.fence.check(request)
            if refusal:
                return LeaderAndIsrResponse(refusal)
            self._fetchers.learn(request.live_leaders, self._context.config.inter_broker_listener)
            outcomes = [self._check(appointment) for appointment in request.partitions]
            accepted = [
                index for index, outcome in enumerate(outcomes) if outcome is ErrorCode.NONE
            ]
            if self._context.pauses is not None:
                await self._context.pauses.at(PausePoint.ROLE_BEFORE_CHANGE)
            logs = await self._open_logs([request.partitions[index] for index in accepted])
            for index, log in zip(accepted, logs, strict=True):
                if isinstance(log, ErrorCode):
                    outcomes[index] = log
                else:
                    outcomes[index] = self._appoint(request.partitions[index], log)
            self._report_failures(request.partitions, outcomes)
            return LeaderAndIsrResponse(
                partitions=[
                    PartitionError(appointment.topic, appointment.partition, outcome)
                    for appointment, outcome in zip(request.partitions, outcomes, strict=True)
                ]
            )

    def _report_failures(
        self, appointments: Sequence[LeaderAndIsrPartition], outcomes: Sequence[ErrorCode]
    ) -> None:
        """Roles not taken, but for those that only came late."""
        for appointment, outcome in zip(appointments, outcomes, strict=True):
            if outcome not in (ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH):
                self._context.environment.events.record(
                    EventKind.ROLE_REFUSED,
                    f"this broker answered {outcome.name}",
                    TopicPartition(appointment.topic, appointment.partition),
                    leader=appointment.leader,
                    leader_epoch=appointment.leader_epoch,
                    appointed_because=appointment.cause,
                )

    def _check(self, appointment: LeaderAndIsrPartition) -> ErrorCode:
        """Whether a role can be taken; an epoch that is not new is not (ZooKeeper mode)."""
        partition = self._partitions.get(TopicPartition(appointment.topic, appointment.partition))
        if self._context.environment.broker_id not in appointment.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition is None:
            return ErrorCode.NONE
        if partition.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if not _same_topic(partition.topic_id, appointment.topic_id):
            logger.error(
                "%s: the controller speaks of topic id %s, the log here is of %s",
                partition.topic_partition,
                appointment.topic_id,
                partition.topic_id,
            )
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if (
            appointment.leader_epoch <= partition.leader_epoch
            or appointment.partition_epoch < partition.partition_epoch
        ):
            logger.info(
                "%s: ignoring leader epoch %d of controller epoch %d, %d is current",
                partition.topic_partition,
                appointment.leader_epoch,
                appointment.controller_epoch,
                partition.leader_epoch,
            )
            if appointment.leader_epoch < partition.leader_epoch:  # else it is only said again
                self._context.environment.events.record(
                    EventKind.REQUEST_FENCED,
                    f"an appointment with leader epoch {appointment.leader_epoch} came late,"
                    f" it is {partition.leader_epoch} now",
                    partition.topic_partition,
                    error=ErrorCode.STALE_CONTROLLER_EPOCH.name,
                    requested_epoch=appointment.leader_epoch,
                    leader_epoch=partition.leader_epoch,
                )
            return ErrorCode.STALE_CONTROLLER_EPOCH
        return ErrorCode.NONE

    async def _open_logs(
        self, appointments: Sequence[LeaderAndIsrPartition]
    ) -> list[Log | ErrorCode]:
        """The log of each partition, loaded or created; side by side, for each takes an fsync."""
        configs: dict[str, dict[str, str] | ErrorCode] = {}
        for appointment in appointments:
            key = TopicPartition(appointment.topic, appointment.partition)
            if appointment.topic not in configs and self._open_log(key) is None:
                configs[appointment.topic] = await self._topic_config(appointment.topic)
        return list(
            await asyncio.gather(
                *(
                    self._open(appointment, configs.get(appointment.topic, {}))
                    for appointment in appointments
                )
            )
        )

    def _open_log(self, key: TopicPartition) -> Log | None:
        partition = self._partitions.get(key)
        return partition.log if partition is not None else None

    async def _topic_config(self, topic: str) -> dict[str, str] | ErrorCode:
        try:
            return await self._context.topic_config(topic)
        except InvalidConfig as error:
            # To the controller this replica is offline: one that knows its settings may lead.
            logger.error("topic %s: %s", topic, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        except Exception as error:
            # Without its settings (min.insync.replicas!) a topic must not be served. The session
            # that could not be read is about to be replaced, and the controller will ask again.
            logger.error("cannot read the configuration of topic %s: %s", topic, error)
            return ErrorCode.UNKNOWN_SERVER_ERROR

    async def _open(
        self, appointment: LeaderAndIsrPartition, overrides: dict[str, str] | ErrorCode
    ) -> Log | ErrorCode:
        key = TopicPartition(appointment.topic, appointment.partition)
        log = self._open_log(key)
        if log is not None:
            return log
        if isinstance(overrides, ErrorCode):
            return overrides
        try:
            config = self._context.config.log_config(overrides)
            log = await self._context.log_manager.get_or_create(
                key,
                appointment.topic_id,
                config,
                appointment.is_new,
                in_sync=self._context.environment.broker_id in appointment.in_sync_replicas,
            )
        except InvalidConfig as error:
            logger.error("%s: its topic's configuration is wrong: %s", key, error)
            return ErrorCode.INVALID_CONFIG
        except KafkaError as error:
            logger.error("%s: cannot open the log: %s", key, error)
            if isinstance(error, LostLogError):
                self._context.environment.events.record(
                    EventKind.REPLICA_OFFLINE,
                    f"it is in the ISR {appointment.in_sync_replicas}, and its log is lost:"
                    " an empty one must not take its place",
                    key,
                )
            return error.code
        return log

    def _appoint(self, appointment: LeaderAndIsrPartition, log: Log) -> ErrorCode:
        """Change one partition's role, in one turn."""
        context = self._context
        key = TopicPartition(appointment.topic, appointment.partition)
        partition = self._partitions.get(key)
        if partition is None:
            partition = Partition(key, context.environment)
            self._partitions.add(partition)
        elif partition.offline:  # its directory failed while others were opened
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._fetchers.stop([key])
        try:
            if appointment.leader == context.environment.broker_id:
                partition.become_leader(appointment, log)
            else:
                partition.become_follower(appointment, log)
                self._fetchers.follow(partition)
        except KafkaError as error:
            logger.error("%s: cannot take the role given: %s", key, error)
            return error.code
        return ErrorCode.NONE

    # ---- StopReplica

    async def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop following, and where asked delete the replica with its log."""
        async with self._one_at_a_time:
            refusal = self._context.fence.check(request)
            if refusal:
                return StopReplicaResponse(refusal)
            return StopReplicaResponse(
                partitions=[
                    PartitionError(item.topic, item.partition, await self._stop(item))
                    for item in request.partitions
                ]
            )

    async def _stop(self, item: StopReplicaPartition) -> ErrorCode:
        key = TopicPartition(item.topic, item.partition)
        partition = self._partitions.get(key)
        if partition is not None:
            if partition.offline:
                return ErrorCode.KAFKA_STORAGE_ERROR
            if (
                item.leader_epoch not in (UNKNOWN_EPOCH, EPOCH_DURING_DELETE)
                and item.leader_epoch < partition.leader_epoch
            ):
                return ErrorCode.FENCED_LEADER_EPOCH
            self._fetchers.stop([key])
            if not item.delete_partition:
                self._context.environment.events.record(
                    EventKind.REPLICA_STOPPED,
                    item.cause or "the controller said so",
                    key,
                    leader_epoch=partition.leader_epoch,
                )
            partition.waiting.leadership_ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if not item.delete_partition:
            return ErrorCode.NONE
        if partition is not None:
            partition.stop()
            self._partitions.remove(key)
        logger.info("%s: replica deleted", key)
        self._context.environment.events.record(
            EventKind.REPLICA_DELETED, item.cause or "the controller said so", key
        )
        return await self._delete_log(key)

    async def leave(self, key: TopicPartition, is_stray: Callable[[], bool]) -> None:
        """Neither lead nor follow what is assigned to others; the log stays. Asked once more in
        its turn, for the replica may have been given a role or deleted meanwhile."""
        async with self._one_at_a_time:
            if not is_stray():
                return
            partition = self._partitions.get(key)
            self._fetchers.stop([key])
            if partition is not None:
                partition.stop()
                self._partitions.remove(key)
            logger.warning("%s: a stray replica, its log stays until somebody deletes it", key)
            self._context.environment.events.record(
                EventKind.REPLICA_STRAY,
                "the controller assigns it to others, and no order came to delete it here;"
                " its log stays until somebody deletes it",
                key,
                leader_epoch=-1 if partition is None else partition.leader_epoch,
            )

    async def _delete_log(self, key: TopicPartition) -> ErrorCode:
        try:
            await self._context.log_manager.delete(key)
        except KafkaError as error:
            logger.error("%s: cannot delete the log: %s", key, error)
            return error.code
        return ErrorCode.NONE


def _same_topic(local: str | None, requested: str) -> bool:
    """Equal ids, or one of the two not known."""
    return not local or not requested or local == requested
