"""The requests of a follower to its leader other than Fetch (Kafka's `LeaderEndPoint`)."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    EpochEndOffset,
    EpochPartition,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from barnabas_common.runtime import Channel
from barnabas_common.topic_partition import TopicPartition


class LeaderRange(NamedTuple):
    """The first offset and the end of the leader's log."""

    log_start_offset: int
    log_end_offset: int


async def fetch_epoch_ends(
    channel: Channel, broker_id: int, questions: Iterable[EpochPartition], timeout: float
) -> list[EpochEndOffset]:
    """Where epochs end in the leader's log (KIP-101). Raises TransportError.

    Each question carries the follower's leader epoch, so that a leader of another epoch refuses it
    (KIP-320).
    """
    request = OffsetForLeaderEpochRequest(broker_id, list(questions))
    response: OffsetForLeaderEpochResponse = await channel.call(request, timeout)
    return response.partitions


async def fetch_ranges(
    channel: Channel,
    broker_id: int,
    followed: Mapping[TopicPartition, tuple[int, str]],
    timeout: float,
) -> dict[TopicPartition, LeaderRange | ErrorCode]:
    """The ranges of the leader's logs; `followed` has the leader epochs and topic ids to send.

    The leader reads both ends of a log without an await between them. Raises TransportError.
    """
    request = ListOffsetsRequest(
        replica_id=broker_id,
        partitions=[
            ListOffsetsPartition(*key, timestamp, epoch, topic_id)
            for key, (epoch, topic_id) in followed.items()
            for timestamp in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)
        ],
    )
    response: ListOffsetsResponse = await channel.call(request, timeout)
    answers = iter(response.partitions)
    return {
        key: (
            ErrorCode(earliest.error_code or latest.error_code)
            if earliest.error_code or latest.error_code
            else LeaderRange(earliest.offset, latest.offset)
        )
        for key, earliest, latest in zip(followed, answers, answers, strict=True)
    }
