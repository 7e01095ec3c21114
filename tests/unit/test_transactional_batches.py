"""Markers and transactional batches, byte by byte."""

import pytest
from barnabas_common.record.batch import check_crc, parse_header
from barnabas_common.record.reader import read_batch
from barnabas_common.record.transactional import commits, marker_batch, transactional_batch


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_is_kafkas(commit: bool) -> None:
    batch = marker_batch(7, 3, commit, 5, 1000)
    header = parse_header(batch)
    check_crc(batch, 0, header)
    assert header.is_control and header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert (header.record_count, header.max_timestamp, header.size) == (1, 1000, len(batch))
    (record,) = read_batch(batch)
    assert record.key == bytes.fromhex("00000001" if commit else "00000000")
    assert record.value == bytes.fromhex("000000000005")
    assert commits(record.key) is commit
    # After the header: length 16, no attributes, no deltas, key of 4 bytes, value of 6, no headers.
    body = f"20 00 00 00 08 {record.key.hex()} 0c 000000000005 00"
    assert batch[61:].hex() == body.replace(" ", "")


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", bytes.fromhex("00000002")])
def test_other_control_records_end_no_transaction(key: bytes | None) -> None:
    assert commits(key) is None


def test_records_of_a_transaction_that_have_no_sequence() -> None:
    batch = bytes(transactional_batch(7, 3, 1000, [(b"k", b"v"), (b"l", None)]))
    header = parse_header(batch)
    check_crc(batch, 0, header)
    assert header.is_transactional and not header.is_control
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert [(item.key, item.value) for item in read_batch(batch)] == [(b"k", b"v"), (b"l", None)]
