"""The replica manager: the parts that work on a broker's replicas, and their background tasks.

It makes the partitions, the handlers of produce, fetch and offset requests, the roles that the
controller assigns, and the fetchers. In the background it checks ISRs, checkpoints high watermarks,
records offset moves and looks for strays.
"""

import posixpath
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from barnabas_common.events import EventLog
from barnabas_common.messages.control import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from barnabas_common.messages.replicas import (
    DescribeReplicasRequest,
    DescribeReplicasResponse,
    ReplicaDescription,
)
from barnabas_common.runtime import Address, Runtime, TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.config import Config, Key, LogConfig, keys
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.controller_fence import ControllerFence
from barnabas_broker.replica.damaged_replicas import DamagedReplicas
from barnabas_broker.replica.deadlines import Deadlines
from barnabas_broker.replica.follower.fetch_session_handler import FetchLimits
from barnabas_broker.replica.follower.fetcher_context import FetcherContext
from barnabas_broker.replica.follower.replica_fetcher_manager import ReplicaFetcherManager
from barnabas_broker.replica.follower.truncation import TruncationPolicy
from barnabas_broker.replica.leader.alter_partition_manager import (
    AlterPartitionContext,
    AlterPartitionManager,
)
from barnabas_broker.replica.leader.environment import LeaderEnvironment
from barnabas_broker.replica.leader.isr_writer import IsrWriter
from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.partition.offset_moves import INTERVAL_SECONDS, OffsetMoves
from barnabas_broker.replica.partition.partition import Partition
from barnabas_broker.replica.partition.partitions import Partitions
from barnabas_broker.replica.replication_quota import ReplicationQuota
from barnabas_broker.replica.roles import Roles, RolesContext
from barnabas_broker.replica.serve.consumer_fetch import ConsumerFetches
from barnabas_broker.replica.serve.coordinator_reads import CoordinatorReads
from barnabas_broker.replica.serve.follower_fetch import FollowerFetches
from barnabas_broker.replica.serve.offsets import OffsetLookups
from barnabas_broker.replica.serve.produce_path import ProducePath
from barnabas_broker.replica.serve.verification import (
    AskCoordinator,
    TransactionVerification,
    no_coordinator,
)
from barnabas_broker.replica.strays import INTERVAL_SECONDS as STRAYS_INTERVAL_SECONDS
from barnabas_broker.replica.strays import Strays, TopicId, unknown_topic_id
from barnabas_broker.replica.vanished import VanishedReplicas

CONTROLLER_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class ReplicaContext:
    """The surroundings of the replica manager.

    `broker_epoch` is -1 until the broker is registered. `topic_config` reads a topic's overrides,
    `topic_id` its id, None if that cannot be read now.
    `ask_for_roles` has the controller send all LeaderAndIsr requests of this broker again;
    `replica_lost` has this broker registered again, as one that has lost records.
    `isr_writer` writes ISR changes while the controller cannot be reached; without it they wait.
    `ask_transaction_coordinator` asks whether partitions are part of a transaction.
    """

    runtime: Runtime
    config: Config
    broker_id: int
    log_manager: LogManager
    metadata_cache: MetadataCache
    broker_epoch: Callable[[], int]
    topic_config: Callable[[str], Awaitable[dict[str, str]]]
    events: EventLog = field(default_factory=EventLog)
    ask_for_roles: Callable[[], None] = lambda: None
    replica_lost: Callable[[str], None] = lambda _why: None
    isr_writer: IsrWriter | None = None
    ask_transaction_coordinator: AskCoordinator = no_coordinator
    topic_id: TopicId = unknown_topic_id


class ReplicaManager:
    """Call `start` before the first request and `shutdown` after the last.

    `produces`, `consumer_fetches`, `follower_fetches`, `offsets` and `roles` answer requests;
    `coordinator_reads` is for this broker's coordinators. `damaged` has the replicas with a
    damaged log.
    """

    def __init__(self, context: ReplicaContext) -> None:
        self._context = context
        self._clock = context.runtime.clock
        self._cache = context.metadata_cache
        self.partitions = Partitions(self._cache)
        self._tasks = TaskScope("replica manager")
        self._fence = ControllerFence(context.broker_epoch, context.events)
        self._deadlines = Deadlines(self._clock.monotonic)
        self.damaged = DamagedReplicas(
            context.broker_id, context.events, self._cache.is_alive, context.ask_for_roles
        )
        self._alter_partition_manager = AlterPartitionManager(self._alter_partition_context())
        self._fetchers = ReplicaFetcherManager(self._fetcher_context())
        self._vanished = VanishedReplicas(context.broker_id, self._cache, self.partitions)
        self.roles = Roles(self.partitions, self._fetchers, self._roles_context())
        self._offset_moves = OffsetMoves(context.events)
        self._strays = Strays(
            context.broker_id,
            self._cache,
            self.partitions,
            context.log_manager,
            self._clock.monotonic,
        )
        now = self._clock.monotonic
        verification = TransactionVerification(
            self.partitions,
            self._clock,
            context.ask_transaction_coordinator,
            lambda: context.config[keys.TRANSACTION_PARTITION_VERIFICATION_ENABLE],
        )
        self.produces = ProducePath(self.partitions, self._deadlines, self._clock, verification)
        self.consumer_fetches = ConsumerFetches(
            self.partitions,
            self._deadlines,
            now,
            context.config[keys.FETCH_MAX_BYTES],
            self.damaged,
        )
        self.follower_fetches = FollowerFetches(
            context.broker_id,
            self.partitions,
            self._deadlines,
            now,
            self._quota(keys.LEADER_REPLICATION_THROTTLED_RATE),
            self.damaged,
            context.runtime.pauses,
        )
        self.offsets = OffsetLookups(self.partitions)
        self.coordinator_reads = CoordinatorReads(self.partitions, self.damaged)
        self._checkpointing = False
        self._stopping = False

    # ---- start and shutdown

    async def start(self) -> None:
        """Start the background tasks.

        The high watermark checkpoint starts with the first LeaderAndIsr: before that, a broker that
        has just started would overwrite the file with less than it holds.
        """
        # At half the lag time, so that a member leaves after 1 to 1.5 lag times.
        self._tasks.repeat(self._check_in_sync_replicas, self._max_lag / 2, "ISR check")
        self._tasks.repeat(self._look_for_offset_moves, INTERVAL_SECONDS, "offset moves")
        self._tasks.repeat(self._look_for_strays, STRAYS_INTERVAL_SECONDS, "strays")

    async def shutdown(self) -> None:
        """Stop fetching, answer waiting requests, and write the high watermarks."""
        self._stopping = True
        await self._tasks.close()
        await self._fetchers.close()
        self._deadlines.close()
        self.follower_fetches.close()
        if self._checkpointing:
            await self._context.log_manager.checkpoint_high_watermarks()
        await self._alter_partition_manager.close()

    @property
    def highest_controller_epoch(self) -> int:
        """The highest controller epoch of the requests that were accepted since this start."""
        return self._fence.controller_epoch

    def hears_a_broker(self) -> bool:
        """Whether a follower has fetched from this broker within `replica.lag.time.max.ms`."""
        since = self._clock.monotonic() - self._max_lag
        return self.follower_fetches.last_fetch_time() >= since

    def topic_id(self, topic_partition: TopicPartition) -> str | None:
        """The id of the topic that the local replica belongs to; None without one."""
        partition = self.partitions.get(topic_partition)
        return partition.topic_id if partition is not None else None

    # ---- requests of the controller

    async def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Handle LeaderAndIsr; the first accepted one starts the high watermark checkpoint."""
        response = await self.roles.leader_and_isr(request)
        if not response.error_code and not self._checkpointing:
            self._checkpointing = True
            interval = self._context.config[keys.REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS]
            self._tasks.repeat(
                self._context.log_manager.checkpoint_high_watermarks,
                interval / 1000,
                "high watermark checkpoint",
            )
        return response

    async def configure_logs(
        self, topic: str | None, config_of: Callable[[str], LogConfig]
    ) -> None:
        """Change the settings of the open logs of a topic, or of all topics for None."""
        await self.roles.configure_logs(topic, config_of)
        for partition in self.partitions:
            is_meant = topic in (None, partition.topic_partition.topic)
            if is_meant and partition.leadership is not None:
                partition.leadership.settings_changed()

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Handle UpdateMetadata: check its sender, then update everything that depends on it."""
        refusal = self._fence.check(request)
        if refusal:
            return UpdateMetadataResponse(refusal, self._fence.controller_epoch)
        before = self._cache.alive()
        self._cache.update(request)
        self._strays.note(request)
        self.follower_fetches.announce(request.live_brokers)
        self._fetchers.learn(request.live_brokers, self._context.config.inter_broker_listener)
        self._retry_lost_replicas(request)
        if self.damaged.may_return(request.partitions):
            self._context.ask_for_roles()
        if any(not self._cache.is_alive(broker_id) for broker_id in before):
            # A follower outside the ISR no longer holds the high watermark back if it is not alive.
            for partition in self.partitions:
                if partition.leadership is not None:
                    partition.leadership.advance_high_watermark()
        return UpdateMetadataResponse()

    def _retry_lost_replicas(self, request: UpdateMetadataRequest) -> None:
        """Ask for the roles of replicas that are lost or have vanished, once they can be taken.

        They can be taken once this replica has left the ISR, because it may then start from an
        empty or a truncated log. The broker asks only once: the role may fail for another reason.
        """
        lost = self._context.log_manager.lost
        free = lost.take_free(request.partitions, self._context.broker_id)
        if self._vanished.take_free(request.partitions) or free:
            self._context.ask_for_roles()

    def directory_failed(self, directory: str) -> None:
        """A log directory has failed: its partitions go offline, the others are not affected."""
        for partition in self.partitions:
            log = partition.log
            if log is not None and posixpath.dirname(log.directory) == directory:
                self.roles.go_offline(partition, directory)

    # ---- requests of clients

    async def describe_replicas(self, request: DescribeReplicasRequest) -> DescribeReplicasResponse:
        """Describe the local replicas of the topics, or of all topics, by name and number."""
        wanted = frozenset(request.topics)
        described = [
            self._described(partition)
            for partition in sorted(self.partitions, key=lambda p: p.topic_partition)
            if not wanted or partition.topic_partition.topic in wanted
        ]
        return DescribeReplicasResponse(self._context.broker_id, described)

    def _described(self, partition: Partition) -> ReplicaDescription:
        described = partition.describe()
        if partition.log is not None:
            cleaner = self._context.log_manager.cleaner
            described.dirty_percent = cleaner.dirty_percent(partition.log)
        return described

    # ---- in the background

    async def _check_in_sync_replicas(self) -> None:
        for partition in self.partitions:
            if partition.leadership is not None:
                partition.leadership.maybe_shrink_isr()
                partition.leadership.advance_high_watermark()

    async def _look_for_offset_moves(self) -> None:
        self._offset_moves.look(self.partitions)

    async def _look_for_strays(self) -> None:
        context = self._context
        await self._strays.look(self.roles.leave, context.topic_id, context.ask_for_roles)

    # ---- how the parts are made

    @property
    def _max_lag(self) -> float:
        return self._context.config[keys.REPLICA_LAG_TIME_MAX_MS] / 1000

    def _flush_soon(self, log: UnifiedLog, done: Callable[[], None]) -> None:
        async def flush() -> None:
            await self._context.log_manager.flush(log)
            done()

        if not self._stopping:
            self._tasks.spawn(flush(), f"flush {log}")

    def _controller_address(self) -> Address | None:
        return self._cache.address_of(
            self._cache.controller_id, self._context.config.inter_broker_listener
        )

    def _alter_partition_context(self) -> AlterPartitionContext:
        return AlterPartitionContext(
            network=self._context.runtime.network,
            broker_id=self._context.broker_id,
            broker_epoch=self._context.broker_epoch,
            controller_address=self._controller_address,
            timeout=self._context.config[keys.CONTROLLER_SOCKET_TIMEOUT_MS] / 1000,
            pauses=self._context.runtime.pauses,
            isr_writer=self._context.isr_writer,
            patience=min(self._max_lag, CONTROLLER_PATIENCE_SECONDS),
            events=self._context.events,
        )

    def _truncation_policy(self) -> TruncationPolicy:
        config = self._context.config
        lookup = config[keys.REPLICA_TRUNCATION_LOOKUP]
        return TruncationPolicy(
            by_high_watermark=config[keys.REPLICA_TRUNCATION] == "high-watermark",
            asks_before_fetching=lookup == "offsets-for-leader-epoch",
        )

    def _fetcher_context(self) -> FetcherContext:
        config = self._context.config
        return FetcherContext(
            network=self._context.runtime.network,
            now=self._clock.monotonic,
            broker_id=self._context.broker_id,
            broker_epoch=self._context.broker_epoch,
            limits=FetchLimits(
                max_wait_ms=config[keys.REPLICA_FETCH_WAIT_MAX_MS],
                min_bytes=config[keys.REPLICA_FETCH_MIN_BYTES],
                response_max_bytes=config[keys.REPLICA_FETCH_RESPONSE_MAX_BYTES],
                partition_max_bytes=config[keys.REPLICA_FETCH_MAX_BYTES],
            ),
            backoff=config[keys.REPLICA_FETCH_BACKOFF_MS] / 1000,
            timeout=config[keys.REPLICA_SOCKET_TIMEOUT_MS] / 1000,
            truncation=self._truncation_policy(),
            quota=self._quota(keys.FOLLOWER_REPLICATION_THROTTLED_RATE),
            pauses=self._context.runtime.pauses,
            events=self._context.events,
            on_damage=lambda partition, error: self.roles.damaged(partition, error),
        )

    def _quota(self, rate: Key[int]) -> ReplicationQuota:
        config = self._context.config
        return ReplicationQuota(lambda: config[rate], self._clock.monotonic)

    def _roles_context(self) -> RolesContext:
        config = self._context.config
        return RolesContext(
            config=config,
            log_manager=self._context.log_manager,
            topic_config=self._context.topic_config,
            environment=LeaderEnvironment(
                broker_id=self._context.broker_id,
                now=self._clock.monotonic,
                max_lag=self._max_lag,
                max_lag_messages=self._context.config[keys.REPLICA_LAG_MAX_MESSAGES],
                is_alive=self._cache.is_alive,
                alter_partition_manager=self._alter_partition_manager,
                flush_soon=self._flush_soon if config[keys.LAST_REPLICA_FSYNC_ENABLE] else None,
                gate=config[keys.HIGH_WATERMARK_MIN_ISR_GATE_ENABLE],
                events=self._context.events,
                last_fetch_without=lambda broker_id, key: self.follower_fetches.last_fetch_without(
                    broker_id, key
                ),
            ),
            vanished=self._vanished,
            replica_lost=self._context.replica_lost,
            fence=self._fence,
            damaged=self.damaged,
            pauses=self._context.runtime.pauses,
        )
