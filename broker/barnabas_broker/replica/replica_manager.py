"""Everything a broker does with its replicas, as one object; called by the request handlers.

Puts together the partitions, the paths of produce and fetch, the roles given by the controller, the
fetchers, and two background tasks: the ISR check and the high watermark checkpoint.
"""

import asyncio
import logging
import posixpath
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from barnabas.events import EventLog
from barnabas.messages.control import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from barnabas.messages.fetch import FetchRequest, FetchResponse
from barnabas.messages.offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from barnabas.messages.produce import ProducedPartition, ProducePartition
from barnabas.messages.replicas import ReplicaDescription
from barnabas.runtime import Address, Runtime, TaskScope
from barnabas.topic_partition import TopicPartition

from barnabas_broker.config import Config, Key, LogConfig, keys
from barnabas_broker.log.log import Log
from barnabas_broker.log.log_manager import LogManager
from barnabas_broker.replica.alter_partition import AlterPartitionContext, AlterPartitions
from barnabas_broker.replica.consumer_fetch import ConsumerFetches
from barnabas_broker.replica.controller_fence import ControllerFence
from barnabas_broker.replica.deadlines import Deadlines
from barnabas_broker.replica.fetcher_context import FetcherContext
from barnabas_broker.replica.fetcher_session import FetchLimits
from barnabas_broker.replica.fetchers import Fetchers
from barnabas_broker.replica.follower_fetch import FollowerFetches
from barnabas_broker.replica.leadership import LeaderEnvironment
from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.offset_moves import INTERVAL_SECONDS, OffsetMoves
from barnabas_broker.replica.offsets import OffsetLookups
from barnabas_broker.replica.partition import Partition
from barnabas_broker.replica.partitions import Partitions
from barnabas_broker.replica.produce_path import ProducePath
from barnabas_broker.replica.replication_quota import ReplicationQuota
from barnabas_broker.replica.roles import Roles, RolesContext
from barnabas_broker.replica.strays import INTERVAL_SECONDS as STRAYS_INTERVAL_SECONDS
from barnabas_broker.replica.strays import Strays
from barnabas_broker.replica.truncation import TruncationPolicy

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReplicaContext:
    """What the replica manager is given.

    `broker_epoch` is -1 until the broker is registered. `topic_config` reads a topic's overrides.
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


class ReplicaManager:
    """`start` before the first request, `shutdown` after the last."""

    def __init__(self, context: ReplicaContext) -> None:
        self._context = context
        self._clock = context.runtime.clock
        self._cache = context.metadata_cache
        self.partitions = Partitions(self._cache)
        self._tasks = TaskScope("replica manager")
        self._fence = ControllerFence(context.broker_epoch, context.events)
        self._deadlines = Deadlines(self._clock.monotonic)
        self._alter_partitions = AlterPartitions(self._alter_partition_context())
        self._fetchers = Fetchers(self._fetcher_context())
        self._roles = Roles(self.partitions, self._fetchers, self._roles_context())
        self._strays = Strays(
            context.broker_id,
            self._cache,
            self.partitions,
            context.log_manager,
            self._clock.monotonic,
        )
        self._produce = ProducePath(self.partitions, self._deadlines, self._clock)
        self._consumers = ConsumerFetches(
            self.partitions,
            self._deadlines,
            context.config[keys.FETCH_MAX_BYTES],
        )
        self._followers = FollowerFetches(
            self.partitions, self._deadlines, self._clock.monotonic, context.runtime.pauses
        )
        self._lookups = OffsetLookups(self.partitions)
        self._checkpointing = False
        self._stopping = False

    # ---- life

    async def start(self) -> None:
        """Start the ISR check. The high watermarks are written only after the first LeaderAndIsr:
        a fresh broker would overwrite the file with less than it holds."""
        self._tasks.spawn(self._check_in_sync_replicas(), "ISR check")
        self._tasks.spawn(self._look_for_offset_moves(), "offset moves")
        self._tasks.spawn(self._look_for_strays(), "strays")

    async def shutdown(self) -> None:
        """Stop fetching, answer whoever waits, and write the high watermarks."""
        self._stopping = True
        await self._tasks.close()
        await self._fetchers.close()
        self._deadlines.close()
        self._followers.close()
        if self._checkpointing:
            await self._context.log_manager.checkpoint_high_watermarks()
        await self._alter_partitions.close()

    @property
    def highest_controller_epoch(self) -> int:
        """Of all controllers obeyed in this life."""
        return self._fence.controller_epoch

    # ---- what the controller says

    async def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """LeaderAndIsr."""
        response = await self._roles.leader_and_isr(request)
        if not response.error_code and not self._checkpointing:
            self._checkpointing = True
            self._tasks.spawn(self._checkpoint_high_watermarks(), "high watermark checkpoint")
        return response

    async def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """StopReplica."""
        return await self._roles.stop_replicas(request)

    async def configure_logs(
        self, topic: str | None, config_of: Callable[[str], LogConfig]
    ) -> None:
        """Other settings for the open logs of a topic, or of all for None."""
        await self._roles.configure_logs(topic, config_of)
        for partition in self.partitions:
            is_meant = topic in (None, partition.topic_partition.topic)
            if is_meant and partition.leadership is not None:
                partition.leadership.settings_changed()

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """UpdateMetadata."""
        refusal = self._fence.check(request)
        if refusal:
            return UpdateMetadataResponse(refusal)
        before = self._cache.alive()
        self._cache.update(request)
        self._strays.note(request.partitions)
        self._fetchers.learn(request.live_brokers, self._context.config.inter_broker_listener)
        self._reconsider_lost(request)
        if any(not self._cache.is_alive(broker_id) for broker_id in before):
            # A broker that died without being in an ISR no longer holds the high watermark back.
            for partition in self.partitions:
                if partition.leadership is not None:
                    partition.leadership.advance_high_watermark()
        return UpdateMetadataResponse()

    def _reconsider_lost(self, request: UpdateMetadataRequest) -> None:
        """A role was refused because the log is lost; once the ISR does without this replica it
        may begin anew, and asks for its role: once, for it may fail for another reason then."""
        refused, broker_id = self._context.log_manager.lost.refused, self._context.broker_id
        free = [
            TopicPartition(state.topic, state.partition)
            for state in (request.partitions if refused else ())
            if broker_id in state.replicas and broker_id not in state.in_sync_replicas
        ]
        again = [partition for partition in free if partition in refused]
        for partition in again:
            del refused[partition]
        if again:
            self._context.ask_for_roles()

    def directory_failed(self, directory: str) -> None:
        """A log directory is lost: its partitions go offline, the others go on."""
        for partition in self.partitions:
            log = partition.log
            if log is not None and posixpath.dirname(log.directory) == directory:
                self._fetchers.stop([partition.topic_partition])
                partition.go_offline(f"its log directory {directory} has failed")
                logger.error("%s: offline, %s has failed", partition.topic_partition, directory)

    # ---- what clients and followers ask

    async def append_records(
        self, acks: int, timeout_ms: int, partitions: Sequence[ProducePartition]
    ) -> list[ProducedPartition]:
        """Produce; see `ProducePath.append_records`."""
        return await self._produce.append_records(acks, timeout_ms, partitions)

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """A consumer's fetch."""
        return await self._consumers.fetch(request, self._clock.monotonic())

    async def replica_fetch(self, request: FetchRequest) -> FetchResponse:
        """A follower's fetch."""
        return await self._followers.fetch(request)

    async def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """Where logs begin, end, or reach a timestamp."""
        return self._lookups.list_offsets(request)

    def offsets_for_leader_epoch(
        self, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        """Where epochs end."""
        return self._lookups.offsets_for_leader_epoch(request)

    def describe_replicas(self, topics: Sequence[str]) -> list[ReplicaDescription]:
        """The local replicas of `topics`, or of all, by name and number."""
        wanted: list[Partition] = [
            partition
            for partition in self.partitions
            if not topics or partition.topic_partition.topic in topics
        ]
        return [p.describe() for p in sorted(wanted, key=lambda p: p.topic_partition)]

    # ---- in the background

    async def _check_in_sync_replicas(self) -> None:
        """At half the lag time, so that a member leaves after 1 to 1.5 times of it."""
        while True:
            await asyncio.sleep(self._max_lag / 2)
            for partition in self.partitions:
                if partition.leadership is not None:
                    partition.leadership.isr_changes.maybe_shrink_isr()
                    partition.leadership.advance_high_watermark()

    async def _look_for_offset_moves(self) -> None:
        moves = OffsetMoves(self._context.events)
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            moves.look(self.partitions)

    async def _look_for_strays(self) -> None:
        while True:
            await asyncio.sleep(STRAYS_INTERVAL_SECONDS)
            for key in self._strays.due():
                await self._roles.leave(key, partial(self._strays.is_stray, key))

    async def _checkpoint_high_watermarks(self) -> None:
        interval = self._context.config[keys.REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS] / 1000
        while True:
            await asyncio.sleep(interval)
            await self._context.log_manager.checkpoint_high_watermarks()

    # ---- how the parts are made

    @property
    def _max_lag(self) -> float:
        return self._context.config[keys.REPLICA_LAG_TIME_MAX_MS] / 1000

    def _flush_soon(self, log: Log, done: Callable[[], None]) -> None:
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
                alter_partitions=self._alter_partitions,
                flush_soon=self._flush_soon if config[keys.LAST_REPLICA_FSYNC_ENABLE] else None,
                gate=config[keys.HIGH_WATERMARK_MIN_ISR_GATE_ENABLE],
                quota=self._quota(keys.LEADER_REPLICATION_THROTTLED_RATE),
                events=self._context.events,
            ),
            fence=self._fence,
            pauses=self._context.runtime.pauses,
        )
