"""Building and reading as producer and consumer do it: limits, positions, skipped batches."""

import gc
from typing import Any

import pytest
from barnabas_common.errors import InvalidArgumentError
from barnabas_common.record import builder as builder_module
from barnabas_common.record.batch import (
    HEADER_SIZE,
    CorruptBatch,
    next_offset,
    pack_header,
    parse_header,
    seal,
)
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.compression import Compression
from barnabas_common.record.reader import Columns, read_batch, read_columns, records_from

from tests.support import plain_codec as plain

NOW = 1_700_000_000_000
CONTROL = 0b11_0000
FOREVER = 2**63 - 1


def batch_at(base_offset: int, count: int, attributes: int = 0, codec: str = "none") -> bytes:
    """Return a batch with records from `base_offset` on; their value is their offset."""
    rows = [(NOW + n, b"k", b"%d" % (base_offset + n), []) for n in range(count)]
    batch = plain.build(rows, codec)
    header = parse_header(batch)
    changed = header._replace(
        base_offset=base_offset, partition_leader_epoch=3, attributes=header.attributes | attributes
    )
    sealed = bytearray(pack_header(changed) + batch[HEADER_SIZE:])
    seal(sealed)
    return bytes(sealed)


def compacted(base_offset: int, kept: list[int], last_offset_delta: int) -> bytes:
    """Return a batch of which only the records at the deltas `kept` are left."""
    body = bytearray()
    for delta in kept:
        value = b"%d" % (base_offset + delta)
        plain._write_record(body, 0, delta, None, value, [])
    header = parse_header(plain.build([(NOW, None, None, [])]))._replace(
        base_offset=base_offset,
        batch_length=49 + len(body),
        last_offset_delta=last_offset_delta,
        record_count=len(kept),
    )
    batch = bytearray(pack_header(header)) + body
    seal(batch)
    return bytes(batch)


BUFFER = (
    batch_at(10, 5)
    + batch_at(15, 1, CONTROL)
    + compacted(16, [1, 3], last_offset_delta=5)
    + compacted(22, [], last_offset_delta=1)
    + batch_at(24, 4, codec="zstd")
    + batch_at(28, 1, CONTROL)
)
OFFSETS = [10, 11, 12, 13, 14, 17, 19, 24, 25, 26, 27]


@pytest.mark.parametrize("start", range(8, 31))
def test_records_start_at_the_offset_asked_for(start: int) -> None:
    records = list(records_from(BUFFER, start))
    assert [record.offset for record in records] == [o for o in OFFSETS if o >= start]
    assert all(record.value == b"%d" % record.offset for record in records)


def test_the_position_passes_control_batches_and_gaps() -> None:
    assert next_offset(BUFFER) == 29
    assert list(records_from(batch_at(28, 1, CONTROL), 28)) == []


@pytest.mark.parametrize("start", [0, 10, 12, 15, 18, 23, 26, 29])
@pytest.mark.parametrize("end", [0, 10, 11, 14, 18, 20, 25, 28, FOREVER])
def test_columns_hold_the_range_and_nothing_else(start: int, end: int) -> None:
    columns = read_columns(BUFFER, start, end)
    records = [record for record in records_from(BUFFER, start) if record.offset < end]
    assert columns == Columns(
        [record.offset for record in records],
        [record.timestamp for record in records],
        [record.timestamp_type for record in records],
        [record.key for record in records],
        [record.value for record in records],
    )


def test_records_carry_the_leader_epoch_of_their_batch() -> None:
    assert {record.leader_epoch for record in records_from(batch_at(5, 3), 0)} == {3}


def test_log_append_time_holds_for_every_record() -> None:
    batch = batch_at(5, 3, attributes=8)
    assert [(r.timestamp, r.timestamp_type) for r in read_batch(batch)] == [(NOW + 2, 1)] * 3
    assert read_columns(batch, 0, FOREVER)[1:3] == ([NOW + 2] * 3, [1] * 3)


def test_a_marker_can_be_read_when_it_is_asked_for() -> None:
    assert [record.offset for record in read_batch(batch_at(15, 1, CONTROL))] == [15]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_read(kind: Any) -> None:
    assert [record.offset for record in records_from(kind(BUFFER), 0)] == OFFSETS


def test_a_trailing_part_of_a_batch_waits_for_the_next_fetch() -> None:
    cut = BUFFER + batch_at(29, 3)[:-1]
    assert [record.offset for record in records_from(cut, 0)] == OFFSETS
    assert next_offset(cut) == 29


def test_records_before_a_corrupt_batch_are_still_delivered() -> None:
    bad = bytearray(batch_at(15, 2))
    bad[-1] ^= 1
    records = records_from(batch_at(10, 5) + bytes(bad), 0)
    assert [next(records).offset for _ in range(5)] == [10, 11, 12, 13, 14]
    with pytest.raises(CorruptBatch, match="offset 15: CRC"):
        next(records)
    with pytest.raises(CorruptBatch, match="offset 15: CRC"):
        read_columns(bytes(bad), 0, FOREVER)


def test_without_crc_checks_a_flipped_bit_goes_unseen() -> None:
    bad = bytearray(plain.build([(NOW, b"k", b"v", [])]))
    bad[-2] ^= 1
    assert [record.value for record in records_from(bad, 0, check_crcs=False)] == [b"w"]


def test_a_batch_cut_short_is_corrupt_where_it_is_asked_for_by_position() -> None:
    for check_crcs in (True, False):
        with pytest.raises(CorruptBatch, match="cut short"):
            read_batch(BUFFER[:-1], BUFFER.rindex(batch_at(28, 1, CONTROL)), check_crcs)


def test_an_unassigned_codec_is_corrupt() -> None:
    with pytest.raises(CorruptBatch, match="compression 6 is not known"):
        read_batch(batch_at(0, 1, attributes=6))


def test_reading_leaves_the_garbage_collector_as_it_was() -> None:
    assert gc.isenabled()
    with pytest.raises(CorruptBatch):
        read_batch(batch_at(0, 1, attributes=6))
    assert gc.isenabled()
    gc.disable()
    try:
        read_batch(BUFFER)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_full_builder_refuses_the_record_and_stays_good() -> None:
    builder = BatchBuilder(max_size=200)
    appended = 0
    while builder.append(NOW, None, b"x" * 20):
        appended += 1
        assert builder.size <= 200
    assert builder.count == appended > 3
    assert len(read_batch(builder.build())) == appended


def test_a_record_that_fits_to_the_byte_is_taken() -> None:
    probe = BatchBuilder()
    probe.append(NOW, None, b"a")
    size = probe.append(NOW, None, b"b")
    for max_size, expected in ((size, size), (size - 1, 0)):
        builder = BatchBuilder(max_size=max_size)
        builder.append(NOW, None, b"a")
        assert builder.append(NOW, None, b"b") == expected


def test_the_first_record_always_has_room() -> None:
    builder = BatchBuilder(max_size=100)
    assert builder.append(NOW, None, b"x" * 1000) > 1000
    assert len(read_batch(builder.build())) == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-1, b"k", b"v"), InvalidArgumentError),
        ((NOW, "k", b"v"), TypeError),
        ((NOW, b"k", 5), TypeError),
        ((None, b"k", b"v"), TypeError),
        ((2**63, b"k", b"v"), OverflowError),
        ((NOW, b"k", b"v", [("h",)]), ValueError),
        ((NOW, b"k", b"v", [(b"h", b"x")]), TypeError),
        ((NOW, b"k", b"v", [("h", "x")]), TypeError),
        ((NOW, b"k", b"v", [("\ud800", b"x")]), UnicodeEncodeError),
    ],
)
def test_a_refused_record_leaves_no_trace(arguments: Any, error: type[Exception]) -> None:
    builder = BatchBuilder()
    builder.append(NOW, b"k", b"good")
    with pytest.raises(error):
        builder.append(*arguments)
    builder.append(NOW, b"k", b"also good")
    assert [record.value for record in read_batch(builder.build())] == [b"good", b"also good"]


def test_headers_may_come_as_any_iterable() -> None:
    builder = BatchBuilder()
    builder.append(NOW, None, b"v", (("a", b"1"), ("b", None)))
    assert read_batch(builder.build())[0].headers == [("a", b"1"), ("b", None)]


def test_an_empty_batch_is_never_built() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one record"):
        BatchBuilder().build()
    with pytest.raises(InvalidArgumentError):
        plain.build([])


def test_an_unknown_codec_is_refused_before_any_record() -> None:
    with pytest.raises(InvalidArgumentError, match="unknown compression 'lzma'"):
        BatchBuilder("lzma")


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_batch_no_reader_would_take_is_not_built(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builder_module, "MAX_BATCH_SIZE", 1000)
    monkeypatch.setattr(builder_module, "MAX_DECOMPRESSED_SIZE", 1000 - HEADER_SIZE)
    builder = BatchBuilder(codec)
    builder.append(NOW, None, b"x" * 1000)
    with pytest.raises(InvalidArgumentError, match="over the limit of 1000"):
        builder.build()


def test_compression_is_in_the_header_and_the_count_stays_readable() -> None:
    for codec in Compression:
        builder = BatchBuilder(codec.name.lower())
        for _ in range(100):
            builder.append(NOW, None, b"the same value again")
        header = parse_header(builder.build())
        assert (header.compression, header.record_count) == (codec, 100)
        assert header.has_consecutive_offsets
