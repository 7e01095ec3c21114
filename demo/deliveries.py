"""What became of every row: acknowledged, by which partition, and the gaps between the acks."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.errors import BarnabasError
from barnabas.producer.handle import RecordMetadata


@dataclass
class Deliveries:
    """Filled by the producer's callbacks; `acked[row]` is 1 once the row is acknowledged."""

    rows: int
    acked: bytearray = field(init=False)
    failures: list[BarnabasError] = field(default_factory=list)
    acked_count: int = 0
    longest_gap: dict[int, float] = field(default_factory=dict)
    _last_ack: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.acked = bytearray(self.rows)

    def callback(self, row: int) -> Callable[[RecordMetadata | None, BarnabasError | None], None]:
        """The `on_delivery` of one row."""

        def delivered(metadata: RecordMetadata | None, error: BarnabasError | None) -> None:
            if metadata is None:
                if error is not None:
                    self.failures.append(error)
                return
            self.acked[row] = 1
            self.acked_count += 1
            self._note(metadata.partition)

        return delivered

    def _note(self, partition: int) -> None:
        now = time.monotonic()
        last = self._last_ack.get(partition)
        if last is not None and now - last > self.longest_gap.get(partition, 0.0):
            self.longest_gap[partition] = now - last
        self._last_ack[partition] = now


@dataclass(frozen=True)
class ReadBack:
    """The comparison of what was acknowledged with what was read back."""

    records: int
    lost: int
    duplicated: int
    per_partition: dict[int, int]


def compare(deliveries: Deliveries, rows_read: list[tuple[int, int]]) -> ReadBack:
    """`rows_read`: (partition, row number) of every record consumed, in any order."""
    seen = bytearray(deliveries.rows)
    per_partition: dict[int, int] = {}
    duplicated = 0
    for partition, row in rows_read:
        duplicated += seen[row]
        seen[row] = 1
        per_partition[partition] = per_partition.get(partition, 0) + 1
    lost = sum(1 for row in range(deliveries.rows) if deliveries.acked[row] and not seen[row])
    return ReadBack(len(rows_read), lost, duplicated, per_partition)
