"""The two classical failures of truncation by high watermark, as exact schedules (KIP-101).

Each is played with the same steps under both rules, on real processes and in the simulator.
`LabCluster` hides the differences: how a process dies, and what its disk keeps.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

from barnabas import Admin, Consumer, Producer
from barnabas_common.events import EventKind
from barnabas_common.messages.replicas import ReplicaDescription
from barnabas_common.record.reader import records_from
from barnabas_common.runtime import PausePoint
from barnabas_common.topic_partition import TopicPartition

from tests.support.replicas import replicas, until_replicas

RULES = ("high-watermark", "leader-epoch")
Values = list[bytes]


class Pauses(Protocol):
    """`FilePauseControl` or `MemoryPauseControl`."""

    def hold(self, broker_id: int, point: PausePoint, peer: int | None = None) -> None: ...

    async def reached(
        self, broker_id: int, point: PausePoint, peer: int | None = None, within: float = 20.0
    ) -> None: ...

    def release(self, broker_id: int, point: PausePoint, peer: int | None = None) -> None: ...

    def release_all(self) -> None: ...


class LabCluster(Protocol):
    """A cluster, real or simulated. `client` has arguments for the clients' constructors."""

    bootstrap: str
    client: dict[str, Any]

    @property
    def pauses(self) -> Pauses: ...

    async def kill(self, broker_id: int) -> None:
        """Kill a broker as by kill -9; the page cache stays."""
        ...

    async def lose_power(self, flushed: int, unflushed: int) -> None:
        """Cut the power of two brokers at once.

        The first had flushed everything, the second only what a broker must flush.
        """
        ...

    async def start(self, broker_id: int) -> None:
        """Start a broker that is down and wait until it serves."""
        ...

    async def stop(self, broker_id: int) -> None:
        """Stop a broker cleanly, so that everything is flushed."""
        ...

    async def session_over(self, broker_id: int) -> None:
        """Wait until ZooKeeper knows that a dead broker is gone."""
        ...

    def on_disk(self, broker_id: int, key: TopicPartition) -> bytes:
        """Return the segments of a stopped broker's replica, joined."""
        ...

    def durable_high_watermark(self, broker_id: int, key: TopicPartition) -> int:
        """Return the high watermark in the broker's checkpoint file."""
        ...


@dataclass
class Told:
    """The fate of the record in question, and the replicas' logs at the end."""

    acked_at: int
    end_after_epoch_bump: int = -1
    causes: list[str] = field(default_factory=list)
    read_after: Values = field(default_factory=list)
    read_at_last: Values = field(default_factory=list)
    logs: dict[int, bytes] = field(default_factory=dict)

    def values(self, broker_id: int) -> Values:
        """Return the values of all records in a replica's log on disk."""
        return [record.value or b"" for record in records_from(self.logs[broker_id], 0)]


async def loss(stage: LabCluster, key: TopicPartition) -> Told:
    """A committed record is lost (KIP-101), here with a new epoch in the place of a restart.

    Broker 1 leads, 2 and 3 follow. Broker 2 has m2 and the leader knows it, so m2 is acknowledged;
    but 2 does not know that m2 is committed. Broker 3 leaves, which starts a new epoch, and 2
    becomes a follower in it. Then the leader dies before 2 can fetch again.
    """
    pauses, fetch = stage.pauses, PausePoint.FOLLOWER_BEFORE_FETCH
    await _create(stage, key, [1, 2, 3])
    async with Producer(bootstrap_servers=stage.bootstrap, **stage.client) as producer:
        await producer.send_and_wait(key.topic, b"m1", partition=0)
        await _until(stage, key, lambda r: r[2].high_watermark == 1)
        pauses.hold(2, fetch, 1)
        await pauses.reached(2, fetch, 1)
        sent = await producer.send(key.topic, b"m2", partition=0)
        await _until(stage, key, lambda r: r[1].log_end_offset == 2)
        pauses.hold(1, PausePoint.LEADER_BEFORE_FETCH_ANSWER, 2)
        pauses.release(2, fetch, 1)
        await pauses.reached(1, PausePoint.LEADER_BEFORE_FETCH_ANSWER, 2)  # m2 is in flight
        pauses.hold(2, PausePoint.FOLLOWER_BEFORE_APPLY, 1)
        pauses.release(1, PausePoint.LEADER_BEFORE_FETCH_ANSWER, 2)
        await pauses.reached(2, PausePoint.FOLLOWER_BEFORE_APPLY, 1)
        pauses.hold(1, PausePoint.LEADER_BEFORE_FETCH_ANSWER, 2)
        pauses.release(2, PausePoint.FOLLOWER_BEFORE_APPLY, 1)
        told = Told(acked_at=(await sent).offset)  # acks=all, three in-sync replicas
    before = await replicas(stage.bootstrap, key, **stage.client)
    assert before[1].in_sync_replicas == [1, 2, 3]
    assert (before[2].log_end_offset, before[2].high_watermark) == (2, 1)

    pauses.hold(2, fetch)
    await stage.kill(3)
    epoch = before[1].leader_epoch
    bumped = await _until(
        stage, key, lambda r: r[1].leader_epoch > epoch and r[2].leader_epoch > epoch
    )
    assert 2 in bumped[1].in_sync_replicas and 3 not in bumped[1].in_sync_replicas
    await pauses.reached(2, fetch)
    told.end_after_epoch_bump = (await replicas(stage.bootstrap, key, **stage.client))[
        2
    ].log_end_offset
    told.causes = await _causes_of_truncation(stage, key, 2)
    await stage.kill(1)
    await _until(stage, key, lambda r: r[2].is_leader)
    pauses.release_all()
    told.read_after = await _read(stage, key)
    await stage.start(1)
    await stage.start(3)
    await _until(stage, key, lambda r: len(r[2].in_sync_replicas) == 3)
    told.read_at_last = await _read(stage, key)
    return told


async def divergence(stage: LabCluster, key: TopicPartition) -> Told:
    """Two logs diverge (KIP-101). Broker 1 leads, 2 follows; both have m2, but 2 never flushed it.

    Both lose power, and 2 returns first: it is in sync, so that it may lead, but it has lost m2. It
    appends m3 at that offset. Then 1 returns with m2.
    """
    await _create(stage, key, [1, 2])
    async with Producer(bootstrap_servers=stage.bootstrap, **stage.client) as producer:
        await producer.send_and_wait(key.topic, b"m1", partition=0)
        await _until(stage, key, lambda r: r[2].high_watermark == 1)
        await stage.stop(2)  # flushes m1, and writes that it is committed
        await stage.start(2)
        await _until(stage, key, lambda r: r[1].in_sync_replicas == [1, 2])
        told = Told((await producer.send_and_wait(key.topic, b"m2", partition=0)).offset)
    await _until(
        stage,
        key,
        lambda r: r[2].log_end_offset == 2 and stage.durable_high_watermark(1, key) == 2,
    )
    await stage.lose_power(flushed=1, unflushed=2)
    await stage.session_over(1)
    await stage.start(2)
    alone = await _until(stage, key, lambda r: r[2].is_leader)
    told.end_after_epoch_bump = alone[2].log_end_offset
    async with Producer(bootstrap_servers=stage.bootstrap, **stage.client) as producer:
        await producer.send_and_wait(key.topic, b"m3", partition=0)
        told.read_after = await _read(stage, key)
        await stage.start(1)
        await _until(stage, key, lambda r: sorted(r[2].in_sync_replicas) == [1, 2])
        await producer.send_and_wait(key.topic, b"m4", partition=0)
    told.read_at_last = await _read(stage, key)
    await _until(
        stage, key, lambda r: r[1].high_watermark == r[2].high_watermark == r[2].log_end_offset
    )
    for broker_id in (1, 2):
        await stage.stop(broker_id)
        told.logs[broker_id] = stage.on_disk(broker_id, key)
    return told


def check_loss(rule: str, told: Told) -> None:
    """Check that m2, which was acknowledged, is lost by high watermark and kept by epochs."""
    assert told.acked_at == 1
    if rule == "high-watermark":
        assert told.end_after_epoch_bump == 1
        assert ["replica.truncation is high-watermark" in cause for cause in told.causes] == [True]
        assert told.read_after == [b"m1"]
        assert b"m2" not in told.read_at_last
    else:
        assert told.end_after_epoch_bump == 2
        assert told.causes == []
        assert told.read_after == told.read_at_last == [b"m1", b"m2"]


def check_divergence(rule: str, told: Told) -> None:
    """Check that m2, which one disk had not flushed, is lost either way, and what else differs."""
    assert told.acked_at == 1
    assert told.end_after_epoch_bump == 1
    assert told.read_after == [b"m1", b"m3"]
    if rule == "high-watermark":
        assert told.values(1) == [b"m1", b"m2", b"m4"]
        assert told.values(2) == [b"m1", b"m3", b"m4"]
    else:
        assert told.logs[1] == told.logs[2]
        assert told.values(1) == told.read_at_last == [b"m1", b"m3", b"m4"]


async def _causes_of_truncation(
    stage: LabCluster, key: TopicPartition, broker_id: int
) -> list[str]:
    """Return the causes of this broker's truncations, from its events."""
    async with Admin(bootstrap_servers=stage.bootstrap, **stage.client) as admin:
        answers = await admin.describe_events([key.topic])
    return [
        event.cause
        for answer in answers
        if answer.broker_id == broker_id
        for event in answer.events
        if event.kind is EventKind.LOG_TRUNCATED
    ]


async def _create(stage: LabCluster, key: TopicPartition, assigned: list[int]) -> None:
    async with Admin(bootstrap_servers=stage.bootstrap, **stage.client) as admin:
        await admin.create_topic(
            key.topic, assignments={0: assigned}, configs={"min.insync.replicas": "1"}
        )
    await _until(stage, key, lambda r: r[assigned[0]].in_sync_replicas == assigned)


async def _until(
    stage: LabCluster, key: TopicPartition, condition: Any
) -> dict[int, ReplicaDescription]:
    def holds(found: dict[int, ReplicaDescription]) -> bool:
        try:
            return bool(condition(found))
        except KeyError:  # a broker that does not answer yet
            return False

    return await until_replicas(stage.bootstrap, key, holds, within=40.0, **stage.client)


async def _read(stage: LabCluster, key: TopicPartition) -> Values:
    """Return all values that a consumer gets now."""
    values: Values = []
    async with Consumer(
        bootstrap_servers=stage.bootstrap, auto_offset_reset="earliest", **stage.client
    ) as consumer:
        consumer.assign([key])
        end = (await consumer.end_offsets([key]))[key]
        while await consumer.position(key) < end:
            values += [record.value or b"" for record in await consumer.poll(timeout_ms=200)]
    return values
