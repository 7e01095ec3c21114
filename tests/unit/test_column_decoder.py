"""Columns decoded by numpy are those that the compiled codec decodes record by record."""

import random
from typing import Any

import pytest
from barnabas.consumer.column_decoder import decode
from barnabas_common.record.batch import (
    CONTROL,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    CorruptBatch,
    pack_header,
    parse_header,
    seal,
)
from barnabas_common.record.reader import Columns, _ControlBatches, read_columns
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import plain_codec as plain

unhurried = settings(deadline=None)

NOW = 1_700_000_000_000
FOREVER = 2**63 - 1
Rows = list[tuple[int, bytes | None, bytes | None, list[Any]]]


def at(batch: bytes, base_offset: int, attributes: int = 0, **changed: int) -> bytes:
    header = parse_header(batch)._replace(base_offset=base_offset, **changed)
    header = header._replace(attributes=header.attributes | attributes)
    found = bytearray(pack_header(header) + batch[HEADER_SIZE:])
    seal(found)
    return bytes(found)


def by_numpy(buffer: bytes, start: int = 0, end: int = FOREVER, crcs: bool = True) -> Any:
    return as_lists(decode(buffer, start, end, crcs, _ControlBatches()))


def as_lists(columns: Columns | None) -> Columns | None:
    """With lists in place of arrays."""
    if columns is None:
        return None
    numbers = [each.tolist() for each in columns[:3]]
    return Columns(*numbers, columns.keys.to_pylist(), columns.values.to_pylist())


blobs = st.none() | st.binary(max_size=3) | st.sampled_from([b"a" * 63, b"b" * 64, b"c" * 9000])
rows = st.tuples(st.integers(0, 10_000), blobs, blobs).map(
    lambda row: (NOW + row[0], row[1], row[2], [])
)
same_rows = st.tuples(rows, st.integers(1, 200)).map(lambda pair: [pair[0]] * pair[1])
batch_rows = st.lists(rows | same_rows, min_size=1, max_size=30).map(
    lambda some: [r for each in some for r in (each if isinstance(each, list) else [each])]
)


@unhurried
@given(
    st.lists(
        st.tuples(
            batch_rows,
            st.sampled_from(["none", "none", "zstd", "gzip"]),
            st.sampled_from([0, 0, LOG_APPEND_TIME, CONTROL]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.data(),
)
def test_the_same_columns_or_none(given_batches: list[tuple[Rows, str, int]], data: Any):
    buffer, offset = b"", 7
    for given_rows, codec, attributes in given_batches:
        buffer += at(plain.build(given_rows, codec), offset, attributes)
        offset += len(given_rows) + 3
    start = data.draw(st.integers(0, offset))
    end = data.draw(st.integers(start, offset) | st.just(FOREVER))
    found = by_numpy(buffer, start, end)
    assert found in (None, read_columns(buffer, start, end))


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize("attributes", [0, LOG_APPEND_TIME])
def test_plain_batches_are_decoded(codec: str, attributes: int):
    chance = random.Random(7)
    buffer, offset = b"", 0
    for number in range(5):
        size = 100 if number % 2 else None
        some = [
            (
                NOW + n // 3,
                None if n % 7 == 0 else b"k%d" % n,
                None if n % 11 == 0 else bytes(size or chance.randrange(300)),
                [],
            )
            for n in range(300)
        ]
        buffer += at(plain.build(some, codec), offset, attributes)
        offset += 300
    for start, end in [(0, FOREVER), (17, 1_311), (300, 600), (299, 300)]:
        found = by_numpy(buffer, start, end)
        assert found is not None
        assert found == read_columns(buffer, start, end)


def test_compacted_batches_are_decoded():
    body = bytearray()
    for delta in range(0, 6_000, 3):
        plain._write_record(body, 0, delta, None, b"%d" % delta, [])
    header = parse_header(plain.build([(NOW, None, None, [])]))._replace(
        batch_length=49 + len(body), last_offset_delta=7_000, record_count=2_000
    )
    batch = bytearray(pack_header(header)) + body
    seal(batch)
    assert by_numpy(bytes(batch)) == read_columns(bytes(batch), 0, FOREVER)


def test_what_is_left_to_the_compiled_codec():
    some: Rows = [(NOW, b"k", b"v", [])] * 50
    sound = plain.build(some)
    assert by_numpy(sound) is not None
    for left in (
        b"",
        plain.build(some[:3]),
        plain.build([*some, (NOW, b"k", b"v", [("trace", b"1")])]),
        at(sound, 0, base_timestamp=2**62 + 1),
        at(sound, 0, record_count=51),
        at(sound, 0, record_count=49),
        sound[:-1] + b"\1",
    ):
        assert by_numpy(left) is None


def test_an_offset_below_that_of_the_batch_is_left_to_the_compiled_codec():
    bad = bytearray(plain.build([(NOW, None, b"value", [])] * 20))
    bad[HEADER_SIZE + 3] = 1  # the first record's offset delta: -1
    assert by_numpy(bytes(bad), crcs=False) is None


@unhurried
@given(st.data())
def test_damage_is_never_taken_for_records(data: Any):
    """With whatever bytes changed: what the compiled codec finds, or nothing at all."""
    some: Rows = [(NOW + n, None if n % 3 else b"key", bytes(n % 70), []) for n in range(60)]
    bad = bytearray(plain.build(some))
    for _ in range(data.draw(st.integers(1, 3))):
        bad[data.draw(st.integers(HEADER_SIZE - 4, len(bad) - 1))] = data.draw(st.integers(0, 255))
    found = by_numpy(bytes(bad), crcs=False)
    try:
        wanted = read_columns(bytes(bad), 0, FOREVER, check_crcs=False)
    except CorruptBatch:
        wanted = None
    assert found in (None, wanted)
