"""The compiled codec and the plain one are equal, in both directions."""

import pytest
from barnabas_common.record.batch import HEADER_SIZE, CorruptBatch, pack_header, parse_header, seal
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.compiled import IS_COMPILED
from barnabas_common.record.compression import Compression
from barnabas_common.record.reader import Record, read_batch
from hypothesis import given
from hypothesis import strategies as st

from tests.support import plain_codec as plain

CODECS = [codec.name.lower() for codec in Compression]

timestamps = st.integers(0, 2**63 - 1) | st.integers(1_700_000_000_000, 1_700_000_100_000)
contents = st.none() | st.binary(max_size=80) | st.binary(min_size=120, max_size=200)
headers = st.lists(st.tuples(st.text(max_size=10), contents), max_size=3)
new_records = st.tuples(timestamps, contents, contents, headers)
record_lists = st.lists(new_records, min_size=1, max_size=20)


def compiled_build(records: list[plain.NewRecord], compression: str = "none") -> bytes:
    builder = BatchBuilder(compression)
    for timestamp, key, value, record_headers in records:
        assert builder.append(timestamp, key, value, record_headers) == builder.size
    assert builder.count == len(records)
    return builder.build()


def as_read(records: list[plain.NewRecord]) -> list[Record]:
    return [
        Record(offset, timestamp, 0, key, value, list(record_headers), -1)
        for offset, (timestamp, key, value, record_headers) in enumerate(records)
    ]


def resealed(batch: bytes, **fields: int) -> bytes:
    changed = bytearray(pack_header(parse_header(batch)._replace(**fields)) + batch[HEADER_SIZE:])
    seal(changed)
    return bytes(changed)


def test_the_codec_in_use_is_the_compiled_one() -> None:
    assert IS_COMPILED


@given(record_lists)
def test_both_build_the_same_bytes(records: list[plain.NewRecord]) -> None:
    assert compiled_build(records) == plain.build(records)


@pytest.mark.parametrize("compression", CODECS)
@given(records=record_lists)
def test_each_reads_what_the_other_built(compression: str, records: list[plain.NewRecord]) -> None:
    expected = as_read(records)
    assert plain.read(compiled_build(records, compression)) == expected
    assert read_batch(plain.build(records, compression)) == expected


@given(
    records=record_lists,
    base_offset=st.integers(0, 2**62),
    epoch=st.integers(-1, 2**31 - 1),
    base_timestamp=st.integers(-100, 2**40),
    by_broker=st.booleans(),
)
def test_both_read_the_same_whatever_the_header_says(
    records: list[plain.NewRecord],
    base_offset: int,
    epoch: int,
    base_timestamp: int,
    by_broker: bool,
) -> None:
    small = [(timestamp % 1000, *rest) for timestamp, *rest in records]
    batch = resealed(
        plain.build(small),
        base_offset=base_offset,
        partition_leader_epoch=epoch,
        base_timestamp=base_timestamp,
        attributes=8 if by_broker else 0,
    )
    read = read_batch(batch)
    assert read == plain.read(batch)
    assert [record.offset for record in read] == [base_offset + n for n in range(len(small))]
    assert {record.leader_epoch for record in read} == {epoch}


def test_a_record_without_a_timestamp_reads_as_minus_one() -> None:
    batch = resealed(plain.build([(0, b"k", b"v", []), (5, b"k", b"v", [])]), base_timestamp=-1)
    assert [record.timestamp for record in read_batch(batch)] == [-1, 4]
    assert [record.timestamp for record in plain.read(batch)] == [-1, 4]


def test_one_known_batch_byte_by_byte() -> None:
    batch = compiled_build([(1000, b"k", b"v", []), (999, None, b"", [("h", None)])])
    assert batch[HEADER_SIZE:] == bytes.fromhex(
        "10 00 00 00 02 6b 02 76 00"  # length 8, attributes, deltas 0 and 0, "k", "v"
        "12 00 01 02 01 00 02 02 68 01"  # length 9, deltas -1 and 1, no key, "", header "h"
    )
    header = parse_header(batch)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1000)
    assert (header.record_count, header.last_offset_delta) == (2, 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert (header.base_offset, header.partition_leader_epoch) == (0, -1)


@given(
    st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, -1, 63, 64, -64, -65, 2**31, -(2**31)])
)
def test_varints_come_back(number: int) -> None:
    encoded = plain.encode_varint(number)
    assert len(encoded) <= 10
    assert plain.decode_varint(b"x" + encoded + b"y", 1) == (number, 1 + len(encoded))


@given(record_lists, st.data())
def test_malformed_records_under_a_good_crc_are_corrupt_and_nothing_worse(
    records: list[plain.NewRecord], data: st.DataObject
) -> None:
    batch = bytearray(plain.build(records))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
        batch[position] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFE, 0xFF]))
    seal(batch)
    for read in (read_batch, plain.read):
        try:
            read(bytes(batch))
        except CorruptBatch as error:
            assert "malformed records" in str(error)


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_a_count_that_does_not_fit_the_records_is_corrupt(count: int) -> None:
    batch = resealed(plain.build([(1, b"k", b"v", [])] * 2), record_count=count)
    for read in (read_batch, plain.read):
        with pytest.raises(CorruptBatch, match="offset 0: malformed records"):
            read(batch)


def test_a_batch_emptied_by_compaction_has_no_records() -> None:
    whole = plain.build([(1, b"k", b"v", [])])
    empty = resealed(whole[:HEADER_SIZE], record_count=0, batch_length=49, last_offset_delta=7)
    assert read_batch(empty) == plain.read(empty) == []
