"""Which batches of a producer a leader takes: the cases of Kafka's `ProducerAppendInfo`."""

import pytest
from barnabas_broker.log.producers.producer_state import (
    ALL_NEW,
    BATCHES_KEPT,
    ENTRY_SIZE,
    after_batch,
    after_marker,
    check,
    has_expired,
    last_offset_of,
    share_of,
    unpack,
)
from barnabas_common.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    KafkaError,
    OutOfOrderSequenceNumberError,
)
from barnabas_common.record.batch import TRANSACTIONAL
from barnabas_common.record.sequence import MAX_SEQUENCE, sequence_after, sequence_before

from tests.support.idempotent import MARKER, header_of
from tests.support.log_world import NOW

Ranges = list[tuple[int, int, int]]
"""Epoch, first and last sequence of the batches that were appended, from offset 100 on."""


def entry_of(batches: Ranges) -> bytes | None:
    entry, offset = None, 100
    for number, (epoch, first, last) in enumerate(batches):
        header = header_of(1, epoch, first, last, offset, NOW + number)
        entry = after_batch(entry, header)
        offset = header.next_offset
    return entry


def outcome(entry: bytes | None, epoch: int, first: int, last: int) -> object:
    """The error, the offsets of a retry, or None for a batch to append."""
    share = share_of([header_of(1, epoch, first, last)])
    assert share is not None
    try:
        known = check(entry, share)
    except KafkaError as error:
        return type(error)
    return (known.first_offset, known.last_offset) if known.batches else None


ONE: Ranges = [(0, 0, 9)]
SEVEN: Ranges = [(3, n * 10, n * 10 + 9) for n in range(7)]
END: Ranges = [(0, MAX_SEQUENCE - 9, MAX_SEQUENCE)]
GAP, STALE = OutOfOrderSequenceNumberError, InvalidProducerEpochError


@pytest.mark.parametrize(
    ("appended", "epoch", "first", "last", "expected"),
    [
        # no state: any sequence, for what came before may have been deleted
        ([], 0, 0, 0, None),
        ([], 5, 16, 20, None),
        # the next one, a gap, one that overlaps
        (ONE, 0, 10, 10, None),
        (ONE, 0, 11, 11, GAP),
        (ONE, 0, 1000, 1009, GAP),
        (ONE, 0, 5, 14, GAP),
        (ONE, 0, 0, 0, GAP),
        # a retry: exactly the same sequences
        (ONE, 0, 0, 9, (100, 109)),
        (ONE, 0, 0, 10, GAP),
        (SEVEN, 3, 60, 69, (160, 169)),
        (SEVEN, 3, 20, 29, (120, 129)),
        (SEVEN, 3, 10, 19, GAP),
        (SEVEN, 3, 70, 79, None),
        # another epoch
        (ONE, 1, 0, 3, None),
        (ONE, 1, 0, 9, None),
        (ONE, 1, 10, 10, GAP),
        (SEVEN, 2, 70, 79, STALE),
        (SEVEN, 2, 0, 0, STALE),
        (SEVEN, 2, 60, 69, STALE),
        # a bump forgets the batches of the epoch before
        ([*SEVEN, (4, 0, 0)], 4, 60, 69, GAP),
        ([*SEVEN, (4, 0, 0)], 4, 0, 0, (170, 170)),
        # after the largest sequence comes 0
        (END, 0, 0, 4, None),
        (END, 0, 1, 4, GAP),
        (END, 0, MAX_SEQUENCE - 9, MAX_SEQUENCE, (100, 109)),
        ([*END, (0, 0, 4)], 0, 5, 5, None),
        ([(0, MAX_SEQUENCE - 1, 2)], 0, 3, 3, None),
        ([(0, MAX_SEQUENCE - 1, 2)], 0, MAX_SEQUENCE - 1, 2, (100, 104)),
    ],
)
def test_what_is_taken(
    appended: Ranges, epoch: int, first: int, last: int, expected: object
) -> None:
    assert outcome(entry_of(appended), epoch, first, last) == expected


def test_the_last_five_batches_are_known_with_their_timestamps() -> None:
    entry = entry_of(SEVEN)
    assert entry is not None and len(entry) == ENTRY_SIZE + (BATCHES_KEPT - 1) * 24
    found = [
        (one.first_sequence, one.first_offset, one.timestamp) for one in unpack(entry).batches()
    ]
    assert found == [(n * 10, 100 + n * 10, NOW + n) for n in (6, 5, 4, 3, 2)]
    assert last_offset_of(entry) == 169


def test_a_share_of_several_batches_is_judged_as_a_whole() -> None:
    headers = [header_of(1, 0, 10, 19), header_of(1, 0, 20, 20), header_of(1, 0, 21, 25)]
    share = share_of(headers)
    assert share is not None
    assert check(entry_of(ONE), share) is ALL_NEW
    whole: Ranges = [*ONE, (0, 10, 19), (0, 20, 20), (0, 21, 25)]
    assert check(entry_of(whole), share)[:3] == (3, 110, 125)
    assert check(entry_of([*whole, (0, 26, 26)]), share)[:3] == (3, 110, 125)


@pytest.mark.parametrize(("count", "last_offset"), [(1, 119), (2, 120)])
def test_a_share_of_which_only_the_first_batches_were_replicated(
    count: int, last_offset: int
) -> None:
    ranges: Ranges = [(0, 10, 19), (0, 20, 20), (0, 21, 25)]
    share = share_of([header_of(1, *one) for one in ranges])
    assert share is not None
    known = check(entry_of([*ONE, *ranges[:count]]), share)
    assert known[:3] == (count, 110, last_offset)
    assert known.first_of_all(last_offset + 1) == 110
    assert known.first_of_all(last_offset + 2) == -1, "others have written in between"
    assert ALL_NEW.first_of_all(7) == 7


def test_a_share_that_begins_or_ends_otherwise_is_no_retry() -> None:
    share = share_of([header_of(1, 0, 10, 14), header_of(1, 0, 15, 19), header_of(1, 0, 20, 29)])
    assert share is not None
    for appended in ([(0, 10, 19)], [(0, 10, 12)], [(0, 10, 14), (0, 15, 17)]):
        with pytest.raises(OutOfOrderSequenceNumberError):
            check(entry_of([*ONE, *appended]), share)


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ([header_of(1, 0, 0), header_of(2, 0, 1)], InvalidRecordError),
        ([header_of(1, 0, 0), header_of(1, 1, 1)], InvalidRecordError),
        ([header_of(-1, -1, -1), header_of(1, 0, 0)], InvalidRecordError),
        ([header_of(1, -1, 0)], InvalidRecordError),
        ([header_of(1, 0, -1)], InvalidRecordError),
        ([header_of(1, 0, 0), header_of(1, 0, 2)], OutOfOrderSequenceNumberError),
        ([header_of(1, 0, 0), header_of(1, 0, 0)], OutOfOrderSequenceNumberError),
    ],
)
def test_batches_that_are_no_share(headers: list, error: type[KafkaError]) -> None:  # type: ignore[type-arg]
    with pytest.raises(error):
        share_of(headers)


def test_batches_of_no_idempotent_producer_are_not_judged() -> None:
    assert share_of([header_of(-1, -1, -1), header_of(-1, -1, -1)]) is None


def test_replication_takes_everything() -> None:
    entry = after_batch(entry_of(SEVEN), header_of(1, 2, 500, 500, 900))
    state = unpack(entry)
    assert (state.producer_epoch, state.last_sequence, state.last_offset) == (2, 500, 900)
    assert len(list(state.batches())) == 1


def test_a_marker_ends_the_transaction_and_its_epoch_counts() -> None:
    first = header_of(1, 0, 0, 9, 100, attributes=TRANSACTIONAL)
    second = header_of(1, 0, 10, 19, 110, attributes=TRANSACTIONAL)
    entry = after_batch(after_batch(None, first), second)
    assert unpack(entry).current_txn_first_offset == 100
    ended = unpack(after_marker(entry, header_of(1, 0, -1, None, 120, NOW + 7, MARKER), 4))
    assert (ended.current_txn_first_offset, ended.timestamp) == (-1, NOW + 7)
    assert (ended.last_sequence, len(list(ended.batches()))) == (19, 2)
    bumped = after_marker(entry, header_of(1, 1, -1, None, 120, NOW, MARKER), 4)
    assert list(unpack(bumped).batches()) == []
    assert outcome(bumped, 1, 0, 3) is None
    assert outcome(bumped, 1, 2, 3) is OutOfOrderSequenceNumberError
    assert outcome(bumped, 0, 20, 20) is InvalidProducerEpochError
    alone = unpack(after_marker(None, header_of(1, 3, -1, None, 0, NOW, MARKER), 4))
    assert (alone.producer_epoch, alone.last_offset) == (3, -1)


def test_only_a_silent_producer_without_a_transaction_expires() -> None:
    entry = after_batch(None, header_of())
    assert not has_expired(entry, NOW + 999, 1000)
    assert has_expired(entry, NOW + 1000, 1000)
    assert not has_expired(after_batch(None, header_of(attributes=TRANSACTIONAL)), 2 * NOW, 1000)


def test_sequences_go_round() -> None:
    assert sequence_after(MAX_SEQUENCE, 1) == 0
    assert sequence_before(0, 1) == MAX_SEQUENCE
    assert sequence_before(sequence_after(MAX_SEQUENCE - 3, 10), 10) == MAX_SEQUENCE - 3
