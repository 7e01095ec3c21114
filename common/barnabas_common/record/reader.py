"""Reads records out of batches, with the compiled codec.

There are two forms: `Record` objects for the consumer's `poll`, and columns for Arrow and Spark.
Both are made from the bytes of a fetch response, which are batches back to back. The first batch
may start below the requested offset, and the last may be cut short.

Decoding creates thousands of containers that are part of no cycle. The cyclic garbage collector
would spend most of the time on them, so it is paused while records are decoded, which never waits.
"""

import gc
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeVar

from barnabas_common.record.batch import (
    BatchHeader,
    Buffer,
    CorruptBatch,
    batches,
    check_crc,
    parse_header,
)
from barnabas_common.record.batch import next_offset as next_offset
from barnabas_common.record.compiled import MALFORMED, DefaultRecordBatch, guarded
from barnabas_common.record.recompress import uncompressed
from barnabas_common.record.record import Record as Record

_offset = attrgetter("offset")
_timestamp = attrgetter("timestamp")
_key = attrgetter("key")
_value = attrgetter("value")
_headers = attrgetter("headers")

_new_tuple: Any = tuple.__new__

R = TypeVar("R", bound=tuple[Any, ...])


class Columns(NamedTuple):
    """Records as lists of the same length; the fields mean what they mean in `Record`.

    Or as arrays: of numpy for the numbers, of Arrow for keys and values. `headers` is None unless
    they were asked for: most readers do not need them.
    """

    offsets: Any
    timestamps: Any
    timestamp_types: Any
    keys: Any
    values: Any
    headers: list[list[tuple[str, bytes | None]]] | None = None


def read_batch(buffer: Buffer, position: int = 0, check_crcs: bool = True) -> list[Record]:
    """All records of the batch at `position`; of a control batch, its marker.

    Raises:
        CorruptBatch: the batch is cut short, its CRC is wrong, or its records are malformed.
    """
    return _records(buffer, position, parse_header(buffer, position), check_crcs)


def read_batch_as(
    record_type: type[R],
    before: Sequence[object],
    buffer: Buffer,
    position: int = 0,
    check_crcs: bool = True,
) -> list[R]:
    """All records of the batch at `position`, as another named tuple than `Record`.

    The first fields of `record_type` get the values `before`; the others are those of `Record`.

    Raises:
        CorruptBatch: as in `read_batch`.
    """
    header = parse_header(buffer, position)
    with _CollectorPaused():
        decoded = _decode(buffer, position, header, check_crcs)
        return _named(record_type, before, decoded, header)


def records_from(buffer: Buffer, from_offset: int, check_crcs: bool = True) -> Iterator[Record]:
    """The user records at `from_offset` and above, batch after batch.

    A consumer continues at `next_offset(buffer)`, which also skips control batches.

    Raises:
        CorruptBatch: as in `read_batch`, when the iteration reaches the batch; the records before
            it were valid.
    """
    return chain.from_iterable(_record_lists(buffer, from_offset, check_crcs))


class Filter(Protocol):
    """Says of each batch, in order, whether its records are not for the reader."""

    def leaves_out(self, header: BatchHeader, buffer: Buffer, position: int) -> bool: ...


class _ControlBatches:
    def leaves_out(self, header: BatchHeader, _buffer: Buffer, _position: int) -> bool:
        return header.is_control


def read_columns(
    buffer: Buffer,
    from_offset: int,
    end_offset: int,
    check_crcs: bool = True,
    batch_filter: Filter = _ControlBatches(),  # noqa: B008
    with_headers: bool = False,
) -> Columns:
    """The user records from `from_offset` to below `end_offset`, as columns.

    Raises:
        CorruptBatch: as in `read_batch`.
    """
    columns = Columns([], [], [], [], [], [] if with_headers else None)
    with _CollectorPaused():
        for position, header in batches_between(buffer, from_offset, end_offset, batch_filter):
            records = _decode(buffer, position, header, check_crcs)
            _extend(columns, _between(records, header, from_offset, end_offset), header)
    return columns


def batches_between(
    buffer: Buffer, from_offset: int, end_offset: int, batch_filter: Filter
) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every batch with records for the reader between these offsets.

    Raises:
        CorruptBatch: as `batches`.
    """
    for position, header in batches(buffer):
        if header.base_offset >= end_offset:
            return
        left_out = batch_filter.leaves_out(header, buffer, position)
        if header.last_offset >= from_offset and not left_out:
            yield position, header


def _record_lists(buffer: Buffer, from_offset: int, check_crcs: bool) -> Iterator[list[Record]]:
    for position, header in batches(buffer):
        if header.last_offset < from_offset or header.is_control:
            continue
        records = _records(buffer, position, header, check_crcs)
        if header.base_offset < from_offset:
            records = records[bisect_left(records, from_offset, key=_offset) :]
        yield records


def _records(buffer: Buffer, position: int, header: BatchHeader, check_crcs: bool) -> list[Record]:
    with _CollectorPaused():
        return _named(Record, (), _decode(buffer, position, header, check_crcs), header)


def _named(
    record_type: type[R], before: Sequence[object], decoded: list[Any], header: BatchHeader
) -> list[R]:
    """Records from decoded ones. `map` and `zip` loop over them, so no bytecode runs for each."""
    fields = zip(
        *map(repeat, before),
        map(_offset, decoded),
        _timestamps(decoded),
        repeat(header.timestamp_type),
        map(_key, decoded),
        map(_value, decoded),
        map(_headers, decoded),
        repeat(header.partition_leader_epoch),
    )
    return list(map(_new_tuple, repeat(record_type), fields))


def _extend(columns: Columns, decoded: list[Any], header: BatchHeader) -> None:
    columns.offsets.extend(map(_offset, decoded))
    columns.timestamps.extend(_timestamps(decoded))
    columns.timestamp_types.extend(repeat(header.timestamp_type, len(decoded)))
    columns.keys.extend(map(_key, decoded))
    columns.values.extend(map(_value, decoded))
    if columns.headers is not None:
        columns.headers.extend(map(_headers, decoded))


def _between(decoded: list[Any], header: BatchHeader, start: int, end: int) -> list[Any]:
    """The records with offsets from `start` to below `end`, found by bisection."""
    if start <= header.base_offset and header.last_offset < end:
        return decoded
    return decoded[
        bisect_left(decoded, start, key=_offset) : bisect_left(decoded, end, key=_offset)
    ]


def _timestamps(decoded: list[Any]) -> list[int]:
    """The timestamps in ms. For a record without one, -1, the compiled decoder returns None."""
    timestamps = list(map(_timestamp, decoded))
    if None in timestamps:
        return [-1 if timestamp is None else timestamp for timestamp in timestamps]
    return timestamps


def _decode(buffer: Buffer, position: int, header: BatchHeader, check_crcs: bool) -> list[Any]:
    if check_crcs:
        check_crc(buffer, position, header)
    batch = uncompressed(buffer, position, header)
    try:
        return list(DefaultRecordBatch(guarded(batch)))
    except MALFORMED as error:
        raise CorruptBatch(
            f"batch at byte {position}, offset {header.base_offset}: malformed records: {error}"
        ) from error


class _CollectorPaused:
    """Pauses the cyclic garbage collector, unless the program has disabled it itself."""

    __slots__ = ("_was_enabled",)

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *exception: object) -> None:
        if self._was_enabled:
            gc.enable()
