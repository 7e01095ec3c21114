"""Asking a leader where its log starts and ends, for a follower that is out of range."""

from typing import NamedTuple

from barnabas.error_code import ErrorCode
from barnabas.errors import TransportError
from barnabas.messages.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from barnabas.runtime import Channel
from barnabas.topic_partition import TopicPartition


class LeaderRange(NamedTuple):
    """The leader's log, first offset and end."""

    log_start_offset: int
    log_end_offset: int


async def ask_range(
    channel: Channel, key: TopicPartition, leader_epoch: int, broker_id: int, timeout: float
) -> LeaderRange | ErrorCode:
    """Both ends, read in one turn of the leader's loop; or why there is no answer."""
    request = ListOffsetsRequest(
        replica_id=broker_id,
        partitions=[
            ListOffsetsPartition(*key, timestamp=timestamp, current_leader_epoch=leader_epoch)
            for timestamp in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)
        ],
    )
    try:
        response: ListOffsetsResponse = await channel.call(request, timeout)
    except TransportError:
        return ErrorCode.NETWORK_EXCEPTION
    for listed in response.partitions:
        if listed.error_code:
            return ErrorCode(listed.error_code)
    earliest, latest = response.partitions
    return LeaderRange(earliest.offset, latest.offset)
