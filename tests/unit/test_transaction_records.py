"""The records of `__transaction_state`, byte by byte; and what a coordinator reads out of them."""

from dataclasses import replace

import pytest
from barnabas_broker.coordinator.record_fields import UnreadableRecord
from barnabas_broker.coordinator.transaction.loading import LoadedTransactions
from barnabas_broker.coordinator.transaction.metadata import TransactionMetadata
from barnabas_broker.coordinator.transaction.records import (
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from barnabas_broker.coordinator.transaction.states import TransactionState
from barnabas_common.record.reader import Record
from barnabas_common.topic_partition import TopicPartition


def raw(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


KEY = raw("0000 0004 636f7079")
ONGOING = TransactionMetadata(
    "copy",
    7,
    3,
    60_000,
    TransactionState.ONGOING,
    frozenset({TopicPartition("b", 0), TopicPartition("a", 1), TopicPartition("a", 0)}),
    0x0102030405,
    0x0102030404,
)
ONGOING_BYTES = raw(
    "0000 0000000000000007 0003 0000ea60 01 00000002"
    " 0001 61 00000002 00000000 00000001  0001 62 00000001 00000000"
    " 0000000102030405 0000000102030404"
)
EMPTY = TransactionMetadata("copy", 7, 0, 60_000, last_update_ms=5)
EMPTY_BYTES = raw(
    "0000 0000000000000007 0000 0000ea60 00 ffffffff 0000000000000005 ffffffffffffffff"
)
FLEXIBLE = replace(
    ONGOING,
    state=TransactionState.PREPARE_COMMIT,
    partitions=frozenset({TopicPartition("a", 1)}),
    producer_epoch=32_767,
    previous_producer_id=7,
    next_producer_id=9,
    client_version=2,
)
FLEXIBLE_BYTES = raw(
    "0001 0000000000000007 7fff 0000ea60 02 02 02 61 02 00000001 00"
    " 0000000102030405 0000000102030404"
    " 03 00 08 0000000000000007 01 08 0000000000000009 02 02 0002"
)


def test_a_key() -> None:
    assert encode_key("copy") == KEY and decode_key(KEY) == "copy"
    assert decode_key(raw("0001 0004 636f7079")) is None, "of a later version"


@pytest.mark.parametrize(
    ("metadata", "data"),
    [(ONGOING, ONGOING_BYTES), (EMPTY, EMPTY_BYTES), (FLEXIBLE, FLEXIBLE_BYTES)],
)
def test_values(metadata: TransactionMetadata, data: bytes) -> None:
    assert encode_value(metadata).hex() == data.hex()
    assert decode_value("copy", data) == metadata


def test_an_empty_flexible_value_has_null_for_its_partitions() -> None:
    metadata = replace(EMPTY, client_version=2)
    data = encode_value(metadata)
    assert data == raw(
        "0001 0000000000000007 0000 0000ea60 00 00 0000000000000005 ffffffffffffffff 01 02 02 0002"
    )
    assert decode_value("copy", data) == metadata


def test_what_a_retry_is_recognized_by_is_not_written() -> None:
    """As in Kafka: a retry that meets another coordinator is fenced."""
    data = encode_value(replace(ONGOING, last_producer_epoch=2))
    assert data == ONGOING_BYTES


def test_unknown_tagged_fields_are_skipped() -> None:
    other_tag = FLEXIBLE_BYTES[:-4] + raw("63 02 abcd")
    assert decode_value("copy", other_tag) == replace(FLEXIBLE, client_version=0)


@pytest.mark.parametrize("data", [ONGOING_BYTES, FLEXIBLE_BYTES])
def test_a_value_that_is_cut_short_is_unreadable(data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises(UnreadableRecord):
            decode_value("copy", data[:length])


@pytest.mark.parametrize("status", ["06", "07", "08", "ff"])
def test_states_that_are_never_written_are_unreadable(status: str) -> None:
    data = EMPTY_BYTES[:16] + raw(status) + EMPTY_BYTES[17:]
    with pytest.raises(UnreadableRecord):
        decode_value("copy", data)


def test_an_unknown_version_and_a_tag_of_another_size_are_unreadable() -> None:
    with pytest.raises(UnreadableRecord, match="version 2"):
        decode_value("copy", b"\0\x02" + ONGOING_BYTES[2:])
    with pytest.raises(UnreadableRecord, match="tagged field 2"):
        decode_value("copy", FLEXIBLE_BYTES[:-4] + raw("02 01 02"))


# ---- loading


def loaded(*records: tuple[bytes | None, bytes | None]) -> LoadedTransactions:
    transactions = LoadedTransactions()
    for offset, (key, value) in enumerate(records):
        transactions.take(Record(offset, 0, 0, key, value, [], 0))
    return transactions


def test_the_latest_record_of_each_transactional_id_counts() -> None:
    other = encode_key("other")
    found = loaded((KEY, EMPTY_BYTES), (other, FLEXIBLE_BYTES), (KEY, ONGOING_BYTES)).metadata()
    assert found == [ONGOING, replace(FLEXIBLE, transactional_id="other")]


def test_a_tombstone_removes_a_transactional_id() -> None:
    assert not loaded((KEY, EMPTY_BYTES), (KEY, None)).metadata()


def test_a_record_that_cannot_be_understood_is_left_out_and_named() -> None:
    transactions = loaded(
        (KEY, ONGOING_BYTES), (None, b"x"), (b"\0", b"x"), (KEY, b"\0\x05"), (b"\0\x07abc", b"x")
    )
    assert [offset for offset, _ in transactions.unreadable] == [1, 2, 3]
    assert transactions.metadata() == [ONGOING]
