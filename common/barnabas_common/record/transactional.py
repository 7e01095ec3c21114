"""Batches that only brokers write for transactions: markers, and records without a sequence.

A marker is the end of a transaction in one partition: a control batch of one record.

    key    version int16 (0), type int16: 0 abort, 1 commit
    value  version int16 (0), coordinatorEpoch int32
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from barnabas_common.record.batch import CONTROL, Buffer, CorruptBatch, seal
from barnabas_common.record.compiled import DefaultRecordBatchBuilder
from barnabas_common.record.compression import Compression
from barnabas_common.record.reader import read_batch

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0
_ABORT, _COMMIT = 0, 1
_ATTRIBUTES_LOW_BYTE = 22
_NO_SEQUENCE = -1
_NO_EPOCH = -1
_MAX_SIZE = 2**31 - 1


class EndTransactionMarker(NamedTuple):
    """What a marker says; `coordinator_epoch` is -1 if it does not."""

    commit: bool
    coordinator_epoch: int


def transactional_batch(
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    records: Iterable[tuple[bytes | None, bytes | None]],
) -> bytearray:
    """Keys and values as one batch of an open transaction, not compressed."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=Compression.NONE,
        is_transactional=1,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=_NO_SEQUENCE,
        batch_size=_MAX_SIZE,
    )
    for number, (key, value) in enumerate(records):
        builder.append(number, timestamp_ms, key, value, [])
    return bytearray(builder.build())


def marker_batch(
    producer_id: int, producer_epoch: int, commit: bool, coordinator_epoch: int, timestamp_ms: int
) -> bytes:
    """The marker that commits or aborts the producer's open transaction."""
    key = _KEY.pack(_VERSION, _COMMIT if commit else _ABORT)
    value = _VALUE.pack(_VERSION, coordinator_epoch)
    batch = transactional_batch(producer_id, producer_epoch, timestamp_ms, [(key, value)])
    batch[_ATTRIBUTES_LOW_BYTE] |= CONTROL
    seal(batch)
    return bytes(batch)


def commits(marker_key: bytes | None) -> bool | None:
    """Whether a control record with this key commits or aborts; None if it is no such marker."""
    if marker_key is None or len(marker_key) < _KEY.size:
        return None
    _, kind = _KEY.unpack_from(marker_key)
    return {_COMMIT: True, _ABORT: False}.get(kind)


def marker_in(batch: Buffer) -> EndTransactionMarker | None:
    """The marker in a control batch; None if it was compacted away, or is no such marker."""
    try:
        records = read_batch(batch, check_crcs=False)
    except CorruptBatch:
        return None
    return marker_of(records[0].key, records[0].value) if records else None


def marker_of(key: bytes | None, value: bytes | None) -> EndTransactionMarker | None:
    """The marker in a control record; None if it is of another type."""
    commit = commits(key)
    if commit is None:
        return None
    value = value or b""
    epoch = _VALUE.unpack_from(value)[1] if len(value) >= _VALUE.size else _NO_EPOCH
    return EndTransactionMarker(commit, epoch)
