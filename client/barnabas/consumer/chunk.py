"""What one fetch brought for one partition: batches, decoded one by one when asked for."""

from collections.abc import Iterator

from barnabas.consumer.positions import PartitionPosition
from barnabas.consumer.record import ConsumerRecord
from barnabas.errors import CorruptMessageError
from barnabas.record.batch import BatchHeader, CorruptBatch, batches
from barnabas.record.reader import Columns, read_batch_as, read_columns

_END = 2**63 - 1


class Chunk:
    """Batches of one partition. Taking records moves the partition's `position`.

    Stale once the partition was sought or taken away after the fetch.
    """

    def __init__(self, state: PartitionPosition, records: bytes, check_crcs: bool) -> None:
        self.state = state
        self.size = len(records)
        self.exhausted = False
        self._version = state.version
        self._buffer = records
        self._check_crcs = check_crcs
        self._batches: Iterator[tuple[int, BatchHeader]] = batches(records)
        self._decoded: list[ConsumerRecord] = []
        self._taken = 0
        self._next_offset = -1

    @property
    def stale(self) -> bool:
        return self.state.version != self._version

    def take(self, limit: int) -> list[ConsumerRecord]:
        """Up to `limit` records of one batch; none when the chunk is exhausted.

        Raises `CorruptMessageError` naming the offset where the damage begins.
        """
        while self._taken >= len(self._decoded):
            if not self._decode_next():
                self.exhausted = True
                return []
        if len(self._decoded) - self._taken > limit:
            records = self._decoded[self._taken : self._taken + limit]
            self._taken += limit
            self.state.position = records[-1].offset + 1
            return records
        records = self._decoded[self._taken :] if self._taken else self._decoded
        self._decoded = []  # the caller's now
        self._taken = 0
        self.state.position = self._next_offset
        return records

    def take_columns(self) -> Columns:
        """All that is left of the chunk, as columns."""
        try:
            columns = read_columns(self._buffer, self.state.position, _END, self._check_crcs)
            for _, header in self._batches:
                self._next_offset = header.next_offset
        except CorruptBatch as error:
            raise self._corrupt(error) from error
        self.state.position = max(self._next_offset, self.state.position)
        self.exhausted = True
        return columns

    def _decode_next(self) -> bool:
        """Decode the next batch that may have records to hand out; False at the end."""
        try:
            for position, header in self._batches:
                if header.next_offset <= self.state.position:
                    continue
                self._next_offset = header.next_offset
                if header.is_control:
                    self.state.position = header.next_offset
                    continue
                self._decode(position, header)
                return True
        except CorruptBatch as error:
            raise self._corrupt(error) from error
        return False

    def _decode(self, position: int, header: BatchHeader) -> None:
        where = self.state.topic_partition
        records = read_batch_as(ConsumerRecord, where, self._buffer, position, self._check_crcs)
        if header.base_offset < self.state.position:
            records = [record for record in records if record.offset >= self.state.position]
        self._decoded = records
        self._taken = 0
        if not records:
            self.state.position = header.next_offset

    def _corrupt(self, error: CorruptBatch) -> CorruptMessageError:
        return CorruptMessageError(
            f"{self.state.topic_partition} is damaged at offset {self.state.position}: {error}; "
            "seek past it to go on"
        )
