"""ListOffsets and OffsetForLeaderEpoch: where logs, timestamps and leader epochs start or end."""

from collections import Counter
from collections.abc import Iterable

from barnabas_common.errors import KafkaError, OffsetNotAvailableError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    EpochEndOffset,
    EpochPartition,
    ListedOffset,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.replica.leader.leadership import Leadership
from barnabas_broker.replica.partition.partitions import Partitions
from barnabas_broker.replica.serve.fetch_isolation import ISOLATION_LEVELS, FetchIsolation


class OffsetLookups:
    """Answers both requests from the logs that this broker leads."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    async def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """List offsets. LATEST is the high watermark for a consumer, the log end for a follower.

        As in Kafka a partition that a client names twice is refused; a follower asks for both ends
        of a log at once.
        """
        if request.isolation_level not in ISOLATION_LEVELS:
            return ListOffsetsResponse([_invalid(item) for item in request.partitions])
        isolation = FetchIsolation.of(request.replica_id >= 0, request.isolation_level)
        repeated = _repeated(request.partitions) if request.replica_id < 0 else set()
        return ListOffsetsResponse(
            [
                _invalid(item)
                if (item.topic, item.partition) in repeated
                else self._list(item, isolation)
                for item in request.partitions
            ]
        )

    def _list(self, item: ListOffsetsPartition, isolation: FetchIsolation) -> ListedOffset:
        key = TopicPartition(item.topic, item.partition)
        try:
            partition = self._partitions.hosted(key, item.topic_id)
            leadership = partition.lead(item.current_leader_epoch)
            timestamp, offset, epoch = _look_up(leadership, item.timestamp, isolation)
            return ListedOffset(*key, timestamp=timestamp, offset=offset, leader_epoch=epoch)
        except KafkaError as error:
            return ListedOffset(*key, error.code)

    async def for_leader_epoch(
        self, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        """Return where epochs end in the leader's log; -1, -1 without an error if undefined.

        Safe on every listener, because it only reads.
        """
        return OffsetForLeaderEpochResponse(
            [self._end_of_epoch(item) for item in request.partitions]
        )

    def _end_of_epoch(self, item: EpochPartition) -> EpochEndOffset:
        key = TopicPartition(item.topic, item.partition)
        try:
            partition = self._partitions.hosted(key, item.topic_id)
            leadership = partition.lead(item.current_leader_epoch)
            epoch, end_offset = leadership.log.end_offset_for_epoch(item.leader_epoch)
            return EpochEndOffset(*key, leader_epoch=epoch, end_offset=end_offset)
        except KafkaError as error:
            return EpochEndOffset(*key, error.code)


def _repeated(items: Iterable[ListOffsetsPartition]) -> set[tuple[str, int]]:
    named = Counter((item.topic, item.partition) for item in items)
    return {key for key, times in named.items() if times > 1}


def _invalid(item: ListOffsetsPartition) -> ListedOffset:
    return ListedOffset(item.topic, item.partition, ErrorCode.INVALID_REQUEST)


def _look_up(
    leadership: Leadership, timestamp: int, isolation: FetchIsolation
) -> tuple[int, int, int]:
    """Timestamp, offset and leader epoch of an answer; offset -1 if no record is that late."""
    log = leadership.log
    end = isolation.end_of(log)
    if timestamp == LATEST_TIMESTAMP:
        _check_available(leadership, isolation)
        return -1, end, leadership.epoch
    if timestamp == EARLIEST_TIMESTAMP:
        epoch = log.leader_epochs.epoch_for_offset(log.log_start_offset)
        return -1, log.log_start_offset, -1 if epoch is None else epoch
    found = (
        log.offset_of_max_timestamp()
        if timestamp == MAX_TIMESTAMP
        else log.offset_for_timestamp(timestamp)
    )
    if found is not None and found[1] < end:
        return found
    if found is not None:
        _check_available(leadership, isolation)
    return -1, -1, -1


def _check_available(leadership: Leadership, isolation: FetchIsolation) -> None:
    """Refuse the latest offset while a new leader's high watermark is below the epoch's start.

    Until then it may be lower than what consumers have already seen (KIP-207).
    """
    log = leadership.log
    is_consumer = isolation is not FetchIsolation.LOG_END
    if is_consumer and log.high_watermark < leadership.epoch_start_offset:
        raise OffsetNotAvailableError(
            f"{leadership.topic_partition}: the high watermark {log.high_watermark} of the new"
            f" leader has yet to reach {leadership.epoch_start_offset}"
        )
