"""The batch header: its bytes, the fields that a leader stamps, and every kind of corruption."""

import struct

import pytest
from barnabas_common.errors import BarnabasError
from barnabas_common.record.batch import (
    HEADER_SIZE,
    BatchHeader,
    CorruptBatch,
    batches,
    check_crc,
    next_offset,
    pack_header,
    parse_header,
    seal,
    stamp,
    stamp_log_append_time,
)

from tests.support import plain_codec as plain

NOW = 1_700_000_000_000


def batch_of(count: int, base_offset: int = 0, leader_epoch: int = -1) -> bytes:
    batch = bytearray(plain.build([(NOW + i, b"k", b"v%d" % i, []) for i in range(count)]))
    length = parse_header(batch).batch_length
    batch[:16] = stamp(base_offset, leader_epoch, length)
    return bytes(batch)


def with_header(batch: bytes, **fields: int) -> bytes:
    """Return the batch with some header fields replaced, and a matching CRC."""
    changed = bytearray(pack_header(parse_header(batch)._replace(**fields)) + batch[HEADER_SIZE:])
    seal(changed)
    return bytes(changed)


def test_fields_are_where_kafka_puts_them() -> None:
    raw = (
        struct.pack(">qiib", 1, 49, 2, 2)
        + struct.pack(">I", 0xFFFFFFFE)
        + struct.pack(">hiqqqhii", 0b011_1011, 3, 4, 5, 6, 7, 8, 9)
    )
    assert len(raw) == HEADER_SIZE
    header = parse_header(raw)
    assert header == BatchHeader(1, 49, 2, 2, 0xFFFFFFFE, 0b011_1011, 3, 4, 5, 6, 7, 8, 9)
    assert pack_header(header) == raw
    assert (header.size, header.last_offset, header.next_offset) == (61, 4, 5)
    assert (header.compression, header.timestamp_type) == (3, 1)
    assert header.is_transactional
    assert header.is_control


def test_an_ordinary_batch_has_no_flag_set() -> None:
    header = parse_header(batch_of(3))
    assert (header.compression, header.timestamp_type) == (0, 0)
    assert not header.is_transactional
    assert not header.is_control
    assert header.has_consecutive_offsets


@pytest.mark.parametrize(("count", "delta"), [(0, -1), (0, 0), (2, 2), (3, 1), (-1, -2)])
def test_count_and_offsets_of_a_producers_batch_must_agree(count: int, delta: int) -> None:
    batch = with_header(batch_of(3), record_count=count, last_offset_delta=delta)
    assert not parse_header(batch).has_consecutive_offsets


def test_offset_and_epoch_are_stamped_without_touching_the_crc() -> None:
    batch = batch_of(3, base_offset=1 << 40, leader_epoch=7)
    header = parse_header(batch)
    check_crc(batch, 0, header)
    assert (header.base_offset, header.partition_leader_epoch) == (1 << 40, 7)
    assert header.last_offset == (1 << 40) + 2


def test_log_append_time_is_set_under_a_new_crc() -> None:
    batch = bytearray(batch_of(3))
    stamp_log_append_time(batch, NOW + 99)
    header = parse_header(batch)
    check_crc(batch, 0, header)
    assert (header.timestamp_type, header.max_timestamp) == (1, NOW + 99)
    assert [(r.timestamp, r.timestamp_type) for r in plain.read(batch)] == [(NOW + 99, 1)] * 3


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_batches_are_found_back_to_back_in_any_buffer(kind: type) -> None:
    first, second = batch_of(3, 10), batch_of(2, 13)
    found = list(batches(kind(first + second)))
    assert [position for position, _ in found] == [0, len(first)]
    assert [header.base_offset for _, header in found] == [10, 13]


def test_a_batch_cut_at_the_end_is_left_out_wherever_it_is_cut() -> None:
    first, second = batch_of(3, 10), batch_of(2, 13)
    for cut in range(len(second)):
        buffer = first + second[:cut]
        assert [header.base_offset for _, header in batches(buffer)] == [10]
        assert next_offset(buffer) == 13
    assert next_offset(first + second) == 15


def test_nothing_whole_has_no_next_offset() -> None:
    assert next_offset(b"") is None
    assert next_offset(batch_of(1)[:-1]) is None
    assert list(batches(b"")) == []


def test_a_batch_emptied_by_compaction_still_moves_the_position() -> None:
    empty = with_header(
        batch_of(1, 20)[:HEADER_SIZE], record_count=0, last_offset_delta=4, batch_length=49
    )
    check_crc(empty, 0, parse_header(empty))
    assert plain.read(empty) == []
    assert next_offset(empty) == 25


def test_every_flipped_bit_under_the_crc_is_found() -> None:
    batch = batch_of(2)
    for position in range(17, len(batch)):
        bad = bytearray(batch)
        bad[position] ^= 1
        with pytest.raises(CorruptBatch, match=r"CRC is 0x.*, its bytes give 0x"):
            check_crc(bad, 0, parse_header(bad))


def test_crc_is_checked_at_the_position_given() -> None:
    first, second = batch_of(3, 10), bytearray(batch_of(2, 13))
    second[-1] ^= 1
    buffer = first + second
    check_crc(buffer, 0, parse_header(buffer))
    with pytest.raises(CorruptBatch, match=f"batch at byte {len(first)}, offset 13: CRC"):
        check_crc(buffer, len(first), parse_header(buffer, len(first)))


def test_crc_of_a_batch_cut_short_says_so() -> None:
    batch = batch_of(2)
    with pytest.raises(CorruptBatch, match=f"cut short, {len(batch) - 1} of {len(batch)} bytes"):
        check_crc(batch[:-1], 0, parse_header(batch))


def test_too_few_bytes_for_a_header() -> None:
    with pytest.raises(CorruptBatch, match="60 bytes left, its header takes 61"):
        parse_header(bytes(60))
    with pytest.raises(CorruptBatch, match="at byte 100: -50 bytes left"):
        parse_header(bytes(50), 100)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48])
def test_impossible_lengths_neither_loop_nor_run_backwards(length: int) -> None:
    batch = with_header(batch_of(2), batch_length=length)
    with pytest.raises(CorruptBatch, match=f"length {length} is less than its own header"):
        list(batches(batch))


def test_the_largest_length_an_int32_holds_is_just_a_partial_batch() -> None:
    batch = with_header(batch_of(2), batch_length=2**31 - 1)
    assert parse_header(batch).size == 2**31 + 11
    assert list(batches(batch)) == []


@pytest.mark.parametrize("magic", [-1, 0, 1, 3])
def test_other_formats_are_refused_by_name(magic: int) -> None:
    with pytest.raises(CorruptBatch, match=f"format v{magic}, only v2"):
        parse_header(with_header(batch_of(1), magic=magic))


def test_a_good_batch_before_a_bad_one_is_still_found() -> None:
    found = batches(batch_of(1, 5) + with_header(batch_of(1), magic=1))
    assert next(found)[1].base_offset == 5
    with pytest.raises(CorruptBatch):
        next(found)


def test_a_position_never_runs_backwards() -> None:
    backwards = with_header(batch_of(1, 50), last_offset_delta=-10)
    with pytest.raises(CorruptBatch, match="its last offset 40 is lower"):
        next_offset(backwards)


def test_corruption_is_caught_as_any_error_of_ours() -> None:
    assert issubclass(CorruptBatch, BarnabasError)
    assert issubclass(CorruptBatch, ValueError)
