"""The group coordinator of one broker: its parts, and the requests of members."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Any, TypeVar

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventLog
from barnabas_common.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas_common.runtime import Runtime, TaskScope
from barnabas_common.topic_name import GROUP_METADATA_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.config import Config, keys
from barnabas_broker.coordinator.group.admin import GroupAdmin
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.group_log import GroupLog
from barnabas_broker.coordinator.group.groups import Groups
from barnabas_broker.coordinator.group.member import Timer
from barnabas_broker.coordinator.group.membership.awaited import awaited
from barnabas_broker.coordinator.group.membership.context import GroupContext, GroupLimits
from barnabas_broker.coordinator.group.membership.join import Joining, Joins
from barnabas_broker.coordinator.group.membership.rebalance import Rebalances
from barnabas_broker.coordinator.group.membership.sync import Syncs
from barnabas_broker.coordinator.group.offsets import Offsets
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.coordinator.group.txn_offsets import TxnOffsets
from barnabas_broker.coordinator.internal_topic import InternalTopic, ReadShape
from barnabas_broker.coordinator.partition_log import PartitionLog
from barnabas_broker.coordinator.record_fields import fits
from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.replica_manager import ReplicaManager

Response = TypeVar("Response", JoinGroupResponse, SyncGroupResponse)

# Member ids end in one.
_ANY_UUID = "00000000-0000-0000-0000-000000000000"
# Each is compared with those of all members. A consumer has some.
_MOST_PROTOCOLS = 1000
_TOPIC_DELETED = "the topic was deleted"


@dataclass(frozen=True)
class CoordinatorContext:
    """The surroundings of a coordinator.

    `read_shape` reads the znode of a topic. `may_exist` asks ZooKeeper about a partition that is
    not in the metadata; also True without an answer.
    """

    runtime: Runtime
    config: Config
    replica_manager: ReplicaManager
    metadata_cache: MetadataCache
    events: EventLog
    read_shape: ReadShape
    may_exist: Callable[[TopicPartition], Awaitable[bool]]


class GroupCoordinator:
    """`offsets`, `txn_offsets` and `admin` answer the requests that no membership is needed for.

    Call `start` before the broker takes its first role, and `close` before its listeners close, so
    that no parked JoinGroup holds them open.
    """

    def __init__(self, context: CoordinatorContext) -> None:
        self.offsets_topic_refusal = ""
        """Why `__consumer_offsets` could not be created, as it was last reported."""
        self._context = context
        config, clock = context.config, context.runtime.clock
        log = PartitionLog(
            context.replica_manager,
            clock,
            config[keys.OFFSETS_TOPIC_COMPRESSION_CODEC],
            config[keys.OFFSETS_LOAD_BUFFER_SIZE],
            config[keys.OFFSETS_COMMIT_TIMEOUT_MS],
        )
        cache = context.metadata_cache
        self.topic = InternalTopic(GROUP_METADATA_TOPIC, cache, context.read_shape)
        self._groups = Groups(log, self.topic, context.events, self._loaded, self._forgotten)
        self._partition_log = log
        self._log = GroupLog(log, self._groups)
        group_context = self._group_context()
        self._rebalances = Rebalances(group_context)
        self._joins = Joins(group_context, self._rebalances)
        self._syncs = Syncs(group_context, self._rebalances)
        self.offsets = Offsets(
            self._groups,
            self._log,
            self._rebalances.sessions,
            clock.wall_ms,
            lambda key: cache.partition(*key) is not None,
            config[keys.OFFSET_METADATA_MAX_BYTES],
            config[keys.OFFSETS_RETENTION_MINUTES] * 60_000,
            context.events,
        )
        self.txn_offsets = TxnOffsets(
            self._groups,
            self._log,
            clock.wall_ms,
            lambda key: cache.partition(*key) is not None,
            config[keys.OFFSET_METADATA_MAX_BYTES],
        )
        self.admin = GroupAdmin(
            self._groups,
            self.offsets,
            lambda group: awaited(group, self._rebalances, clock.monotonic()),
        )
        self._tasks = TaskScope("offset retention")

    def _group_context(self) -> GroupContext:
        config, runtime = self._context.config, self._context.runtime
        return GroupContext(
            limits=GroupLimits(
                config[keys.GROUP_MIN_SESSION_TIMEOUT_MS],
                config[keys.GROUP_MAX_SESSION_TIMEOUT_MS],
                config[keys.GROUP_INITIAL_REBALANCE_DELAY_MS],
                config[keys.GROUP_MAX_SIZE],
            ),
            now=runtime.clock.monotonic,
            wall_ms=runtime.clock.wall_ms,
            call_later=_call_later,
            new_id=lambda: java_uuid(runtime.randomness.randbytes(16)),
            store=self._log.store,
            is_committed=self._groups.is_committed,
            events=self._context.events,
        )

    def start(self) -> None:
        """Follow the roles of `__consumer_offsets`, and look for expired offsets from now on."""
        roles = self._context.replica_manager.roles
        roles.add_listener(GROUP_METADATA_TOPIC, self._groups)
        interval = self._context.config[keys.OFFSETS_RETENTION_CHECK_INTERVAL_MS] / 1000
        self._tasks.repeat(self.offsets.expire, interval, "expiry")

    async def close(self) -> None:
        """Answer the requests that wait, and forget the groups."""
        await self._groups.close()
        await self._tasks.close()
        await self._log.close()
        await self._partition_log.close()

    # ---- groups that come and go

    @property
    def groups(self) -> Groups:
        """What is coordinated here, to be looked at only."""
        return self._groups

    def _loaded(self, groups: Sequence[Group], deleted: Sequence[TopicPartition]) -> None:
        if deleted:
            self._spawn(self.offsets.partitions_deleted(groups, deleted, _TOPIC_DELETED))
        # The coordinator before may have had no time to write the tombstones of a deleted topic.
        cache = self._context.metadata_cache
        committed: set[TopicPartition] = set()
        for group in groups:
            committed.update(group.committed.offsets, group.committed.transactional.partitions())
        unknown = sorted(key for key in committed if cache.partition(*key) is None)
        if unknown:
            self._spawn(self._remove_missed(unknown))
        for group in groups:
            self._resume(group)

    def _resume(self, group: Group) -> None:
        for member in group.members.values():
            self._rebalances.sessions.extend(group, member)
        size, limit = len(group.members), self._context.config[keys.GROUP_MAX_SIZE]
        if size > limit:
            self._rebalances.begin(group, f"loaded with {size} members, group.max.size is {limit}")

    def _forgotten(self, group: Group) -> None:
        self._rebalances.forget(group, ErrorCode.NOT_COORDINATOR)

    def metadata_updated(
        self,
        deleted: list[TopicPartition],
        missed: Sequence[TopicPartition] = (),
        replaced: Mapping[str, list[TopicPartition]] = MappingProxyType({}),
    ) -> None:
        """Offsets of `deleted` topics are removed in the background.

        So are those of the topics that the controller does not know any more, whose deletion this
        broker has `missed`, if ZooKeeper does not have them; and of those `replaced` by a topic
        with the id that ZooKeeper has. The controller's message may be late.
        """
        self._groups.learn_soon()
        if not self._groups.is_active:
            return
        self._groups.partitions_deleted(deleted)
        if deleted:
            groups = self._groups.all()
            self._spawn(self.offsets.partitions_deleted(groups, deleted, _TOPIC_DELETED))
        if missed:
            self._spawn(self._remove_missed(missed))
        if replaced:
            self._spawn(self._remove_replaced(replaced))

    async def _remove_missed(self, missed: Sequence[TopicPartition]) -> None:
        for _, found in groupby(missed, key=lambda partition: partition.topic):
            partitions = list(found)
            if not await self._context.may_exist(partitions[0]):
                self.metadata_updated(partitions)

    async def _remove_replaced(self, replaced: Mapping[str, list[TopicPartition]]) -> None:
        for topic_id, partitions in replaced.items():
            shape = await self._context.read_shape(partitions[0].topic)
            if shape is not None and shape.topic_id == topic_id:
                self.metadata_updated(partitions)

    def _spawn(self, removal: Coroutine[Any, Any, object]) -> None:
        self._tasks.spawn(removal, "offsets of deleted topics")

    # ---- members

    async def join_group(self, request: JoinGroupRequest, client_host: str) -> JoinGroupResponse:
        """JoinGroup: answered when the rebalance is complete."""
        error = self._groups.status(request.group_id)
        if not error and not self._joins.session_timeout_allowed(request.session_timeout_ms):
            error = ErrorCode.INVALID_SESSION_TIMEOUT
        if not error and not _is_writable(request):
            error = ErrorCode.INVALID_REQUEST
        group = self._groups.get(request.group_id)
        if not error and group is None:
            if request.member_id:
                error = ErrorCode.UNKNOWN_MEMBER_ID
            else:
                group = self._groups.get_or_add(request.group_id)
        if error or group is None:
            return JoinGroupResponse(error, member_id=request.member_id)
        waiter: asyncio.Future[JoinGroupResponse] = asyncio.get_running_loop().create_future()
        self._joins.join(group, Joining(request, client_host, _answer(waiter)))
        return await waiter

    async def sync_group(self, request: SyncGroupRequest) -> SyncGroupResponse:
        """SyncGroup: answered when the leader's assignment is written."""
        error = self._groups.status(request.group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The generation is lost with the old coordinator: the member had better join again.
            return SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS)
        group = self._groups.get(request.group_id)
        if error or group is None:
            return SyncGroupResponse(error or ErrorCode.UNKNOWN_MEMBER_ID)
        waiter: asyncio.Future[SyncGroupResponse] = asyncio.get_running_loop().create_future()
        self._syncs.sync(group, request, _answer(waiter))
        return await waiter

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Heartbeat; while the group is loading every member is taken to be one."""
        error = self._groups.status(request.group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()
        group = self._groups.get(request.group_id)
        if error or group is None:
            return HeartbeatResponse(error or ErrorCode.UNKNOWN_MEMBER_ID)
        return HeartbeatResponse(self._syncs.heartbeat(group, request))

    async def leave_group(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """LeaveGroup: one outcome per member."""
        error = self._groups.status(request.group_id)
        if error:
            return LeaveGroupResponse(error)
        group = self._groups.get(request.group_id)
        if group is None or group.state is GroupState.DEAD:
            unknown = ErrorCode.UNKNOWN_MEMBER_ID
            return LeaveGroupResponse(
                members=[
                    MemberResponse(item.member_id, item.group_instance_id, unknown)
                    for item in request.members
                ]
            )
        return LeaveGroupResponse(members=[self._syncs.leave(group, m) for m in request.members])


def _is_writable(request: JoinGroupRequest) -> bool:
    """Whether a record can hold what the member says of itself."""
    names = [protocol.name for protocol in request.protocols]
    return len(names) <= _MOST_PROTOCOLS and fits(
        f"{request.client_id}-{_ANY_UUID}",
        f"{request.group_instance_id}-{_ANY_UUID}",
        request.protocol_type,
        *names,
    )


def _answer(waiter: "asyncio.Future[Response]") -> Callable[[Response], None]:
    def answer(response: Response) -> None:
        if not waiter.done():
            waiter.set_result(response)

    return answer


def _call_later(seconds: float, then: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(seconds, then)


def java_uuid(raw: bytes) -> str:
    """16 random bytes as Java's `UUID.randomUUID` prints them; Kafka's member ids end in one."""
    octets = bytearray(raw)
    octets[6] = (octets[6] & 0x0F) | 0x40
    octets[8] = (octets[8] & 0x3F) | 0x80
    text = octets.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
