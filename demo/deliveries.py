"""What became of every row: where it was acknowledged, when, and what was read back of it.

The producer's callbacks fill `Deliveries`; `compare` judges. Tested on planted faults: a check that
cannot fail proves nothing.
"""

import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from barnabas import ConsumerRecord
from barnabas.errors import BarnabasError
from barnabas.producer.handle import RecordMetadata
from dataset import row_of

NOT_ACKED = -1


class Deliveries:
    """`partition[row]` and `offset[row]` say where a row was acknowledged; -1: it was not."""

    def __init__(self, rows: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.partition = array("h", [NOT_ACKED]) * rows
        self.offset = array("q", [NOT_ACKED]) * rows
        self.acked = 0
        self.failures: list[BarnabasError] = []
        self.longest_gap: dict[int, float] = {}
        self._clock = clock
        self._began = clock()
        self._last_ack: dict[int, float] = {}

    def begin(self) -> None:
        """The sending begins: the first gap of every partition is counted from now."""
        self._began = self._clock()

    def callback(self, row: int) -> Callable[[RecordMetadata | None, BarnabasError | None], None]:
        """The `on_delivery` of one row."""
        return partial(self._delivered, row)

    def _delivered(
        self, row: int, metadata: RecordMetadata | None, error: BarnabasError | None
    ) -> None:
        if metadata is None:
            if error is not None:
                self.failures.append(error)
            return
        self.partition[row] = metadata.partition
        self.offset[row] = metadata.offset
        self.acked += 1
        self._note_time(metadata.partition)

    def _note_time(self, partition: int) -> None:
        now = self._clock()
        gap = now - self._last_ack.get(partition, self._began)
        self.longest_gap[partition] = max(gap, self.longest_gap.get(partition, 0.0))
        self._last_ack[partition] = now


@dataclass
class ReadBack:
    """What was read back, held against what was acknowledged. Everything counts records.

    `lost`: acknowledged rows of which no copy was read. `misplaced`: acknowledged rows that are not
    at the offset they were acknowledged at. `altered`: records that are no row that was sent.
    `reordered`: rows behind a later row of their partition. `duplicated`: further copies of a row,
    which a retry leaves when the broker had stored the batch and the answer got lost.
    """

    records: int = 0
    lost: int = 0
    misplaced: int = 0
    altered: int = 0
    reordered: int = 0
    duplicated: int = 0
    per_partition: dict[int, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Nothing acknowledged is missing or wrong; duplicates are counted, not held against it."""
        return not (self.lost or self.misplaced or self.altered or self.reordered)


def compare(
    sent: Sequence[bytes], deliveries: Deliveries, records: Iterable[ConsumerRecord]
) -> ReadBack:
    """`sent[row]` is the value of each row; `records` everything read, partitions in order."""
    result = ReadBack()
    copies = bytearray(len(sent))
    in_place = bytearray(len(sent))
    last_row: dict[int, int] = {}
    for record in records:
        result.records += 1
        partition = record.partition
        result.per_partition[partition] = result.per_partition.get(partition, 0) + 1
        row = _row_sent(sent, record.value)
        if row is None:
            result.altered += 1
            continue
        if deliveries.offset[row] == record.offset and deliveries.partition[row] == partition:
            in_place[row] = 1
        if copies[row]:
            result.duplicated += 1
        else:
            copies[row] = 1
            result.reordered += row < last_row.get(partition, -1)
            last_row[partition] = max(row, last_row.get(partition, -1))
    for row, offset in enumerate(deliveries.offset):
        if offset != NOT_ACKED:
            result.lost += not copies[row]
            result.misplaced += bool(copies[row] and not in_place[row])
    return result


def _row_sent(sent: Sequence[bytes], value: bytes | None) -> int | None:
    """The row of which `value` is an exact copy."""
    try:
        row = row_of(value or b"")
    except (ValueError, KeyError, TypeError):
        return None
    return row if 0 <= row < len(sent) and sent[row] == value else None
