"""Requests that bypass the client, as no correct client would send them."""

from barnabas_common.messages.produce import ProducedPartition, ProducePartition, ProduceRequest
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.runtime import Address, Message, Service
from barnabas_common.transport.grpc_network import GrpcNetwork


def batch(*values: bytes, compression: str = "none") -> bytes:
    """Return a well-formed record batch."""
    builder = BatchBuilder(compression)
    for value in values:
        builder.append(1_700_000_000_000, None, value)
    return builder.build()


async def call(
    address: Address, service: Service, request: Message, limit: int = 1 << 28
) -> Message:
    """Send one request on a new channel; the default size limit is above every broker's."""
    channel = GrpcNetwork(max_message_bytes=limit).connect(address, service)
    try:
        return await channel.call(request, timeout=10.0)
    finally:
        await channel.close()


async def produce_raw(
    address: Address, topic: str, partition: int, records: bytes, acks: int = -1
) -> ProducedPartition:
    """Produce bytes as they are and return the partition's outcome."""
    request = ProduceRequest(acks, 5000, [ProducePartition(topic, partition, records)])
    response = await call(address, Service.DATA, request)
    (produced,) = response.partitions
    return produced
