"""Appending: what a leader assigns and refuses, and what a follower appends unchanged."""

import errno
from dataclasses import replace

import pytest
from barnabas_broker.log.errors import UnexpectedAppendOffset
from barnabas_broker.log.log_context import LogHost
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.errors import (
    CorruptMessageError,
    InvalidRecordError,
    InvalidTimestampError,
    KafkaError,
    KafkaStorageError,
    MessageTooLargeError,
    RecordListTooLargeError,
    UnsupportedCompressionTypeError,
)
from barnabas_common.record.batch import (
    CONTROL,
    TRANSACTIONAL,
    BatchHeader,
    batches,
    check_crc,
    pack_header,
    parse_header,
    seal,
)
from barnabas_common.record.reader import read_batch
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_world import NOW, LogWorld, produced, read_all, values_in


def test_the_last_stable_offset_is_the_high_watermark() -> None:
    log = LogWorld().open()
    log.append_as_leader(produced(b"a", b"b"), 0, NOW)
    assert (log.last_stable_offset, log.log_end_offset) == (0, 2)
    log.maybe_increment_high_watermark(1)
    assert log.last_stable_offset == 1


def changed(records: bytes, **fields: int) -> bytes:
    """Return the batch with other header fields and a matching checksum."""
    header: BatchHeader = parse_header(records)
    batch = bytearray(pack_header(header._replace(**fields)) + records[61:])
    seal(batch)
    return bytes(batch)


def test_offsets_and_epoch_are_assigned_and_the_checksum_stays_the_producers() -> None:
    log = LogWorld().open()
    first, second = produced(b"a", b"b"), produced(b"c", timestamp=NOW + 5)
    assert log.append_as_leader(first, 7, NOW) == (0, 1, -1)
    assert log.append_as_leader(second, 7, NOW) == (2, 2, -1)
    data = read_all(log)
    found = list(batches(data))
    assert [(h.base_offset, h.last_offset, h.partition_leader_epoch) for _, h in found] == [
        (0, 1, 7),
        (2, 2, 7),
    ]
    assert data[16 : len(first)] == first[16:]
    for position, header in found:
        check_crc(data, position, header)
    assert values_in(data) == [b"a", b"b", b"c"]
    assert log.log_end_offset == 3 and log.size_bytes == len(data)
    assert log.leader_epochs.entries == [(7, 0)]


def test_several_batches_are_appended_all_or_none() -> None:
    log = LogWorld().open()
    appended = log.append_as_leader(produced(b"a", b"b") + produced(b"c"), 0, NOW)
    assert (appended.first_offset, appended.last_offset) == (0, 2)
    spoiled = bytearray(produced(b"d") + produced(b"e"))
    spoiled[-1] ^= 1
    with pytest.raises(CorruptMessageError):
        log.append_as_leader(spoiled, 0, NOW)
    assert log.log_end_offset == 3
    assert values_in(read_all(log)) == [b"a", b"b", b"c"]


BATCH = produced(b"some", b"records", step_ms=10)


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (b"", InvalidRecordError),
        (BATCH[:-1], CorruptMessageError),
        (BATCH + BATCH[:30], CorruptMessageError),
        (BATCH[:-1] + b"?", CorruptMessageError),
        (BATCH[:16] + b"\x01" + BATCH[17:], InvalidRecordError),
        (BATCH[:16] + b"\x03" + BATCH[17:], CorruptMessageError),
        (bytes(100), InvalidRecordError),
        (BATCH[:8] + b"\xff\xff\xff\xff" + BATCH[12:], CorruptMessageError),
        (changed(BATCH, base_offset=1), InvalidRecordError),
        (changed(BATCH, record_count=3), InvalidRecordError),
        (changed(BATCH, record_count=0, last_offset_delta=-1), InvalidRecordError),
        (changed(BATCH, attributes=CONTROL), InvalidRecordError),
        (changed(BATCH, attributes=TRANSACTIONAL), InvalidRecordError),
        (changed(BATCH, producer_id=1, producer_epoch=0, base_sequence=-1), InvalidRecordError),
        (changed(BATCH, attributes=6), UnsupportedCompressionTypeError),
        (changed(BATCH, attributes=8), InvalidTimestampError),
        (produced(b"x" * 2000), MessageTooLargeError),
        (BATCH * 60, RecordListTooLargeError),
    ],
)
def test_what_is_refused_leaves_no_trace(records: bytes, error: type[KafkaError]) -> None:
    log = LogWorld().open(max_message_bytes=1000, segment_bytes=4000)
    with pytest.raises(error):
        log.append_as_leader(records, 0, NOW)
    assert log.log_end_offset == 0 and log.size_bytes == 0
    assert log.append_as_leader(BATCH, 0, NOW).last_offset == 1


@pytest.mark.parametrize(
    ("timestamp", "allowed"),
    [(NOW - 1000, True), (NOW - 1001, False), (NOW + 490, True), (NOW + 491, False)],
)
def test_create_time_must_be_near_the_brokers_own(timestamp: int, allowed: bool) -> None:
    log = LogWorld().open(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=500)
    records = produced(b"a", b"b", timestamp=timestamp, step_ms=10)
    if allowed:
        log.append_as_leader(records, 0, NOW)
    else:
        with pytest.raises(InvalidTimestampError):
            log.append_as_leader(records, 0, NOW)


def test_log_append_time_stamps_the_brokers_clock() -> None:
    log = LogWorld().open(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1)
    records = produced(b"a", b"b", timestamp=5)
    appended = log.append_as_leader(records, 0, NOW)
    assert appended.log_append_time_ms == NOW
    assert [(r.timestamp, r.timestamp_type) for r in read_batch(read_all(log))] == [(NOW, 1)] * 2
    assert parse_header(records).timestamp_type == 0


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_a_topic_with_a_codec_of_its_own_stores_in_that(codec: str) -> None:
    log = LogWorld().open(compression_type=codec)
    for producers in ("none", "gzip", "zstd"):
        log.append_as_leader(produced(b"a" * 100, b"b", compression=producers), 0, NOW)
    data = read_all(log)
    assert values_in(data) == [b"a" * 100, b"b"] * 3
    expected = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}.get(codec, 0)
    assert {header.compression for _, header in batches(data)} == {expected}


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_the_producers_codec_is_kept_otherwise(codec: str) -> None:
    log = LogWorld().open()
    records = produced(b"a" * 100, compression=codec)
    log.append_as_leader(records, 0, NOW)
    assert read_all(log)[16:] == records[16:]


def test_what_grows_over_the_limit_when_unpacked_is_refused() -> None:
    log = LogWorld().open(compression_type="uncompressed", max_message_bytes=500)
    with pytest.raises(MessageTooLargeError):
        log.append_as_leader(produced(b"a" * 1000, compression="gzip"), 0, NOW)


# ---- as follower


def leaders_log() -> UnifiedLog:
    log = LogWorld().open()
    for epoch, value in ((0, b"a"), (0, b"b"), (2, b"c")):
        log.append_as_leader(produced(value), epoch, NOW)
    return log


def test_a_follower_takes_batches_as_they_are() -> None:
    leader, follower = leaders_log(), LogWorld().open()
    data = read_all(leader)
    follower.append_as_follower(data + b"\0" * 40)
    assert follower.log_end_offset == 3
    assert read_all(follower) == data
    assert follower.leader_epochs.entries == [(0, 0), (2, 2)]


def test_nothing_to_append_is_no_error() -> None:
    log = leaders_log()
    log.append_as_follower(b"")
    assert log.log_end_offset == 3


def test_a_follower_refuses_what_it_has() -> None:
    leader = leaders_log()
    follower = LogWorld().open()
    follower.append_as_follower(read_all(leader))
    with pytest.raises(UnexpectedAppendOffset, match="offset to append is 0, the log ends at"):
        follower.append_as_follower(read_all(leader))


def test_a_follower_refuses_what_is_corrupt_or_out_of_order() -> None:
    data = read_all(leaders_log())
    size = len(data) // 3
    follower = LogWorld().open()
    for wrong in (data[:-1] + b"?", data[size : 2 * size] + data[:size]):
        with pytest.raises(CorruptMessageError):
            follower.append_as_follower(wrong)
    assert follower.log_end_offset == 0


@pytest.mark.parametrize("epochs", [(1, 3, 2), (1, 2, 4), (1, 2, -2)])
def test_a_follower_refuses_epochs_that_cannot_be_the_leaders(epochs: tuple[int, ...]) -> None:
    data, follower = bytearray(read_all(leaders_log())), LogWorld().open()
    for (position, _), epoch in zip(batches(bytes(data)), epochs, strict=True):
        data[position + 12 : position + 16] = epoch.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptMessageError, match=f"has leader epoch {epochs[2]}"):
        follower.append_as_follower(bytes(data), leader_epoch=3)
    assert follower.log_end_offset == 0
    follower.append_as_follower(bytes(data))  # without a comparison of epochs


def test_a_follower_rolls_in_the_middle_of_what_it_got() -> None:
    leader = LogWorld().open()
    for number in range(20):
        leader.append_as_leader(produced(b"%100d" % number), 0, NOW)
    size = leader.size_bytes // 20
    follower = LogWorld().open(segment_bytes=3 * size)
    follower.append_as_follower(read_all(leader))
    assert follower.segment_offsets == list(range(0, 20, 3))
    assert read_all(follower) == read_all(leader)


# ---- when the disk fails


class FailureNotes(LogHost):
    def __init__(self) -> None:
        self.failures: list[int | None] = []

    def log_failed(self, log: UnifiedLog, error: OSError) -> None:
        self.failures.append(error.errno)


@pytest.mark.parametrize(
    ("fault", "code"),
    [("free_bytes", errno.ENOSPC), ("broken", errno.EIO), ("read_only", errno.EROFS)],
)
def test_a_failing_disk_fails_the_log_and_tells_its_host(fault: str, code: int) -> None:
    disk, host = MemoryDisk(), FailureNotes()
    log = LogWorld(disk=disk, host=host).open()
    log.append_as_leader(BATCH, 0, NOW)
    setattr(disk, fault, 10 if fault == "free_bytes" else True)
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(BATCH, 0, NOW)
    assert host.failures == [code]
    assert (log.log_end_offset, log.size_bytes) == (2, len(BATCH))
    setattr(disk, fault, None if fault == "free_bytes" else False)
    for use in (lambda: log.append_as_leader(BATCH, 0, NOW), lambda: log.read(0, 10, 2)):
        with pytest.raises(KafkaStorageError):
            use()


def test_flush_messages_bounds_what_a_power_cut_takes() -> None:
    disk = MemoryDisk()
    world = LogWorld(disk=disk)
    log = world.open(flush_messages=2)
    log.append_as_leader(produced(b"a"), 0, NOW)
    assert log.recovery_point == 0
    log.append_as_leader(produced(b"b"), 1, NOW)
    assert log.recovery_point == 2
    disk.crash(keep_unflushed=False)
    log = world.open()
    assert values_in(read_all(log)) == [b"a", b"b"]
    assert log.leader_epochs.entries == [(0, 0), (1, 1)]


def test_settings_can_be_replaced_while_in_use() -> None:
    log = LogWorld().open()
    log.config = replace(log.config, max_message_bytes=10)
    with pytest.raises(MessageTooLargeError):
        log.append_as_leader(BATCH, 0, NOW)
