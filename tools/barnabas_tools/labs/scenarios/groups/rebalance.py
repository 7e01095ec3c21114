"""A third member joins: how long no member reads a partition, eager against cooperative."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from barnabas import Consumer, Producer

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster
from barnabas_tools.labs.scenarios.groups.ownership import Ownership, OwnershipListener

TOPIC = "orders"
PARTITIONS = 6
STRATEGY = "partition.assignment.strategy"

# Seconds that a member works after each poll that returned records.
FAST, SLOW = 0.01, 1.5


class Played(NamedTuple):
    """What happened in one group while its third member joined."""

    unread: dict[int, float]
    stayed: list[int]
    shared: set[int]

    def seconds(self, partitions: Sequence[int]) -> str:
        return ", ".join(f"{p}: {self.unread[p]:.2f} s" for p in partitions)


async def scenario(stage: LabCluster) -> None:
    await stage.create_topic(TOPIC, partitions=PARTITIONS)
    stop = asyncio.Event()
    writing = stage.meanwhile(_write(stage, stop))
    eager = await _play(stage, "eager-group", ("range",))
    strategy = tuple(stage.application[STRATEGY].split(","))
    other = await _play(stage, "cooperative-group", strategy)
    stop.set()
    await writing

    every = list(range(PARTITIONS))
    stage.check(
        "range: every partition was read by no member for a time",
        all(eager.unread[partition] > 0 for partition in every),
        eager.seconds(every),
    )
    stage.check(
        "range: so were those that kept their reader",
        bool(eager.stayed) and all(eager.unread[partition] > 0 for partition in eager.stayed),
        eager.stayed,
    )
    name = ",".join(strategy)
    stage.check(
        f"{name}: a partition that keeps its reader is read all the time",
        bool(other.stayed) and not any(other.unread[partition] for partition in other.stayed),
        other.seconds(other.stayed),
    )
    moved = [partition for partition in every if partition not in other.stayed]
    stage.check(
        f"{name}: only the partitions of the new member have changed hands",
        len(moved) == 2,
        other.seconds(moved),
    )
    shared = eager.shared | other.shared
    stage.check("no partition ever had two readers", not shared, sorted(shared) or "none")


async def _write(stage: LabCluster, stop: asyncio.Event) -> None:
    """Records in every partition, so that each member always has work."""
    async with Producer(stage.view.bootstrap) as producer:
        while not stop.is_set():
            handles = [await producer.send(TOPIC, b"x", partition=p) for p in range(PARTITIONS)]
            for handle in handles:
                await handle
            await asyncio.sleep(0.05)


async def _play(stage: LabCluster, group: str, strategy: Sequence[str]) -> Played:
    """Members a and b share the topic; then c joins, while b works for long after each poll."""
    stage.say(f"group {group}, {', '.join(strategy)}: a is fast, b works {SLOW:g} s at a time")
    ownership = Ownership(asyncio.get_running_loop().time)
    stop = asyncio.Event()
    members: list[asyncio.Task[None]] = []

    def join(name: str, work: float) -> "asyncio.Task[None]":
        listener = OwnershipListener(ownership, name)
        return stage.meanwhile(_member(stage, group, name, strategy, listener, work, stop))

    async def shared_by(count: int) -> bool:
        for member in members:
            if member.done():
                member.result()  # raises why it ended
        parts = list(ownership.by_member().values())
        return len(parts) == count and {len(part) for part in parts} == {PARTITIONS // count}

    members += [join("a", FAST), join("b", SLOW)]
    await stage.until("a and b have three partitions each", lambda: shared_by(2))
    await stage.catch_up()
    before = ownership.by_member()
    ownership.begin_to_measure()
    stage.say(f"c joins; until now {_told(before)}")
    members.append(join("c", FAST))
    await stage.until("each has two partitions", lambda: shared_by(3))
    after = ownership.by_member()
    played = Played(
        dict(ownership.longest_unread),
        sorted(p for name in before for p in before[name] if p in after[name]),
        set(ownership.shared),
    )
    await stage.catch_up()
    stage.say(f"now {_told(after)}")
    stage.say(f"read by no member: {played.seconds(range(PARTITIONS))}")
    stop.set()
    for member in members:
        await member
    return played


async def _member(
    stage: LabCluster,
    group: str,
    name: str,
    strategy: Sequence[str],
    listener: OwnershipListener,
    work: float,
    stop: asyncio.Event,
) -> None:
    async with Consumer(
        bootstrap_servers=stage.view.bootstrap,
        group_id=group,
        client_id=name,
        partition_assignment_strategy=strategy,
        heartbeat_interval_ms=100,
        session_timeout_ms=10_000,
    ) as consumer:
        consumer.subscribe(TOPIC, listener)
        while not stop.is_set():
            if await consumer.poll(timeout_ms=100):
                await asyncio.sleep(work)


def _told(partitions: dict[str, list[int]]) -> str:
    return "; ".join(f"{name} reads {part}" for name, part in sorted(partitions.items()))


LAB = Lab(
    name="rebalance",
    title="What the others read while a member joins their group",
    page="groups",
    prediction=Prediction(
        "Two members read three partitions each of a topic. One of them works 1.5 s on what a\n"
        "poll returns. A third member joins. In one group the assignor is range, in the other it\n"
        "is cooperative-sticky. Which partitions are read by no member meanwhile?",
        (
            "in both groups the two that the new member gets",
            "with range all six; with cooperative-sticky only the two that change hands",
            "in both groups all six, until the slow member has polled",
        ),
        1,
        "An eager assignor lets each member give up everything before it joins, and all wait for\n"
        "the slowest one. A cooperative one (KIP-429) first takes away what must move, and gives\n"
        "it to its new reader in a second rebalance. `--switch` leaves the client's default list,\n"
        "range and cooperative-sticky: of what all members support, range is preferred.",
    ),
    scenario=scenario,
    config={"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"},
    application={STRATEGY: "cooperative-sticky"},
    switch={STRATEGY: "range,cooperative-sticky"},
)
