"""The batches that one fetch returned for one partition, decoded one by one on demand."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from barnabas_common.errors import CorruptMessageError
from barnabas_common.record.aborted import AbortedBatches
from barnabas_common.record.batch import BatchHeader, CorruptBatch, batches, in_order
from barnabas_common.record.reader import Columns, read_batch_as, read_columns

from barnabas.consumer.record import ConsumerRecord
from barnabas.consumer.subscription_state import TopicPartitionState

_END = 2**63 - 1


def advice(broker_id: int) -> str:
    """Where the damage is and what to do about it, as the end of a sentence.

    A leader that finds damage moves leadership to a replica in sync, so polling again may do.
    """
    return (
        f"in the replica of broker {broker_id}, others may have a valid copy:"
        " poll again, or seek past it to go on"
    )


def before_damage(records: bytes, start: int, end: int) -> tuple[bytes, BatchHeader | None, str]:
    """The whole batches from offset `start` up to the first out of order; the header of the last of
    them; and, if there is none, what is wrong.

    The next fetch begins at the damage, where the leader notices it. `end` is the leader's high
    watermark, -1 if it is unknown.
    """
    size, last, fault = 0, None, "no whole batch from the requested offset was returned"
    limit = end if end >= 0 else None
    try:
        for position, header in in_order(batches(records), start, limit, starts_inside=True):
            size, last = position + header.size, header
    except CorruptBatch as error:
        fault = str(error)
    return records[:size], last, fault


class CompletedFetch:
    """Batches of one partition. Taking records moves the partition's `position`, also past control
    batches and aborted transactions. `aborted` has the producer ids and first offsets of those.
    `start`: the offset that was fetched from.

    `leader_epoch` is that of the leader which answered.

    Stale once the partition was sought or unassigned after the fetch.
    """

    def __init__(
        self,
        state: TopicPartitionState,
        start: int,
        records: bytes,
        check_crcs: bool,
        broker_id: int,
        leader_epoch: int,
        aborted: Iterable[tuple[int, int]] = (),
    ) -> None:
        self.state = state
        self.start = start
        self._leader_epoch = leader_epoch
        self._broker_id = broker_id
        self.size = len(records)
        self.exhausted = False
        self._version = state.version
        self._buffer = records
        self._check_crcs = check_crcs
        self._began = tuple(aborted)
        self._aborted = AbortedBatches(self._began)
        self._batches: Iterator[tuple[int, BatchHeader]] = batches(records)
        self._decoded: list[ConsumerRecord] = []
        self._taken = 0
        self._next_offset = -1

    @property
    def stale(self) -> bool:
        return self.state.version != self._version

    def take(self, limit: int) -> list[ConsumerRecord]:
        """Up to `limit` records of one batch; none when the chunk is exhausted.

        Raises `CorruptMessageError` naming the offset where the damage starts.
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

    def take_columns(self, with_headers: bool = False) -> Columns:
        """The rest of the chunk, as columns, or what precedes damage in it.

        Raises `CorruptMessageError` where the rest begins with damage.
        """
        try:
            columns = self._columns(_END, with_headers)
        except CorruptBatch as error:
            damaged, epoch_before = self._damaged_from()
            if damaged <= self.state.position:
                raise self._corrupt(error) from error
            columns = self._columns(damaged, with_headers)
            self.state.position, self.state.position_epoch = damaged, epoch_before
            return columns
        for _, header in self._batches:
            self._next_offset = header.next_offset
            self.state.position_epoch = self._epoch_of(header)
        self.state.position = max(self._next_offset, self.state.position)
        self.exhausted = True
        return columns

    def _columns(self, end: int, with_headers: bool) -> Columns:
        wanted = self._buffer, self.state.position, end, self._check_crcs
        columns = None
        if not with_headers:
            # Imported here: numpy and pyarrow take long to import, and only columns need them.
            with suppress(ImportError):
                from barnabas.consumer.column_decoder import decode

                columns = decode(*wanted, AbortedBatches(self._began))
        if columns is None:
            columns = read_columns(*wanted, AbortedBatches(self._began), with_headers)
        return columns

    def _damaged_from(self) -> tuple[int, int]:
        """The first offset of the first batch from the position on that cannot be decoded, and the
        leader epoch of the batch before it."""
        aborted = AbortedBatches(self._began)
        epoch = self.state.position_epoch
        for position, header in batches(self._buffer):
            left_out = aborted.leaves_out(header, self._buffer, position)
            epoch_before, epoch = epoch, self._epoch_of(header)
            if header.last_offset < self.state.position or left_out:
                continue
            where = self.state.topic_partition
            try:
                read_batch_as(ConsumerRecord, where, self._buffer, position, self._check_crcs)
            except CorruptBatch:
                return header.base_offset, epoch_before
        return self.state.position, self.state.position_epoch

    def _decode_next(self) -> bool:
        """Decode the next batch that may have records to return; False at the end."""
        try:
            for position, header in self._batches:
                left_out = self._aborted.leaves_out(header, self._buffer, position)
                if header.next_offset <= self.state.position:
                    continue
                self._next_offset = header.next_offset
                if left_out:
                    self.state.position = header.next_offset
                    self.state.position_epoch = self._epoch_of(header)
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
        epoch = self._epoch_of(header)
        if epoch != header.partition_leader_epoch:
            records = [record._replace(leader_epoch=epoch) for record in records]
        self._decoded = records
        self._taken = 0
        self.state.position_epoch = epoch
        if not records:
            self.state.position = header.next_offset

    def _epoch_of(self, header: BatchHeader) -> int:
        """The leader epoch of a batch; if it cannot be, since no checksum covers it, the leader's.

        It is committed with the position, and no leader knows an epoch later than its own.
        """
        return min(header.partition_leader_epoch, self._leader_epoch)

    def _corrupt(self, error: CorruptBatch) -> CorruptMessageError:
        return CorruptMessageError(
            f"{self.state.topic_partition} is damaged at offset {self.state.position}"
            f" {advice(self._broker_id)}: {error}"
        )
