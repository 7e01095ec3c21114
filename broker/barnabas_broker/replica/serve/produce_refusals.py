"""What is refused of a produce request without a look into a log."""

from itertools import islice

from barnabas_common.errors import (
    InvalidTopicError,
    KafkaError,
    TransactionalIdAuthorizationFailedError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import (
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from barnabas_common.record.batch import CorruptBatch, parse_header
from barnabas_common.runtime import DropConnection
from barnabas_common.topic_name import INTERNAL_TOPICS

from barnabas_broker.log.record_validation import MOST_BATCHES, batch_starts
from barnabas_broker.replica.leader.leadership import ACKS_NONE


def refusal_of(item: ProducePartition, request: ProduceRequest) -> KafkaError | None:
    """Why the records may not come from a client, if so."""
    if item.topic in INTERNAL_TOPICS:
        return InvalidTopicError(f"cannot append to the internal topic {item.topic}")
    try:
        header = parse_header(item.records)
    except CorruptBatch:  # the log will say so
        return None
    if header.is_transactional and not header.is_control and not request.transactional_id:
        return TransactionalIdAuthorizationFailedError(
            "a request with transactional batches must name its transactional id"
        )
    return None


def invalid_acks(item: ProducePartition, acks: int) -> ProducedPartition:
    """The answer to a request with other `acks` than -1, 0 or 1."""
    return ProducedPartition(
        item.topic,
        item.partition,
        ErrorCode.INVALID_REQUIRED_ACKS,
        error_message=f"acks must be -1, 0 or 1, not {acks}",
    )


def too_many_batches(request: ProduceRequest) -> ProduceResponse:
    """The answer to a request with more than `MOST_BATCHES`: send fewer, or the only one again.

    Raises DropConnection if it wants none.
    """
    refused = [
        ProducedPartition(
            item.topic,
            item.partition,
            ErrorCode.RECORD_LIST_TOO_LARGE
            if len(list(islice(batch_starts(item.records), 2))) > 1
            else ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            error_message=f"the request has more than {MOST_BATCHES} batches",
        )
        for item in request.partitions
    ]
    if request.acks == ACKS_NONE:
        check_all_appended(refused)
    return ProduceResponse(refused)


def check_all_appended(produced: list[ProducedPartition]) -> None:
    """Raises DropConnection if an append failed."""
    for item in produced:
        if item.error_code:
            raise DropConnection(
                f"acks=0 append to {item.topic}-{item.partition} failed:"
                f" {ErrorCode(item.error_code).name}"
            )
