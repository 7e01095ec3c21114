"""Groups at random: members come, stall, die, and the coordinator refuses, moves and dies.

Whatever happens, every record is worked on at least once, no committed offset is ever ahead of the
work, two members of one generation never hold one partition, and the group settles when it may.
"""

import asyncio
import contextlib
import random
from collections.abc import Sequence

import pytest
from barnabas import Consumer, OffsetAndMetadata
from barnabas.consumer.in_group import InGroup
from barnabas.consumer.membership import Membership
from barnabas_common.errors import BarnabasError, ClosedError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.scripted_group import GroupBrokers

PARTITIONS = [TopicPartition("flights", number) for number in range(6)]
PASSING = {
    JoinGroupRequest: [
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
    ],
    SyncGroupRequest: [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
    ],
    HeartbeatRequest: [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
    ],
    OffsetCommitRequest: [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
    ],
    OffsetFetchRequest: [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS],
}


class Chaos:
    """One run: a group of up to four members, faults for a minute, then quiet."""

    def __init__(self, seed: int, brokers: GroupBrokers) -> None:
        self.chance = random.Random(seed)
        self.brokers = brokers
        self.strategy = self.chance.choice(["range", "cooperative-sticky", "sticky", "roundrobin"])
        self.done: dict[TopicPartition, set[int]] = {tp: set() for tp in PARTITIONS}
        self.members: dict[str, tuple[Consumer, asyncio.Task[None]]] = {}
        self.count = 0

    def write(self) -> None:
        for partition in range(len(PARTITIONS)):
            builder = BatchBuilder()
            for _ in range(self.chance.randrange(1, 5)):
                builder.append(0, None, b"x", [])
            self.brokers.log(partition).append(builder.build())
        self.brokers.changed()

    def join(self) -> None:
        self.count += 1
        name = f"m{self.count}"
        consumer = Consumer(
            "flights",
            bootstrap_servers=self.brokers.bootstrap,
            runtime=self.brokers.runtime_of(name),
            group_id="g",
            client_id=name,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[self.strategy],
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
            max_poll_interval_ms=8_000,
            auto_commit_interval_ms=self.chance.choice([200, 2_000]),
            enable_auto_commit=self.chance.random() < 0.7,
            max_poll_records=self.chance.choice([1, 3, 500]),
        )
        self.members[name] = (consumer, asyncio.create_task(self.work(consumer)))

    async def work(self, consumer: Consumer) -> None:
        """Iterates, works, and commits by itself if that is not automatic; ends when cancelled."""
        async with contextlib.AsyncExitStack() as stack:
            with contextlib.suppress(ClosedError):  # it left before it had begun
                await stack.enter_async_context(consumer)
            while True:
                try:
                    async for record in consumer:
                        await asyncio.sleep(self.chance.choice([0.0, 0.01, 0.1]))
                        if self.chance.random() < 0.002:
                            await asyncio.sleep(12)  # too late for max_poll_interval_ms
                        self.done[record.topic_partition].add(record.offset)
                        if not consumer._config.enable_auto_commit and self.chance.random() < 0.2:
                            await consumer.commit()
                    return
                except BarnabasError:
                    continue  # told to the application, which goes on

    def check(self) -> None:
        for tp, (offset, _, _) in self.brokers.groups["g"].offsets.items():
            missing = set(range(offset)) - self.done[tp]
            assert not missing, f"{tp}: {offset} is committed, {sorted(missing)} never worked on"
        holders: dict[tuple[int, TopicPartition], str] = {}
        for name, (consumer, _) in self.members.items():
            membership = consumer._membership
            if membership is None or membership.member.generation.number < 0:
                continue
            for tp in consumer.assignment():
                key = (membership.member.generation.number, tp)
                assert key not in holders, f"{name} and {holders[key]} hold {tp}"
                holders[key] = name

    async def disturb(self) -> None:
        what = self.chance.randrange(8)
        names = list(self.members)
        if what == 0 and len(names) < 4:
            self.join()
        elif what == 1 and len(names) > 1:
            await self.leave(self.chance.choice(names))
        elif what == 2 and len(names) > 1:
            await self.die(self.chance.choice(names))
        elif what == 3:
            self.brokers.coordinator = self.chance.choice([1, 2, 3])
        else:
            kind = self.chance.choice(list(PASSING))
            self.brokers.refusals[kind].append(self.chance.choice(PASSING[kind]))
        self.write()

    async def leave(self, name: str) -> None:
        consumer, task = self.members.pop(name)
        await consumer.close()
        await task

    async def die(self, name: str) -> None:
        """Cut off at once; the coordinator removes it when its session is over."""
        consumer, task = self.members.pop(name)
        self.brokers.network.kill(name)
        self.brokers.network.lose_power(name)
        membership = consumer._membership
        member_id = membership.member.generation.member_id if membership is not None else ""
        loop = asyncio.get_running_loop()
        loop.call_later(6, self.brokers.remove, member_id)
        task.cancel()

    async def run(self) -> None:
        self.write()
        self.join()
        for _ in range(60):
            for _ in range(self.chance.randrange(40)):
                await asyncio.sleep(0.05)
                self.check()
            await self.disturb()
        self.brokers.refusals.clear()
        ends = {tp: set(range(self.brokers.logs[tp].end)) for tp in PARTITIONS}
        async with asyncio.timeout(120):
            while self.done != ends:
                await asyncio.sleep(0.1)
                self.check()
            while not all("reads" in c.health()[0] or "read all" in c.health()[0]
                          for c, _ in self.members.values()):  # fmt: skip
                await asyncio.sleep(0.1)
        for name in list(self.members):
            await self.leave(name)
        self.check()


def story(seed: int) -> None:
    async def tell() -> None:
        async with GroupBrokers(partitions=len(PARTITIONS)) as brokers:
            await Chaos(seed, brokers).run()

    run(tell(), seed=seed, max_time=3600.0)


@pytest.mark.parametrize("seed", range(12))
def test_a_group_in_chaos_reads_everything_and_settles(seed: int) -> None:
    story(seed)


def _ahead(consumer: Consumer) -> dict[TopicPartition, OffsetAndMetadata]:
    """Planted: records that were polled but not returned count as read."""
    states = consumer._positions.states
    return {tp: OffsetAndMetadata(s.position) for tp, s in states.items() if s.known}


async def _keeps_everything(
    membership: Membership, partitions: Sequence[TopicPartition], lost: bool
) -> None:
    """Planted: a member joins without giving up its partitions."""


@pytest.mark.parametrize(
    ("owner", "name", "planted"),
    [(InGroup, "_read_positions", _ahead), (Membership, "_give_up", _keeps_everything)],
)
def test_planted_faults_are_found(
    owner: type, name: str, planted: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, planted)
    with pytest.raises((AssertionError, TimeoutError)):
        for seed in range(6):
            story(seed)
