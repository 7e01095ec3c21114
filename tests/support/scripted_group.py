"""A coordinator of one group, of a few lines, for tests of the client on virtual time.

It follows Kafka's protocol where members behave, and answers whatever a test tells it to: `faults`
are taken by the first request of their type, in order.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    CommittedOffset,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResult,
    OffsetFetchGroupResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas_common.runtime import InlineOffload, Runtime, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import VirtualClock

from tests.support.scripted_brokers import ScriptedBrokers


@dataclass
class ScriptedMember:
    request: JoinGroupRequest
    joining: asyncio.Future[JoinGroupResponse] | None = None
    syncing: asyncio.Future[SyncGroupResponse] | None = None


@dataclass
class ScriptedGroup:
    """One group's members and offsets. `state` is Kafka's."""

    state: str = "Empty"
    generation: int = 0
    protocol: str = ""
    leader: str = ""
    members: dict[str, ScriptedMember] = field(default_factory=dict)
    assignments: dict[str, bytes] = field(default_factory=dict)
    offsets: dict[TopicPartition, tuple[int, int, str]] = field(default_factory=dict)
    issued: int = 0


class Held:
    """Requests that are answered once `release` is set; `reached`: the first has come."""

    def __init__(self, kind: type, which: Callable[[Any], bool]) -> None:
        self.reached = asyncio.Event()
        self.release = asyncio.Event()
        self._kind = kind
        self._which = which

    async def wait(self, request: Any) -> None:
        if isinstance(request, self._kind) and self._which(request):
            self.reached.set()
            await self.release.wait()


class GroupBrokers(ScriptedBrokers):
    """Broker `coordinator` coordinates every group; `asked` holds its requests in order.

    `strangers`: brokers that answer offsets with this code, although another one coordinates.
    """

    services = (Service.DATA, Service.ADMIN, Service.COORDINATOR)

    def __init__(self, partitions: int = 4, brokers: int = 3, topic: str = "flights") -> None:
        super().__init__(partitions, brokers, topic)
        self.groups: dict[str, ScriptedGroup] = defaultdict(ScriptedGroup)
        self.coordinator = 1
        self.asked: list[Any] = []
        self.refusals: dict[type, list[int]] = defaultdict(list)
        self.strangers: dict[int, ErrorCode] = {}
        self._held: list[Held] = []

    def hold(self, kind: type, which: Callable[[Any], bool]) -> Held:
        """Hold up the requests of this type that `which` names."""
        self._held.append(Held(kind, which))
        return self._held[-1]

    def runtime_of(self, name: str) -> Runtime:
        chance = random.Random(name)
        return Runtime(VirtualClock(), chance, InlineOffload(), self.network.node(name))

    def requests(self, kind: type) -> list[Any]:
        return [request for request in self.asked if isinstance(request, kind)]

    async def _handle(self, broker_id: int, request: Any) -> Any:
        if isinstance(request, FindCoordinatorRequest):
            node = self.coordinator
            code = 0 if node in self._listeners else ErrorCode.COORDINATOR_NOT_AVAILABLE
            return FindCoordinatorResponse(
                [
                    FoundCoordinator(key, node, f"broker-{node}", 9092, code)
                    for key in request.coordinator_keys
                ]
            )
        if isinstance(request, DescribeGroupsRequest):  # a member asks for whom it waits
            states = ((name, self.groups[name].state) for name in request.groups)
            return DescribeGroupsResponse([DescribedGroup(n, group_state=s) for n, s in states])
        answer = {
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: self._beat,
            LeaveGroupRequest: self._leave,
            OffsetCommitRequest: self._commit,
            OffsetFetchRequest: self._fetch_offsets,
        }.get(type(request))
        if answer is None:
            return await super()._handle(broker_id, request)
        self.asked.append(request)
        for held in self._held:
            await held.wait(request)
        refusals = self.refusals[type(request)]
        code = ErrorCode.NONE if broker_id == self.coordinator else ErrorCode.NOT_COORDINATOR
        if isinstance(request, OffsetFetchRequest):
            code = self.strangers.get(broker_id, code)
        if refusals:
            code = ErrorCode(refusals.pop(0))
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.remove(request.member_id, request.group_id)
        return await answer(request, code)

    async def _join(self, request: JoinGroupRequest, code: int) -> JoinGroupResponse:
        if code:
            return JoinGroupResponse(code)
        group = self.groups[request.group_id]
        member_id = request.member_id
        if not member_id:
            group.issued += 1
            member_id = f"{request.client_id or 'consumer'}-{group.issued}"
            if not request.group_instance_id:
                return JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
        known = member_id in group.members
        if not known and not member_id.endswith(f"-{group.issued}"):
            return JoinGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID, member_id=member_id)
        member = group.members.setdefault(member_id, ScriptedMember(request))
        member.request = request
        joining = member.joining = asyncio.get_running_loop().create_future()
        self._prepare(group)
        return await joining

    def _prepare(self, group: ScriptedGroup) -> None:
        if group.state != "PreparingRebalance":
            group.state = "PreparingRebalance"
            for member in group.members.values():
                if member.syncing is not None and not member.syncing.done():
                    member.syncing.set_result(SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS))
            timeout = max(m.request.rebalance_timeout_ms for m in group.members.values()) / 1000
            asyncio.get_running_loop().call_later(timeout, self._give_up_waiting, group)
        self._complete_if_all_joined(group)

    def _give_up_waiting(self, group: ScriptedGroup) -> None:
        if group.state == "PreparingRebalance":
            group.members = {m: s for m, s in group.members.items() if s.joining is not None}
            self._complete_if_all_joined(group)

    def _complete_if_all_joined(self, group: ScriptedGroup) -> None:
        if not group.members:
            group.state = "Empty"
        if not group.members or any(m.joining is None for m in group.members.values()):
            return
        group.generation += 1
        group.state = "CompletingRebalance"
        group.assignments = {}
        group.leader = group.leader if group.leader in group.members else next(iter(group.members))
        common = set.intersection(
            *({p.name for p in m.request.protocols} for m in group.members.values())
        )
        first = group.members[group.leader].request
        group.protocol = next(p.name for p in first.protocols if p.name in common)
        everyone = [
            JoinGroupMember(
                member_id,
                member.request.group_instance_id,
                next(p.metadata for p in member.request.protocols if p.name == group.protocol),
            )
            for member_id, member in group.members.items()
        ]
        for member_id, member in group.members.items():
            assert member.joining is not None
            answer = JoinGroupResponse(
                0, group.generation, "consumer", group.protocol, group.leader, False, member_id,
                everyone if member_id == group.leader else [],
            )  # fmt: skip
            if not member.joining.done():
                member.joining.set_result(answer)
            member.joining = None

    def _check(self, request: Any, code: int) -> int:
        group = self.groups[request.group_id]
        if code:
            return code
        if request.member_id not in group.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.NONE

    async def _sync(self, request: SyncGroupRequest, code: int) -> SyncGroupResponse:
        group = self.groups[request.group_id]
        code = self._check(request, code)
        if not code and group.state == "PreparingRebalance":
            code = ErrorCode.REBALANCE_IN_PROGRESS
        if code:
            return SyncGroupResponse(code)
        member = group.members[request.member_id]
        member.syncing = asyncio.get_running_loop().create_future()
        if request.member_id == group.leader:
            group.assignments = {a.member_id: a.assignment for a in request.assignments}
            group.state = "Stable"
        if group.state == "Stable":
            for member_id, other in group.members.items():
                if other.syncing is not None and not other.syncing.done():
                    given = group.assignments.get(member_id, b"")
                    other.syncing.set_result(
                        SyncGroupResponse(0, "consumer", group.protocol, given)
                    )
        return await member.syncing

    async def _beat(self, request: HeartbeatRequest, code: int) -> HeartbeatResponse:
        group = self.groups[request.group_id]
        code = self._check(request, code)
        if not code and group.state == "PreparingRebalance":
            code = ErrorCode.REBALANCE_IN_PROGRESS
        return HeartbeatResponse(code)

    async def _leave(self, request: LeaveGroupRequest, code: int) -> LeaveGroupResponse:
        for member in request.members:
            self.remove(member.member_id, request.group_id)
        return LeaveGroupResponse(code)

    def remove(self, member_id: str, group_id: str = "g") -> None:
        """The member left, or its session expired."""
        group = self.groups[group_id]
        if group.members.pop(member_id, None) is not None:
            if group.members:
                self._prepare(group)
            else:
                group.state = "Empty"

    async def _commit(self, request: OffsetCommitRequest, code: int) -> OffsetCommitResponse:
        group = self.groups[request.group_id]
        if not code and (request.generation_id >= 0 or group.members):
            code = self._check(request, code)
        if not code and group.state == "CompletingRebalance":
            code = ErrorCode.REBALANCE_IN_PROGRESS
        if not code:
            for p in request.partitions:
                group.offsets[TopicPartition(p.topic, p.partition)] = (
                    p.committed_offset, p.committed_leader_epoch, p.committed_metadata
                )  # fmt: skip
        return OffsetCommitResponse(
            [OffsetCommitResult(p.topic, p.partition, code) for p in request.partitions]
        )

    async def _fetch_offsets(self, request: OffsetFetchRequest, code: int) -> OffsetFetchResponse:
        results = []
        for asked in request.groups:
            offsets = self.groups[asked.group_id].offsets
            wanted = [TopicPartition(p.topic, p.partition) for p in asked.partitions]
            found = [
                CommittedOffset(*tp, *offsets.get(tp, (-1, -1, "")))
                for tp in (offsets if asked.all_topics else wanted)
            ]
            results.append(OffsetFetchGroupResult(asked.group_id, code, [] if code else found))
        return OffsetFetchResponse(results)
