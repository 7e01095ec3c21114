"""Batches of raw transactional producers, and what readers of both isolation levels find."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas import Consumer
from barnabas.consumer.config import IsolationLevel
from barnabas_common.errors import TransportError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.messages.replicas import ReplicaDescription
from barnabas_common.record.batch import TRANSACTIONAL
from barnabas_common.runtime import Address, Message, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import CLIENT_PORT, INTERNAL_PORT, SimulatedCluster

from tests.support.idempotent import sent
from tests.support.raw_transactions import PAUSE_SECONDS, RawTransaction

E = ErrorCode
_AGAIN = (
    E.NOT_ENOUGH_REPLICAS,
    E.NOT_LEADER_OR_FOLLOWER,
    E.UNKNOWN_TOPIC_OR_PARTITION,
    E.REQUEST_TIMED_OUT,
)


async def ask(
    cluster: SimulatedCluster,
    broker_id: int,
    service: Service,
    request: Message,
    timeout: float = 10.0,
) -> Message:
    port = INTERNAL_PORT if service is Service.REPLICA else CLIENT_PORT
    network = cluster.client_runtime("asking").network
    channel = network.connect(Address(f"broker-{broker_id}", port), service)
    try:
        return await channel.call(request, timeout)
    finally:
        await channel.close()


def leader_of(cluster: SimulatedCluster, key: TopicPartition) -> int | None:
    """The broker that leads the partition and knows it."""
    for broker_id in cluster.running_brokers:
        if not cluster.is_serving(broker_id):
            continue
        partition = cluster.broker(broker_id).replica_manager.partitions.get(key)
        if partition is not None and partition.leadership is not None:
            return broker_id
    return None


def described(cluster: SimulatedCluster, key: TopicPartition) -> ReplicaDescription:
    """The leader's replica."""
    leader = leader_of(cluster, key)
    assert leader is not None
    partition = cluster.broker(leader).replica_manager.partitions.get(key)
    assert partition is not None
    return partition.describe()


@dataclass
class Sender:
    """Sends the batches of one raw transaction, as often as it takes."""

    cluster: SimulatedCluster
    transaction: RawTransaction
    _next: dict[tuple[TopicPartition, int, int], int] = field(default_factory=dict)

    def batch(self, key: TopicPartition, *values: bytes) -> bytes:
        producer = self.transaction.producer
        place = (key, *producer)
        sequence = self._next.get(place, 0)
        self._next[place] = sequence + len(values)
        return sent(
            *values,
            producer_id=producer.producer_id,
            epoch=producer.epoch,
            sequence=sequence,
            attributes=TRANSACTIONAL,
        )

    async def try_produce(
        self, key: TopicPartition, batch: bytes, name: str | None = None
    ) -> ErrorCode:
        leader = leader_of(self.cluster, key)
        if leader is None:
            return E.NOT_LEADER_OR_FOLLOWER
        name = self.transaction.name if name is None else name
        request = ProduceRequest(-1, 3000, [ProducePartition(*key, batch)], name)
        try:
            answer = await ask(self.cluster, leader, Service.DATA, request)
        except TransportError:
            return E.NOT_LEADER_OR_FOLLOWER
        return ErrorCode(answer.partitions[0].error_code)

    async def produce(self, key: TopicPartition, *values: bytes) -> None:
        batch = self.batch(key, *values)
        while error := await self.try_produce(key, batch):
            assert error in _AGAIN, error
            await asyncio.sleep(PAUSE_SECONDS)


async def read(
    cluster: SimulatedCluster,
    partitions: Sequence[TopicPartition],
    isolation_level: IsolationLevel = "read_committed",
    name: str = "reader",
) -> list[bytes]:
    """The values of the partitions, from their start to their end for such a reader."""
    async with Consumer(
        bootstrap_servers=cluster.bootstrap,
        runtime=cluster.client_runtime(name),
        isolation_level=isolation_level,
        auto_offset_reset="earliest",
    ) as consumer:
        ends = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        values: list[bytes] = []
        while True:
            values += [record.value or b"" for record in await consumer.poll(500)]
            positions = [await consumer.position(key) for key in partitions]
            if all(at >= ends[key] for at, key in zip(positions, partitions, strict=True)):
                return sorted(values)
