"""Batches that are missing between the segments of a log: a segment that is empty, short or gone.

Readers would skip them as if compaction had removed them, and a replica without them may lead. So
they are damage, as a batch with a wrong checksum is.
"""

from collections.abc import Collection, Sequence
from itertools import pairwise

from barnabas_common.record.batch import CorruptBatch

from barnabas_broker.log.index import offset_index
from barnabas_broker.log.segment.batch_scan import DamagedBatch
from barnabas_broker.log.segment.segment import Segment
from barnabas_broker.log.segment.segment_files import DELETED_SUFFIX, LOG_SUFFIX


def first_missing(
    segments: Sequence[Segment], log_start_offset: int, gaps_below: int
) -> DamagedBatch | None:
    """Where the first segment ends before the next one begins; None if all follow each other.

    Below `gaps_below` compaction may have left the gap. Only the headers behind the last index
    entry of a segment are read.
    """
    for segment, following in pairwise(segments):
        begins = following.base_offset
        if begins <= max(log_start_offset, gaps_below):
            continue
        try:
            end = segment.end_below(begins) or segment.base_offset
        except CorruptBatch as error:
            return DamagedBatch(max(segment.base_offset, log_start_offset), str(error))
        if end < begins:
            return DamagedBatch(
                max(end, log_start_offset), f"what comes before offset {begins} is missing"
            )
    return None


def first_without_log(names: Collection[str]) -> int | None:
    """The base of the first segment of which only the index is there; `names` are those of a
    folder. What deletes a segment renames its `.log` first, so the index never outlives that name.
    """
    stems = (n.removesuffix(offset_index.SUFFIX) for n in names if n.endswith(offset_index.SUFFIX))
    alone = [
        int(stem)
        for stem in stems
        if stem.isdigit()
        and not {stem + LOG_SUFFIX, stem + LOG_SUFFIX + DELETED_SUFFIX} & set(names)
    ]
    return min(alone, default=None)


def first_not_deleted(names: Collection[str], first_epoch: int | None) -> int | None:
    """The start of the first epoch in the file, unless its segment is among those being deleted.

    A deleted segment is removed only when the file shows that the log begins behind it.
    """
    ending = LOG_SUFFIX + DELETED_SUFFIX
    stems = [name.removesuffix(ending) for name in names if name.endswith(ending)]
    if first_epoch is None or any(int(s) <= first_epoch for s in stems if s.isdigit()):
        return None
    return first_epoch
