"""Produce: append batches to the partitions this broker leads."""

from barnabas.error_code import ErrorCode
from barnabas.messages.produce import ProducedPartition, ProduceRequest, ProduceResponse
from barnabas.runtime import DropConnection, Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_produce(
    parts: BrokerParts, request: ProduceRequest, peer: Peer
) -> ProduceResponse | None:
    """One outcome per partition, in the order of the request; with acks=0 no answer at all.

    An acks=0 producer learns of a failure only by losing its connection, as in Kafka.
    """
    if request.acks not in (-1, 0, 1):
        return ProduceResponse(
            [
                ProducedPartition(
                    item.topic,
                    item.partition,
                    ErrorCode.INVALID_REQUIRED_ACKS,
                    error_message=f"acks must be -1, 0 or 1, not {request.acks}",
                )
                for item in request.partitions
            ]
        )
    produced = await parts.replica_manager.append_records(
        request.acks, request.timeout_ms, request.partitions
    )
    if request.acks == 0:
        failed = next((item for item in produced if item.error_code), None)
        if failed is not None:
            raise DropConnection(
                f"acks=0 append to {failed.topic}-{failed.partition} failed:"
                f" {ErrorCode(failed.error_code).name}"
            )
        return None
    return ProduceResponse(produced)
