"""A leader's stamp: the offsets and the epoch of the batches it appends."""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas_common.record.batch import STAMP_SIZE, BatchHeader, Buffer, stamp

from barnabas_broker.log.segment.segment import PlacedBatch
from barnabas_broker.log.validation import CheckedBatch


class Stamped(NamedTuple):
    """Batches as they are written; `headers` have their offsets."""

    buffers: list[Buffer]
    placed: list[PlacedBatch]
    headers: list[BatchHeader]
    last_offset: int


def stamped(batches: Sequence[CheckedBatch], first_offset: int, leader_epoch: int) -> Stamped:
    """Give the batches the offsets from `first_offset` on. The records are not copied."""
    buffers: list[Buffer] = []
    placed: list[PlacedBatch] = []
    headers: list[BatchHeader] = []
    offset = first_offset
    for header, data in batches:
        buffers.append(stamp(offset, leader_epoch, header.batch_length))
        buffers.append(data[STAMP_SIZE:])
        headers.append(header._replace(base_offset=offset))
        offset += header.last_offset_delta + 1
        placed.append(PlacedBatch(offset - 1, header.size, header.max_timestamp))
    return Stamped(buffers, placed, headers, offset - 1)
