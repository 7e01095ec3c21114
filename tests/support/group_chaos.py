"""A group under faults: members that join, leave, die and stall, and coordinators that move.

Every answer is noted in a `Ledger`, which knows what must never happen: a partition with two
members in one generation, a commit that an older generation made after a newer one was seen, an
acknowledged commit that is lost.
"""

import asyncio
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from barnabas_common.errors import TransportError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import LeaveGroupRequest, MemberIdentity
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster

from tests.support.raw_groups import Coordinators, RawMember

TOPIC = "orders"
PARTITIONS = 3
HEARTBEAT_SECONDS = 1.0
FAULTS = ("join", "leave", "die", "stall", "kill", "cut", "pause", "move")
_LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


@dataclass
class Ledger:
    """`owners` are the members of each generation's partitions; `acknowledged` the highest offset
    of each partition whose commit was answered with success."""

    owners: dict[tuple[int, int], str] = field(default_factory=dict)
    acknowledged: dict[int, int] = field(default_factory=dict)
    newest_generation: int = 0
    commits: int = 0
    violations: list[str] = field(default_factory=list)
    _next_offset: int = 0

    def next_offset(self) -> int:
        """Offsets only rise, so that a commit that is lost shows as a lower one."""
        self._next_offset += 1
        return self._next_offset

    def assigned(self, generation: int, member: str, partitions: list[int]) -> None:
        self.newest_generation = max(self.newest_generation, generation)
        for partition in partitions:
            owner = self.owners.setdefault((generation, partition), member)
            if owner != member:
                self.violations.append(
                    f"{partition} belongs to {owner} and {member} in generation {generation}"
                )

    def committed(self, generation: int, newest_at_start: int, partition: int, offset: int) -> None:
        self.commits += 1
        if generation < newest_at_start:
            self.violations.append(
                f"a commit of generation {generation} was accepted after {newest_at_start} was seen"
            )
        self.acknowledged[partition] = max(self.acknowledged.get(partition, 0), offset)

    def check_end(self, found: dict[int, int]) -> None:
        for partition, offset in self.acknowledged.items():
            if found.get(partition, -1) < offset:
                self.violations.append(
                    f"{partition}: {offset} was acknowledged, {found.get(partition)} is committed"
                )


class ChaosMember:
    """Joins, works and joins again until it is stopped; `stall` holds it up."""

    def __init__(self, coordinators: Coordinators, ledger: Ledger, instance_id: str) -> None:
        self._coordinators = coordinators
        self._ledger = ledger
        self.raw = RawMember(
            coordinators,
            -1,
            "g",
            instance_id,
            # A static member stays through a rebalance that it misses.
            session_timeout_ms=20_000 if instance_id else 6_000,
            rebalance_timeout_ms=8_000,
        )
        self.stalled_until = 0.0
        self.stopped = False

    async def run(self) -> None:
        while not self.stopped:
            try:
                if self.raw.broker_id < 0:
                    self.raw.broker_id = await self._coordinators.find("g")
                await self._one_generation()
            except TransportError:
                self.raw.broker_id = -1
            await asyncio.sleep(0.2)

    async def _one_generation(self) -> None:
        joined = await self.raw.join("chaos")
        if self._refused(ErrorCode(joined.error_code)):
            return
        assignments = None
        if joined.leader == self.raw.member_id and not joined.skip_assignment:
            assignments = dict(_dealt([item.member_id for item in joined.members]))
        synced = await self.raw.sync(assignments)
        if self._refused(ErrorCode(synced.error_code)):
            return
        partitions = list(synced.assignment)
        # A static member that returns keeps its partitions, under another id.
        owner = self.raw.group_instance_id or self.raw.member_id
        self._ledger.assigned(self.raw.generation_id, owner, partitions)
        await self._work(partitions)

    async def _work(self, partitions: list[int]) -> None:
        loop = asyncio.get_running_loop()
        while not self.stopped:
            await asyncio.sleep(max(HEARTBEAT_SECONDS, self.stalled_until - loop.time()))
            for partition in partitions:
                newest, offset = self._ledger.newest_generation, self._ledger.next_offset()
                error = await self.raw.commit(TopicPartition(TOPIC, partition), offset)
                if error is ErrorCode.NONE:
                    generation = self.raw.generation_id
                    self._ledger.committed(generation, newest, partition, offset)
                elif self._refused(error):
                    return
            if self._refused(await self.raw.heartbeat()):
                return

    def _refused(self, error: ErrorCode) -> bool:
        if error in _LOST:
            self.raw.member_id = ""
        if error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            self.raw.broker_id = -1
        return error is not ErrorCode.NONE

    async def leave(self) -> None:
        """Stop, and tell the coordinator, if it can be reached."""
        self.stopped = True
        if self.raw.broker_id >= 0 and self.raw.member_id:
            identity = MemberIdentity(self.raw.member_id, self.raw.group_instance_id)
            with suppress(TransportError):
                await self.raw.ask(LeaveGroupRequest("g", [identity]))


def _dealt(member_ids: list[str]) -> Iterator[tuple[str, bytes]]:
    """Deal the partitions to the members; an assignment is the numbers as bytes."""
    for index, member_id in enumerate(sorted(member_ids)):
        yield member_id, bytes(range(index, PARTITIONS, len(member_ids)))


class GroupChaos:
    """Faults at random for a while, then peace."""

    def __init__(self, cluster: SimulatedCluster, coordinators: Coordinators, seed: int) -> None:
        self._cluster = cluster
        self._coordinators = coordinators
        self._chance = random.Random(seed)
        self.ledger = Ledger()
        self.members: list[ChaosMember] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._instances = 0

    def add_member(self) -> None:
        self._instances += 1
        instance_id = f"i-{self._instances}" if self._chance.random() < 0.3 else ""
        member = ChaosMember(self._coordinators, self.ledger, instance_id)
        self.members.append(member)
        self._tasks.append(asyncio.ensure_future(member.run()))

    async def run(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        for _ in range(3):
            self.add_member()
        while loop.time() < end:
            await asyncio.sleep(self._chance.uniform(0.5, 6.0))
            await self._fault()

    async def _fault(self) -> None:
        kind = self._chance.choice(FAULTS)
        member = self._chance.choice(self.members) if self.members else None
        if (kind == "join" and len(self.members) < 5) or member is None:
            self.add_member()
        elif kind == "leave":
            self.members.remove(member)
            await member.leave()
        elif kind == "die":
            member.stopped = True
            self.members.remove(member)
        elif kind == "stall":
            seconds = self._chance.uniform(1.0, 15.0)
            member.stalled_until = asyncio.get_running_loop().time() + seconds
        else:
            await self._broker_fault(kind)

    async def _broker_fault(self, kind: str) -> None:
        """Kill, pause or stop a broker, often the coordinator, and bring it back."""
        cluster = self._cluster
        victim = member_broker = self._chance.choice(cluster.running_brokers)
        if self._chance.random() < 0.7:
            member_broker = await self._coordinators.find("g")
        victim = member_broker if member_broker in cluster.running_brokers else victim
        if kind == "pause":
            cluster.pause(victim)
            await asyncio.sleep(self._chance.uniform(1.0, 10.0))
            if victim in cluster.running_brokers:
                cluster.resume(victim)
            return
        if kind == "cut":
            # Clients reach it, its followers do not get what it appends; then it dies.
            for other in cluster.running_brokers:
                if other != victim:
                    cluster.cut(victim, other)
            await asyncio.sleep(self._chance.uniform(0.5, 4.0))
        if kind == "move":
            await cluster.stop_broker(victim)
        else:
            cluster.kill(victim)
        await asyncio.sleep(self._chance.uniform(0.5, 5.0))
        cluster.start_broker(victim)
        await cluster.serving()
        await asyncio.sleep(8.0)  # as long as a broker may need to be in every ISR again

    async def settle(self, within: float = 120.0) -> None:
        """Wait until the group is Stable with its living members; then stop them and check."""
        if not self.members:
            self.add_member()
        async with asyncio.timeout(within):
            while True:
                described = await self._coordinators.describe("g")
                present = {member.member_id for member in described.members}
                alive = {member.raw.member_id for member in self.members}
                if described.group_state == "Stable" and present == alive:
                    break
                await asyncio.sleep(1.0)
        for member in self.members:
            member.stopped = True
        await asyncio.sleep(2 * HEARTBEAT_SECONDS)
        for task in self._tasks:
            task.cancel()
        found = {
            item.partition: item.committed_offset for item in await self._coordinators.fetch("g")
        }
        self.ledger.check_end(found)
