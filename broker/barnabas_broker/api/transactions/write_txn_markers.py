"""WriteTxnMarkers: a coordinator tells the leaders how transactions have ended.

A marker counts when it is committed. Only then do the offsets that a transaction committed count.
"""

from collections.abc import Iterator

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.messages.transactions import (
    TransactionPartitionResult,
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas_common.record.transactional import marker_batch
from barnabas_common.runtime import Peer
from barnabas_common.topic_name import GROUP_METADATA_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_broker.replica.leader.leadership import ACKS_ALL

# As long as Kafka's `request.timeout.ms`, which is the limit there.
_TIMEOUT_MS = 30_000


async def handle_write_txn_markers(
    parts: BrokerParts, request: WriteTxnMarkersRequest, _peer: Peer
) -> WriteTxnMarkersResponse:
    """All markers of the request are appended at once; each has an outcome of its own."""
    items = [
        ProducePartition(asked.topic, asked.partition, _batch(parts, marker))
        for marker in request.markers
        for asked in marker.partitions
    ]
    response = await parts.replica_manager.produces.produce(
        ProduceRequest(ACKS_ALL, _TIMEOUT_MS, items), AppendOrigin.COORDINATOR
    )
    assert response is not None
    errors = iter([ErrorCode(outcome.error_code) for outcome in response.partitions])
    return WriteTxnMarkersResponse([_result(parts, marker, errors) for marker in request.markers])


async def handle_abort_by_administrator(
    parts: BrokerParts, request: WriteTxnMarkersRequest, peer: Peer
) -> WriteTxnMarkersResponse:
    """An administrator ends a transaction that its coordinator does not know (KIP-664).

    Only by an abort: a commit would make records count that no coordinator has decided on.
    """
    if all(_may_be_an_administrators(marker) for marker in request.markers):
        return await handle_write_txn_markers(parts, request, peer)
    return WriteTxnMarkersResponse(
        [
            WritableTxnMarkerResult(
                marker.producer_id,
                [
                    TransactionPartitionResult(p.topic, p.partition, ErrorCode.INVALID_REQUEST)
                    for p in marker.partitions
                ],
            )
            for marker in request.markers
        ]
    )


def _may_be_an_administrators(marker: WritableTxnMarker) -> bool:
    """Whether it is an abort, with numbers that a batch can hold."""
    possible = marker.producer_id >= 0 and 0 <= marker.producer_epoch < 2**15
    return possible and not marker.transaction_result


def _result(
    parts: BrokerParts, marker: WritableTxnMarker, errors: Iterator[ErrorCode]
) -> WritableTxnMarkerResult:
    """The outcomes of one marker, which are next in `errors`."""
    result = WritableTxnMarkerResult(marker.producer_id)
    for asked in marker.partitions:
        key, error = TopicPartition(asked.topic, asked.partition), next(errors)
        if not error and key.topic == GROUP_METADATA_TOPIC:
            commit = marker.transaction_result
            parts.groups.txn_offsets.transaction_ended(key, marker.producer_id, commit)
        result.partitions.append(TransactionPartitionResult(*key, error))
    return result


def _batch(parts: BrokerParts, marker: WritableTxnMarker) -> bytes:
    return marker_batch(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
        parts.runtime.clock.wall_ms(),
    )
