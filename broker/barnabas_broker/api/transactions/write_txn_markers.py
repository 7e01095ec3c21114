"""WriteTxnMarkers: a coordinator tells the leaders how transactions have ended.

A marker counts when it is committed. Only then do the offsets that a transaction committed count.
"""

from collections.abc import Callable, Iterator

from barnabas_common.errors import KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducedPartition, ProducePartition, ProduceRequest
from barnabas_common.messages.transactions import (
    TransactionPartitionResult,
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas_common.record.transactional import marker_batch
from barnabas_common.runtime import Peer
from barnabas_common.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.coordinator.transaction.metadata import bump_supported
from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_broker.log.producers.producer_state import unpack
from barnabas_broker.log.producers.transactions import has_ongoing
from barnabas_broker.replica.leader.leadership import ACKS_ALL

# As long as Kafka's `request.timeout.ms`, which is the limit there.
_TIMEOUT_MS = 30_000
# Of an administrator, who ends one transaction at a time. Each is an append.
_MOST_MARKERS = 1000
_FIRST_COORDINATOR_EPOCH = 0


async def handle_write_txn_markers(
    parts: BrokerParts, request: WriteTxnMarkersRequest, _peer: Peer
) -> WriteTxnMarkersResponse:
    """All markers of the request are appended at once; each has an outcome of its own."""
    return await _write(parts, request, _is_late, ErrorCode.INVALID_PRODUCER_EPOCH)


async def _write(
    parts: BrokerParts,
    request: WriteTxnMarkersRequest,
    is_refused: Callable[[BrokerParts, WritableTxnMarker, TopicPartition], bool],
    refusal: ErrorCode,
) -> WriteTxnMarkersResponse:
    items: list[ProducePartition] = []
    refused: dict[int, ProducedPartition] = {}
    asked = [(one, key) for one in request.markers for key in _keys(one)]
    for number, (marker, key) in enumerate(asked):
        if is_refused(parts, marker, key):
            refused[number] = ProducedPartition(*key, refusal)
        else:
            items.append(ProducePartition(*key, _batch(parts, marker)))
    # Nothing is waited for between the look into the logs and the appends.
    response = await parts.replica_manager.produces.produce(
        ProduceRequest(ACKS_ALL, _TIMEOUT_MS, items), AppendOrigin.COORDINATOR
    )
    assert response is not None
    appended = iter(response.partitions)
    outcomes = iter([refused.get(n) or next(appended) for n in range(len(asked))])
    return WriteTxnMarkersResponse([_result(parts, one, outcomes) for one in request.markers])


def _is_late(parts: BrokerParts, marker: WritableTxnMarker, key: TopicPartition) -> bool:
    """Whether the marker is a repeated one of the transaction before the open one (KIP-1228).

    Under version 2 the open transaction has the epoch that the marker of the one before carries.
    """
    if not bump_supported(marker.transaction_version):
        return False
    try:
        producers = parts.replica_manager.partitions.hosted(key).lead().log.producers
    except KafkaError:  # the append will say so
        return False
    return has_ongoing(producers.entries.get(marker.producer_id), marker.producer_epoch)


def _is_invented(parts: BrokerParts, marker: WritableTxnMarker, key: TopicPartition) -> bool:
    """Whether an administrator's marker has epochs above those in the log. It would shut out the
    producer, and the markers of its coordinator, which could never complete the transaction."""
    try:
        producers = parts.replica_manager.partitions.hosted(key).lead().log.producers
    except KafkaError:  # the append will say so
        return False
    entry = producers.entries.get(marker.producer_id)
    if entry is None:
        return True
    known = unpack(entry)
    newest = max(known.coordinator_epoch, _FIRST_COORDINATOR_EPOCH)
    return marker.producer_epoch > known.producer_epoch or marker.coordinator_epoch > newest


async def handle_abort_by_administrator(
    parts: BrokerParts, request: WriteTxnMarkersRequest, _peer: Peer
) -> WriteTxnMarkersResponse:
    """An administrator ends a transaction that its coordinator does not know (KIP-664).

    Only by an abort: a commit would make records count that no coordinator has decided on.
    """
    few = sum(len(marker.partitions) for marker in request.markers) <= _MOST_MARKERS
    if few and all(_may_be_an_administrators(marker) for marker in request.markers):
        return await _write(parts, request, _is_invented, ErrorCode.INVALID_TXN_STATE)
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
    """Whether it is an abort, with numbers that a batch can hold, where transactions may be."""
    possible = marker.producer_id >= 0 and 0 <= marker.producer_epoch < 2**15
    elsewhere = all(asked.topic != TRANSACTION_STATE_TOPIC for asked in marker.partitions)
    return possible and elsewhere and not marker.transaction_result


def _result(
    parts: BrokerParts, marker: WritableTxnMarker, outcomes: Iterator[ProducedPartition]
) -> WritableTxnMarkerResult:
    """The outcomes of one marker, which are next in `outcomes`."""
    result = WritableTxnMarkerResult(marker.producer_id)
    for key in _keys(marker):
        outcome = next(outcomes)
        if not outcome.error_code and key.topic == GROUP_METADATA_TOPIC:
            parts.groups.txn_offsets.transaction_ended(
                key, marker.producer_id, marker.transaction_result, outcome.base_offset
            )
        result.partitions.append(TransactionPartitionResult(*key, ErrorCode(outcome.error_code)))
    return result


def _keys(marker: WritableTxnMarker) -> list[TopicPartition]:
    return [TopicPartition(asked.topic, asked.partition) for asked in marker.partitions]


def _batch(parts: BrokerParts, marker: WritableTxnMarker) -> bytes:
    return marker_batch(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
        parts.runtime.clock.wall_ms(),
    )
