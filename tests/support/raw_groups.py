"""Members of a group as raw requests, without the client: what a coordinator answers to each."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas_common.errors import TransportError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    CommittedOffset,
    DescribedGroup,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    FoundCoordinator,
    HeartbeatRequest,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetFetchGroup,
    OffsetFetchPartition,
    OffsetFetchRequest,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas_common.runtime import Address, Channel, Message, Network, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import CLIENT_PORT, SimulatedCluster

PAUSE_SECONDS = 0.1
SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "500",
}
"""Of a cluster whose groups are watched: few partitions, and no long wait for the first member."""


def subscription(*topics: str) -> bytes:
    """A consumer's subscription, version 0."""
    encoded = [len(topic).to_bytes(2, "big") + topic.encode() for topic in topics]
    return b"\0\0" + len(topics).to_bytes(4, "big") + b"".join(encoded) + b"\xff\xff\xff\xff"


RANGE = {"range": subscription("orders")}


def protocols(metadata: Mapping[str, bytes]) -> list[JoinGroupProtocol]:
    return [JoinGroupProtocol(name, data) for name, data in metadata.items()]


class Coordinators:
    """Sends requests to brokers of a simulated cluster."""

    def __init__(self, cluster: SimulatedCluster, network: Network | None = None) -> None:
        self._network = network or cluster.client_runtime("member").network
        self._cluster = cluster
        self._channels: dict[int, Channel] = {}

    async def ask(self, broker_id: int, request: Message, timeout: float = 30.0) -> Message:
        channel = self._channels.get(broker_id)
        if channel is None:
            address = Address(f"broker-{broker_id}", CLIENT_PORT)
            channel = self._network.connect(address, Service.COORDINATOR)
            self._channels[broker_id] = channel
        return await channel.call(request, timeout)

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()

    async def find(self, group_id: str) -> int:
        """The coordinator of a group, once there is one."""
        while True:
            for broker_id in self._broker_ids():
                try:
                    found = (await self.find_at(broker_id, group_id)).node_id
                except TransportError:
                    continue
                if found >= 0:
                    return found
            await asyncio.sleep(PAUSE_SECONDS)

    def _broker_ids(self) -> list[int]:
        return self._cluster.running_brokers

    async def find_at(self, broker_id: int, group_id: str) -> FoundCoordinator:
        request = FindCoordinatorRequest(coordinator_keys=[group_id])
        response = await self.ask(broker_id, request)
        (found,) = response.coordinators
        return found  # type: ignore[no-any-return]

    async def describe(self, group_id: str) -> DescribedGroup:
        """The group, asked of its coordinator until it has loaded it."""
        while True:
            broker_id = await self.find(group_id)
            try:
                response = await self.ask(broker_id, DescribeGroupsRequest([group_id]))
            except TransportError:
                response = None
            if response is not None and not response.groups[0].error_code:
                return response.groups[0]  # type: ignore[no-any-return]
            await asyncio.sleep(PAUSE_SECONDS)

    async def fetch(
        self, group_id: str, *partitions: TopicPartition, require_stable: bool = False
    ) -> list[CommittedOffset]:
        """What is committed, asked of the coordinator until it has loaded it."""
        asked = OffsetFetchGroup(
            group_id,
            [OffsetFetchPartition(*partition) for partition in partitions],
            all_topics=not partitions,
        )
        while True:
            broker_id = await self.find(group_id)
            try:
                response = await self.ask(broker_id, OffsetFetchRequest([asked], require_stable))
            except TransportError:
                response = None
            if response is not None and not response.groups[0].error_code:
                return response.groups[0].partitions  # type: ignore[no-any-return]
            await asyncio.sleep(PAUSE_SECONDS)

    async def committed(self, group_id: str, partition: TopicPartition) -> int:
        (found,) = await self.fetch(group_id, partition)
        return found.committed_offset


@dataclass
class RawMember:
    """One member: it joins, syncs, heartbeats and commits when it is told to, at one broker."""

    coordinators: Coordinators
    broker_id: int
    group_id: str
    group_instance_id: str = ""
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 20_000
    metadata: Mapping[str, bytes] = field(default_factory=lambda: RANGE)
    protocol_type: str = "consumer"
    client_id: str = "raw"
    member_id: str = ""
    generation_id: int = -1

    async def ask(self, request: Message) -> Message:
        return await self.coordinators.ask(self.broker_id, request, timeout=60.0)

    async def join(self, reason: str = "") -> JoinGroupResponse:
        """JoinGroup, twice if an id must be asked for first."""
        response = await self.join_once(reason)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            response = await self.join_once(reason)
        if not response.error_code:
            self.member_id = response.member_id
            self.generation_id = response.generation_id
        return response

    async def join_once(self, reason: str = "") -> JoinGroupResponse:
        request = JoinGroupRequest(
            self.group_id,
            self.session_timeout_ms,
            self.rebalance_timeout_ms,
            self.member_id,
            self.group_instance_id,
            self.protocol_type,
            protocols(self.metadata),
            reason,
            self.client_id,
        )
        return await self.ask(request)  # type: ignore[no-any-return]

    async def sync(self, assignments: Mapping[str, bytes] | None = None) -> SyncGroupResponse:
        request = SyncGroupRequest(
            self.group_id,
            self.generation_id,
            self.member_id,
            self.group_instance_id,
            self.protocol_type,
            assignments=[SyncGroupAssignment(*item) for item in (assignments or {}).items()],
        )
        return await self.ask(request)  # type: ignore[no-any-return]

    async def heartbeat(self) -> ErrorCode:
        request = HeartbeatRequest(
            self.group_id, self.generation_id, self.member_id, self.group_instance_id
        )
        return ErrorCode((await self.ask(request)).error_code)

    async def commit(self, partition: TopicPartition, offset: int, metadata: str = "") -> ErrorCode:
        item = OffsetCommitPartition(*partition, offset, committed_metadata=metadata)
        request = OffsetCommitRequest(
            self.group_id, self.generation_id, self.member_id, self.group_instance_id, [item]
        )
        response = await self.ask(request)
        return ErrorCode(response.partitions[0].error_code)


async def settle(members: Sequence[RawMember]) -> list[JoinGroupResponse]:
    """Let all join within the initial delay, and the leader assign each its own member id; the
    leader's answer is first."""
    joined = await asyncio.gather(*(member.join() for member in members))
    assert not any(response.error_code for response in joined), joined
    leader = joined[0].leader
    assignments = {member.member_id: member.member_id.encode() for member in members}
    synced = await asyncio.gather(
        *(m.sync(assignments if m.member_id == leader else None) for m in members)
    )
    assert [answer.assignment for answer in synced] == [m.member_id.encode() for m in members]
    return sorted(joined, key=lambda response: response.member_id != leader)
