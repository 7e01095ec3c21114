"""What each broker reports about itself and the cluster, each asked directly.

A lab shows the state of every replica, also while some brokers are killed, paused or disconnected.
So no broker answers for another, and brokers that are away are not asked.
"""

import asyncio

from barnabas_common.errors import TransportError
from barnabas_common.messages.metadata import MetadataRequest, MetadataResponse, PartitionMetadata
from barnabas_common.messages.replicas import (
    DescribeReplicasRequest,
    DescribeReplicasResponse,
    ReplicaDescription,
)
from barnabas_common.runtime import Address, Channel, Message, Network, Service

ASK_SECONDS = 3.0


class View:
    """The brokers' own answers. `addresses` are their client addresses by id.

    The stage keeps the ids of the brokers that are not to be asked in `away`.
    """

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
        """Return each broker's description of its replica of one partition, by broker id."""
        answers = await self._ask_all(DescribeReplicasRequest([topic]))
        return {
            broker_id: replica
            for broker_id, answer in answers.items()
            if isinstance(answer, DescribeReplicasResponse)
            for replica in answer.replicas
            if replica.partition == partition
        }

    async def partitions(self, topic: str) -> list[PartitionMetadata]:
        """Return each partition's leader and ISR, from the answer with the newest epoch."""
        newest: dict[int, PartitionMetadata] = {}
        for answer in (await self._ask_all(MetadataRequest([topic]))).values():
            for partition in _partitions(answer):
                known = newest.get(partition.partition)
                if known is None or partition.leader_epoch >= known.leader_epoch:
                    newest[partition.partition] = partition
        return [newest[number] for number in sorted(newest)]

    async def controllers(self) -> dict[int, int]:
        """Return the controller that each broker knows, -1 for none."""
        answers = await self._ask_all(MetadataRequest())
        return {
            broker_id: answer.controller_id
            for broker_id, answer in answers.items()
            if isinstance(answer, MetadataResponse)
        }

    async def knows(self, topic: str) -> dict[int, bool]:
        """Return whether each broker knows a topic."""
        answers = await self._ask_all(MetadataRequest([topic]))
        return {broker_id: bool(_partitions(answer)) for broker_id, answer in answers.items()}

    async def _ask_all(self, request: Message) -> dict[int, Message]:
        """Return the answers of all present brokers that answer."""
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
