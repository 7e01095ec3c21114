"""The checks before an append.

A leader checks every record of a producer's batches. A follower checks headers and checksums only,
because its leader has checked the records.

Pure functions; errors are Kafka's (`LogValidator`, `UnifiedLog.analyzeAndValidateRecords`).
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas_common.errors import (
    CorruptMessageError,
    InvalidRecordError,
    InvalidTimestampError,
    MessageTooLargeError,
    RecordListTooLargeError,
    UnsupportedCompressionTypeError,
)
from barnabas_common.record.batch import (
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    CorruptBatch,
    batches,
    check_crc,
    parse_header,
    stamp_log_append_time,
)
from barnabas_common.record.compression import Compression
from barnabas_common.record.recompress import recompress

from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_broker.log.epochs.batch_epochs import check_epochs
from barnabas_broker.log.errors import UnexpectedAppendOffset
from barnabas_broker.log.record_validation import MAX_UNPACKED_SIZE, Unpacking, validate_records

_MAGIC_POSITION = 16
_KEEP_CODEC = "producer"
_UNCOMPRESSED = "uncompressed"


class CheckedBatch(NamedTuple):
    """A batch that may be appended: its header, and all its bytes including the header."""

    header: BatchHeader
    data: memoryview


def verified(records: Buffer, origin: AppendOrigin = AppendOrigin.CLIENT) -> list[CheckedBatch]:
    """The batches of a producer, whose headers and checksums are right; there is at least one.

    Raises:
        KafkaError: CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP or
            UNSUPPORTED_COMPRESSION_TYPE.
    """
    view = memoryview(records)
    found = []
    for position, header in _verified_batches(view):
        _check_header(header, origin)
        found.append(CheckedBatch(header, view[position : position + header.size]))
    if not found:
        raise InvalidRecordError("a produce request must carry at least one batch")
    return found


def check_produced(
    batches: Iterable[CheckedBatch],
    config: LogConfig,
    now_ms: int,
    unpacking: Unpacking | None = None,
) -> list[CheckedBatch]:
    """Check verified batches and fit them to the topic; either all may be appended or none.

    Not for batches that were appended earlier: the topic's settings may have changed since.

    Raises:
        KafkaError: CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP, MESSAGE_TOO_LARGE,
            RECORD_LIST_TOO_LARGE or THROTTLING_QUOTA_EXCEEDED.
    """
    checked = []
    for header, data in batches:
        if header.size > config.max_message_bytes:
            raise _too_large(header.size, config)
        earliest = _check_records(header, data, config, unpacking)
        _check_timestamps(header, earliest, config, now_ms)
        checked.append(_fit_to_topic(header, data, config, now_ms))
    total = sum(len(batch.data) for batch in checked)
    if total > config.segment_bytes:
        raise RecordListTooLargeError(
            f"{total} bytes in one append exceed segment.bytes={config.segment_bytes}"
        )
    return checked


def check_replicated(
    records: Buffer, log_end_offset: int, leader_epoch: int | None = None
) -> list[CheckedBatch]:
    """Check a leader's batches, which are appended unchanged; an incomplete last one is left out.

    Raises:
        CorruptMessageError: a bad checksum or length, offsets that do not rise, or no whole batch.
            With `leader_epoch`, the leader's own, also epochs that go down or above it: a log with
            a wrong one could not be compared with its leader's.
        UnexpectedAppendOffset: the first offset is below the end of the log.
    """
    view = memoryview(records)
    checked: list[CheckedBatch] = []
    expected = log_end_offset
    try:
        for position, header in batches(view):
            check_crc(view, position, header)
            if header.base_offset < expected or header.last_offset_delta < 0:
                break
            checked.append(CheckedBatch(header, view[position : position + header.size]))
            expected = header.next_offset
        else:
            if leader_epoch is not None:
                check_epochs((batch.header for batch in checked), leader_epoch)
            if len(view) and not checked:  # else the same fetch would be repeated forever
                raise CorruptBatch(f"{len(view)} bytes that are not one whole batch")
            return checked
    except CorruptBatch as error:
        raise CorruptMessageError(str(error)) from error
    if header.last_offset_delta < 0 or checked:
        raise CorruptMessageError(
            f"batch with offsets {header.base_offset} to {header.last_offset} where"
            f" {expected} or more was expected"
        )
    raise UnexpectedAppendOffset(
        f"the first offset to append is {header.base_offset}, the log ends at {log_end_offset}"
    )


def by_segment(
    batches: Iterable[CheckedBatch], room: int, segment_bytes: int
) -> Iterable[list[CheckedBatch]]:
    """Group a leader's batches into appends, one per segment.

    `room` is the number of bytes left in the active segment. A batch is never divided: one that is
    larger than a segment gets a segment of its own.
    """
    group: list[CheckedBatch] = []
    for batch in batches:
        if group and batch.header.size > room:
            yield group
            group, room = [], segment_bytes
        group.append(batch)
        room -= batch.header.size
    if group:
        yield group


def _verified_batches(view: memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Every batch with a valid checksum; unlike in a fetch, an incomplete batch is an error."""
    position = 0
    while position < len(view):
        if len(view) - position >= HEADER_SIZE and view[position + _MAGIC_POSITION] in (0, 1):
            raise InvalidRecordError(
                f"message format v{view[position + _MAGIC_POSITION]} is not supported, only v2"
            )
        try:
            header = parse_header(view, position)
            check_crc(view, position, header)
        except CorruptBatch as error:
            raise CorruptMessageError(str(error)) from error
        yield position, header
        position += header.size


def _check_header(header: BatchHeader, origin: AppendOrigin) -> None:
    if header.base_offset != 0:
        raise InvalidRecordError(f"a producer's batch has base offset {header.base_offset}, not 0")
    if not header.has_consecutive_offsets:
        raise InvalidRecordError(
            f"{header.record_count} records and last offset delta {header.last_offset_delta}"
        )
    if header.is_control and origin is AppendOrigin.CLIENT:
        raise InvalidRecordError("only brokers write control batches")
    if header.is_transactional and header.producer_id < 0:
        raise InvalidRecordError("a transactional batch has no producer id")
    if header.compression not in Compression.__members__.values():
        raise UnsupportedCompressionTypeError(f"codec {header.compression} is unknown")
    if header.timestamp_type == 1:
        raise InvalidTimestampError("only a broker may mark a batch as LogAppendTime")


def _check_records(
    header: BatchHeader, data: memoryview, config: LogConfig, unpacking: Unpacking | None
) -> int:
    """Check the records of a batch; return the earliest timestamp in ms, -1 without one."""
    compacted = "compact" in config.cleanup_policy
    unpacked = max(MAX_UNPACKED_SIZE, config.max_message_bytes)
    exact = config.record_validation == "exact"
    return validate_records(header, data, compacted, exact, unpacked, unpacking)


def _check_timestamps(header: BatchHeader, earliest: int, config: LogConfig, now_ms: int) -> None:
    if config.message_timestamp_type == "LogAppendTime" or header.max_timestamp < 0:
        return
    if header.max_timestamp - now_ms > config.message_timestamp_after_max_ms:
        raise InvalidTimestampError(
            f"timestamp {header.max_timestamp} is more than message.timestamp.after.max.ms="
            f"{config.message_timestamp_after_max_ms} ahead of this broker's {now_ms}"
        )
    if now_ms - earliest > config.message_timestamp_before_max_ms:
        raise InvalidTimestampError(
            f"timestamp {earliest} is more than message.timestamp.before.max.ms="
            f"{config.message_timestamp_before_max_ms} behind this broker's {now_ms}"
        )


def _fit_to_topic(
    header: BatchHeader, data: memoryview, config: LogConfig, now_ms: int
) -> CheckedBatch:
    """The batch in the topic's codec and with the topic's timestamp type; a control batch keeps its
    codec."""
    codec = header.compression if header.is_control else _stored_codec(header, config)
    append_time = config.message_timestamp_type == "LogAppendTime"
    keep_codec = codec == header.compression
    if keep_codec and not append_time:
        return CheckedBatch(header, data)
    changed = bytearray(data) if keep_codec else _recompressed(data, codec, config)
    if append_time:
        stamp_log_append_time(changed, now_ms)
    return CheckedBatch(parse_header(changed), memoryview(changed))


def _stored_codec(header: BatchHeader, config: LogConfig) -> int:
    if config.compression_type == _KEEP_CODEC:
        return header.compression
    if config.compression_type == _UNCOMPRESSED:
        return Compression.NONE
    return Compression.of(config.compression_type)


def _recompressed(data: memoryview, codec: int, config: LogConfig) -> bytearray:
    try:
        changed = recompress(data, codec)
    except CorruptBatch as error:
        raise CorruptMessageError(str(error)) from error
    if len(changed) > config.max_message_bytes:
        raise _too_large(len(changed), config)
    return changed


def _too_large(size: int, config: LogConfig) -> MessageTooLargeError:
    return MessageTooLargeError(
        f"a batch of {size} bytes exceeds max.message.bytes={config.max_message_bytes}"
    )
