"""A batch without records, which only holds an offset and its epoch.

Kafka's compaction leaves such batches too, so every reader knows them.
"""

from barnabas_common.record.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    pack_header,
    seal,
)

_NONE = -1


def empty_batch_at(offset: int, leader_epoch: int) -> bytearray:
    """The batch of this one offset."""
    header = BatchHeader(
        base_offset=offset,
        batch_length=HEADER_SIZE - LOG_OVERHEAD,
        partition_leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=0,
        last_offset_delta=0,
        base_timestamp=_NONE,
        max_timestamp=_NONE,
        producer_id=_NONE,
        producer_epoch=_NONE,
        base_sequence=_NONE,
        record_count=0,
    )
    batch = bytearray(pack_header(header))
    seal(batch)
    return batch
