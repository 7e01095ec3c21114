"""What readers of a log use: its offsets, and lookups. `UnifiedLog` is the whole."""

from collections.abc import Sequence

from barnabas_common.errors import OffsetOutOfRangeError
from barnabas_common.record.batch import BatchHeader, next_offset
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.index.transaction_index import AbortedTxn, aborted_between
from barnabas_broker.log.local_log import LocalLog
from barnabas_broker.log.producers.producer_state import NONE, Known, begins_at, check_retry
from barnabas_broker.log.producers.producer_state_manager import ProducerStateManager
from barnabas_broker.log.segment.timestamp_lookup import (
    TimestampedOffset,
    first_at_or_after,
    first_of_largest,
)
from barnabas_broker.log.storage_guard import StorageGuard
from barnabas_broker.log.validation import CheckedBatch


class ReadableLog:
    """The base of `UnifiedLog`, which sets and moves these."""

    topic_partition: TopicPartition
    log_start_offset: int
    high_watermark: int
    producers: ProducerStateManager
    _local: LocalLog
    _guard: StorageGuard

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed readers stop: at the high watermark, or below it at the first record
        of a transaction that is not decided."""
        unstable = self.producers.transactions.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    def read(
        self, offset: int, max_bytes: int, end_offset: int, min_one_batch: bool = True
    ) -> bytes:
        """Whole batches from the one that holds `offset`, all of them below `end_offset`.

        With `min_one_batch` the first one is returned even if it exceeds `max_bytes`. All batches
        are of one segment.

        Raises as `check_in_range`, CorruptMessageError if the disk returned malformed data, and
        KafkaStorageError if it failed.
        """
        self.check_in_range(offset)
        self._guard.check_usable()
        if offset >= end_offset or offset == self._local.log_end_offset:
            return b""
        with self._guard.io("read"):
            return self._local.read(offset, max_bytes, end_offset, min_one_batch)

    def is_gap(self, offset: int, end_offset: int) -> bool:
        """Whether there is no batch from `offset` up to `end_offset`, and one from there on.

        Compaction leaves such a gap. A pass goes up to the high watermark; that of a leader that
        has just started may be lower than the one that the pass knew.
        """
        with self._guard.io("read"):
            return end_offset <= self._local.next_batch(offset) < self._local.log_end_offset

    def data_end_below(self, offset: int) -> int:
        """Where the last batch ends that is entirely below `offset`, or the start of the log.

        Raises CorruptMessageError if the batches there are malformed, and KafkaStorageError.
        """
        with self._guard.io("read"):
            return self._local.data_end_below(offset)

    def aborted_transactions(self, offset: int, records: bytes) -> list[AbortedTxn]:
        """Those that may have batches in `records`, which were read from `offset` on."""
        segments = self._local.segments.from_offset(offset)
        indexes = [segment.txn_index for segment in segments if len(segment.txn_index)]
        if not (indexes and records):
            return []
        with self._guard.io("read"):
            return list(aborted_between(indexes, offset, next_offset(records) or offset))

    def _checked_retry(self, sent: Sequence[CheckedBatch], known: Known) -> Known:
        """The batches that seem to be stored, with their first offset if the log has the first one
        there. Raises as `check_retry`; see also `begins_at`."""
        last = self._stored_at(known.last_offset)
        if last is not None and last.last_offset == known.last_offset:
            check_retry(sent[known.batches - 1].header, last)
        if known.batches == 1 or begins_at(
            known.first_offset, sent[0].header, self._stored_at(known.first_offset)
        ):
            return known
        return known._replace(first_offset=NONE)

    def _stored_at(self, offset: int) -> BatchHeader | None:
        """The batch that holds this offset, or None if it is gone."""
        if offset < self._local.segments.first.base_offset:
            return None
        with self._guard.io("read"):
            found = self._local.segments.holding(offset).locate(offset)
        return None if found is None else found[1]

    def check_in_range(self, offset: int) -> None:
        """Raises OffsetOutOfRangeError unless log start <= offset <= log end."""
        start, end = self.log_start_offset, self._local.log_end_offset
        if not start <= offset <= end:
            raise OffsetOutOfRangeError(
                f"{self.topic_partition}: offset {offset} is not within {start}..{end}"
            )

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """The first record with this timestamp or a later one, or None."""
        self._guard.check_usable()
        with self._guard.io("read"):
            return first_at_or_after(self._local.segments, timestamp_ms, self.log_start_offset)

    def offset_of_max_timestamp(self) -> TimestampedOffset | None:
        """The first record with the largest timestamp, or None without timestamps."""
        self._guard.check_usable()
        with self._guard.io("read"):
            return first_of_largest(self._local.segments)
