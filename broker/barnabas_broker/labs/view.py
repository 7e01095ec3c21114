"""What each broker says of itself and of the cluster, asked one by one.

A lab wants to know what every single replica believes, also while some brokers are killed, paused
or cut off; so nobody answers for another here, and who is known to be away is not asked.
"""

import asyncio

from barnabas.errors import TransportError
from barnabas.messages.metadata import MetadataRequest, MetadataResponse, PartitionMetadata
from barnabas.messages.replicas import (
    DescribeReplicasRequest,
    DescribeReplicasResponse,
    ReplicaDescription,
)
from barnabas.runtime import Address, Channel, Message, Network, Service

ASK_SECONDS = 3.0


class View:
    """`addresses` are the brokers' client addresses by id. `away` is for the stage to maintain."""

    def __init__(self, network: Network, addresses: dict[int, Address]) -> None:
        self._channels: dict[int, Channel] = {
            broker_id: network.connect(address, Service.ADMIN)
            for broker_id, address in addresses.items()
        }
        self.addresses = addresses
        self.away: set[int] = set()

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers that are not away."""
        return ",".join(str(self.addresses[broker_id]) for broker_id in self.present)

    @property
    def present(self) -> list[int]:
        return [broker_id for broker_id in sorted(self.addresses) if broker_id not in self.away]

    async def replicas(self, topic: str, partition: int) -> dict[int, ReplicaDescription]:
        """What each broker says of its replica of one partition, by broker id."""
        answers = await self._ask_all(DescribeReplicasRequest([topic]))
        return {
            broker_id: replica
            for broker_id, answer in answers.items()
            if isinstance(answer, DescribeReplicasResponse)
            for replica in answer.replicas
            if replica.partition == partition
        }

    async def partitions(self, topic: str) -> list[PartitionMetadata]:
        """Each partition's leader and ISR: of all brokers' answers the one of the newest epoch."""
        newest: dict[int, PartitionMetadata] = {}
        for answer in (await self._ask_all(MetadataRequest([topic]))).values():
            for partition in _partitions(answer):
                known = newest.get(partition.partition)
                if known is None or partition.leader_epoch >= known.leader_epoch:
                    newest[partition.partition] = partition
        return [newest[number] for number in sorted(newest)]

    async def controllers(self) -> dict[int, int]:
        """Who is controller, as each broker believes; -1: it knows of none."""
        answers = await self._ask_all(MetadataRequest())
        return {
            broker_id: answer.controller_id
            for broker_id, answer in answers.items()
            if isinstance(answer, MetadataResponse)
        }

    async def knows(self, topic: str) -> dict[int, bool]:
        """Whether each broker has heard of a topic."""
        answers = await self._ask_all(MetadataRequest([topic]))
        return {broker_id: bool(_partitions(answer)) for broker_id, answer in answers.items()}

    async def _ask_all(self, request: Message) -> dict[int, Message]:
        """The answers of all present brokers that answer."""
        present = self.present
        answers = await asyncio.gather(*(self._ask(broker_id, request) for broker_id in present))
        return {
            broker_id: answer
            for broker_id, answer in zip(present, answers, strict=True)
            if answer is not None
        }

    async def _ask(self, broker_id: int, request: Message) -> Message | None:
        try:
            return await self._channels[broker_id].call(request, ASK_SECONDS)
        except TransportError:
            return None


def _partitions(answer: Message) -> list[PartitionMetadata]:
    return [p for topic in answer.topics for p in topic.partitions if not topic.error_code]
