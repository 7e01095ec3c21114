"""Groups whose coordinator moves: what their tests share."""

import asyncio
from collections.abc import Callable, Sequence

from barnabas_common.events import EventKind
from barnabas_common.record.batch import BatchHeader
from barnabas_common.record.reader import Record
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster

from tests.support.raw_groups import Coordinators, RawMember, settle

OTHER = TopicPartition("orders", 1)


async def group(coordinators: Coordinators, count: int = 1, **changes: object) -> list[RawMember]:
    broker_id = await coordinators.find("g")
    members = [RawMember(coordinators, broker_id, "g", **changes) for _ in range(count)]  # type: ignore[arg-type]
    await settle(members)
    return members


async def moved(
    cluster: SimulatedCluster, coordinators: Coordinators, members: list[RawMember]
) -> int:
    """Kill the coordinator, and wait until another one answers; the dead broker is returned."""
    before = await coordinators.find("g")
    cluster.kill(before)
    while (after := await coordinators.find("g")) == before:
        await asyncio.sleep(0.1)
    await coordinators.describe("g")
    for member in members:
        member.broker_id = after
    return before


def all_in_sync(cluster: SimulatedCluster) -> bool:
    partitions = [
        partition
        for broker in cluster.brokers().values()
        for partition in broker.replica_manager.partitions
        if partition.leadership is not None
    ]
    return bool(partitions) and all(len(p.leadership.isr.committed) == 3 for p in partitions)  # type: ignore[union-attr]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.2)


def events_of(cluster: SimulatedCluster, kind: EventKind) -> list[str]:
    return [event.cause for event in cluster.events() if event.kind is kind]


class SlowLog:
    """The log of a broker's coordinator, whose loads wait until they are released."""

    def __init__(self, cluster: SimulatedCluster, broker_id: int) -> None:
        self.groups = cluster.broker(broker_id).groups._groups
        self._load = self.groups._log.load
        self.released: dict[int, asyncio.Event] = {}
        self.read_under: int | None = None
        self.groups._log.load = self.load  # type: ignore[method-assign]

    async def load(
        self,
        key: TopicPartition,
        leader_epoch: int,
        take: Callable[[BatchHeader, Sequence[Record]], None],
        only_committed: bool,
    ) -> int:
        await self.released.setdefault(leader_epoch, asyncio.Event()).wait()
        under = leader_epoch if self.read_under is None else self.read_under
        return await self._load(key, under, take, only_committed)

    def release(self, leader_epoch: int | None = None) -> None:
        for epoch, event in self.released.items():
            if leader_epoch in (None, epoch):
                event.set()
