"""Which batch of a partition may be sent, with which sequence, and when sequences begin again."""

from collections.abc import Callable

import pytest
from barnabas.producer.batch import ProducerBatch
from barnabas.producer.prebuilt import with_producer
from barnabas.producer.producer_id import ProducerIdAndEpoch
from barnabas.producer.sequences import MAX_UNANSWERED, UNLIMITED, PartitionSequences
from barnabas_common.record.batch import batches, check_crc
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.sequence import sequence_after
from barnabas_common.topic_partition import TopicPartition

FIRST = ProducerIdAndEpoch(7, 0)
NEXT = ProducerIdAndEpoch(7, 1)
LARGEST = 2**31 - 1


def batch_of(records: int) -> ProducerBatch:
    batch = ProducerBatch(TopicPartition("flights", 0), "none", created=0.0)
    for number in range(records):
        batch.append(1_000 + number, None, b"%d" % number, ())
    batch.close()
    return batch


def send(sequences: PartitionSequences, batch: ProducerBatch) -> ProducerBatch:
    assert sequences.room(FIRST) > 0
    sequences.assign(batch, FIRST)
    batch.sent()
    return batch


def confirmed() -> PartitionSequences:
    """Sequences of which the first record is acknowledged."""
    sequences = PartitionSequences()
    sequences.delivered(send(sequences, batch_of(1)))
    return sequences


def test_a_sequence_counts_records_and_goes_into_the_header() -> None:
    sequences = confirmed()
    first, second = send(sequences, batch_of(3)), send(sequences, batch_of(2))
    assert (first.base_sequence, second.base_sequence, sequences.next_sequence) == (1, 4, 6)
    ((_, header),) = batches(second.payload)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 0, 4)
    check_crc(second.payload, 0, header)


@pytest.mark.parametrize(
    ("sequence", "records", "after"),
    [(0, 1, 1), (LARGEST, 1, 0), (LARGEST - 1, 1, LARGEST), (LARGEST - 1, 5, 3)],
)
def test_after_the_largest_sequence_comes_zero(sequence: int, records: int, after: int) -> None:
    assert sequence_after(sequence, records) == after


def test_batches_built_elsewhere_are_numbered_one_behind_the_other() -> None:
    builder = BatchBuilder("gzip")
    for number in range(3):
        builder.append(5, None, b"%d" % number)
    payload = builder.build()
    numbered = with_producer(payload * 3, 7, 2, LARGEST - 2)
    headers = [header for _, header in batches(numbered)]
    assert [header.base_sequence for header in headers] == [LARGEST - 2, 0, 3]
    for position, header in batches(numbered):
        check_crc(numbered, position, header)
    assert with_producer(numbered, -1, -1, -1) == payload * 3


def test_five_batches_may_be_unanswered_and_retries_keep_their_order() -> None:
    sequences = confirmed()
    assert sequences.room(FIRST) == UNLIMITED
    sent = []
    for left in range(MAX_UNANSWERED, 0, -1):
        sent.append(send(sequences, batch_of(1)))
        assert sequences.room(FIRST) == left - 1
    sent[1].reenqueued()
    assert not sequences.admits_retry(sent[1])
    sequences.delivered(sent[0])
    assert sequences.admits_retry(sent[1])
    assert sequences.room(FIRST) == 1


def test_nothing_new_is_sent_behind_a_retry() -> None:
    sequences = confirmed()
    batch = send(sequences, batch_of(1))
    batch.reenqueued()
    batch.sent()
    assert sequences.room(FIRST) == 0
    sequences.delivered(batch)
    assert sequences.room(FIRST) == UNLIMITED


def test_the_second_batch_waits_until_the_leader_knows_the_producer() -> None:
    sequences = PartitionSequences()
    assert sequences.room(FIRST) == 1
    first = send(sequences, batch_of(1))
    assert sequences.room(FIRST) == 0
    sequences.delivered(first)
    send(sequences, batch_of(1))
    assert sequences.room(FIRST) == MAX_UNANSWERED - 1


def test_nothing_new_is_sent_without_an_id_or_while_another_epoch_is_unanswered() -> None:
    sequences = confirmed()
    assert sequences.room(None) == 0
    old = send(sequences, batch_of(1))
    assert sequences.room(NEXT) == 0
    sequences.delivered(old)
    new = batch_of(1)
    assert sequences.room(NEXT) == 1
    sequences.assign(new, NEXT)
    assert (new.producer, new.base_sequence) == (NEXT, 0)
    assert sequences.room(NEXT) == 0, "the leader does not know this epoch yet"
    sequences.delivered(new)
    assert sequences.room(NEXT) == UNLIMITED


def test_nothing_follows_more_batches_than_a_leader_remembers() -> None:
    sequences = confirmed()
    large = batch_of(1)
    large.record_batches = MAX_UNANSWERED + 1
    send(sequences, large)
    assert sequences.room(FIRST) < 0


def first_is_given_up(sequences: PartitionSequences, sent: list[ProducerBatch]) -> None:
    sequences.given_up(sent[0])
    sequences.delivered(sent[1])  # so the first was stored before it


def late_answer(sequences: PartitionSequences, sent: list[ProducerBatch]) -> None:
    sequences.delivered(sent[0])
    sequences.given_up(sent[1])
    sequences.delivered(sent[1])


def last_is_given_up(sequences: PartitionSequences, sent: list[ProducerBatch]) -> None:
    sequences.delivered(sent[0])
    sequences.given_up(sent[1])


def both_are_given_up(sequences: PartitionSequences, sent: list[ProducerBatch]) -> None:
    for batch in sent:
        sequences.given_up(batch)


@pytest.mark.parametrize(
    ("happens", "again"),
    [
        (first_is_given_up, False),
        (late_answer, False),
        (last_is_given_up, True),
        (both_are_given_up, True),
    ],
)
def test_the_sequences_begin_again_if_what_was_given_up_may_be_missing(
    happens: Callable[[PartitionSequences, list[ProducerBatch]], None], again: bool
) -> None:
    sequences = confirmed()
    happens(sequences, [send(sequences, batch_of(2)), send(sequences, batch_of(2))])
    assert sequences.needs_epoch() is again
    assert (sequences.room(FIRST) == 0) is again


def test_a_later_batch_given_up_stays_unresolved_when_an_earlier_one_is_delivered() -> None:
    sequences = confirmed()
    first, second = send(sequences, batch_of(1)), send(sequences, batch_of(1))
    sequences.given_up(second)
    assert not sequences.needs_epoch() and sequences.room(FIRST) == 0
    sequences.delivered(first)
    assert sequences.needs_epoch()


def test_a_new_epoch_waits_for_every_answer_and_numbers_from_zero() -> None:
    sequences = confirmed()
    first, second = send(sequences, batch_of(2)), send(sequences, batch_of(2))
    sequences.gap = True
    first.reenqueued()
    assert not sequences.needs_epoch() and not sequences.admits_retry(first)
    second.reenqueued()
    assert sequences.needs_epoch()
    sequences.restart()
    assert sequences.room(NEXT) == 1
    sequences.assign(first, NEXT)
    assert (first.producer, first.base_sequence) == (NEXT, 0)


def test_answers_that_overtake_another_do_not_turn_back_what_is_known() -> None:
    sequences = confirmed()
    first, second = send(sequences, batch_of(2)), send(sequences, batch_of(2))
    sequences.delivered(second)
    sequences.delivered(first)
    assert sequences.written_to == sequences.next_sequence == 5


def test_an_answer_under_an_earlier_epoch_changes_nothing() -> None:
    sequences = confirmed()
    late = send(sequences, batch_of(2))
    sequences.given_up(late)
    assert sequences.needs_epoch()
    sequences.restart()
    sequences.delivered(late)
    assert (sequences.written_to, sequences.next_sequence) == (0, 0)


def test_the_parts_of_a_batch_share_its_sequences() -> None:
    sequences = confirmed()
    batch, behind = send(sequences, batch_of(3)), send(sequences, batch_of(1))
    parts = batch.split()
    sequences.split(batch, parts)
    assert [part.base_sequence for part in parts] == [1, 2]
    assert sequences.unanswered == [*parts, behind]
