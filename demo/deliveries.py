"""The outcome of every row: where and when it was acknowledged, and what was read back.

The producer's callbacks fill `Deliveries`, and `compare` checks them against the records read. It
is tested on planted faults, because a check that cannot fail proves nothing.
"""

import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from barnabas import ConsumerRecord
from barnabas.producer.handle import RecordMetadata
from barnabas_common.errors import BarnabasError
from dataset import row_of

NOT_ACKED = -1


class Deliveries:
    """`partition[row]` and `offset[row]`: where a row was acknowledged; -1 if it was not."""

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
        """Start sending: the first gap of every partition is counted from now."""
        self._began = self._clock()

    def callback(self, row: int) -> Callable[[RecordMetadata | None, BarnabasError | None], None]:
        """Return the `on_delivery` callback that records the delivery of one row."""
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
    """What was read back, compared with what was acknowledged. All fields count records.

    `lost`: acknowledged rows of which no copy was read. `misplaced`: acknowledged rows at another
    offset than acknowledged. `altered`: records that differ from every sent row. `reordered`: rows
    behind a later row of their partition. `duplicated`: further copies of a row, which a retry
    would leave if the broker had stored the batch, its answer was lost, and the producer was not
    idempotent.
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
        """Whether nothing acknowledged is missing or wrong, and nothing is there twice."""
        wrong = self.lost or self.misplaced or self.altered or self.reordered
        return not (wrong or self.duplicated)


def compare(
    sent: Sequence[bytes], deliveries: Deliveries, records: Iterable[ConsumerRecord]
) -> ReadBack:
    """Compare `sent`, the value of each row, with all `records` read, in order of partition."""
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
    """Return the row of which `value` is an exact copy."""
    try:
        row = row_of(value or b"")
    except (ValueError, KeyError, TypeError):
        return None
    return row if 0 <= row < len(sent) and sent[row] == value else None
