"""Which batch of a partition may be sent, with which sequence, and when sequences begin again."""

from collections.abc import Callable

import pytest
from barnabas.producer.batch import ProducerBatch
from barnabas.producer.prebuilt import sequence_after, with_producer
from barnabas.producer.producer_id import ProducerIdAndEpoch
from barnabas.producer.sequences import MAX_UNANSWERED, PartitionSequences
from barnabas_common.record.batch import batches, check_crc
from barnabas_common.record.builder import BatchBuilder
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
    assert sequences.admits(batch, FIRST)
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


def test_five_batches_may_be_unanswered_and_a_retry_is_sent_only_as_the_earliest() -> None:
    sequences = confirmed()
    sent = [send(sequences, batch_of(1)) for _ in range(MAX_UNANSWERED)]
    assert not sequences.admits(batch_of(1), FIRST)
    sent[1].reenqueued()
    assert not sequences.admits(sent[1], FIRST)
    sequences.delivered(sent[0])
    assert sequences.admits(sent[1], FIRST)
    assert sequences.admits(batch_of(1), FIRST)


def test_the_second_batch_waits_until_the_leader_knows_the_producer() -> None:
    sequences = PartitionSequences()
    first = send(sequences, batch_of(1))
    assert not sequences.admits(batch_of(1), FIRST)
    sequences.delivered(first)
    send(sequences, batch_of(1))
    assert sequences.admits(batch_of(1), FIRST)


def test_nothing_new_is_sent_without_an_id_or_while_another_epoch_is_unanswered() -> None:
    sequences = confirmed()
    assert not sequences.admits(batch_of(1), None)
    old = send(sequences, batch_of(1))
    assert not sequences.admits(batch_of(1), NEXT)
    sequences.delivered(old)
    new = batch_of(1)
    assert sequences.admits(new, NEXT)
    sequences.assign(new, NEXT)
    assert (new.producer, new.base_sequence) == (NEXT, 0)


def test_more_batches_than_a_leader_remembers_are_alone_in_flight() -> None:
    sequences = confirmed()
    large = batch_of(1)
    large.record_batches = MAX_UNANSWERED + 1
    small = send(sequences, batch_of(1))
    assert not sequences.admits(large, FIRST)
    sequences.delivered(small)
    send(sequences, large)
    assert not sequences.admits(batch_of(1), FIRST)


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
    assert sequences.admits(batch_of(1), FIRST) is not again


def test_a_later_batch_given_up_stays_unresolved_when_an_earlier_one_is_delivered() -> None:
    sequences = confirmed()
    first, second = send(sequences, batch_of(1)), send(sequences, batch_of(1))
    sequences.given_up(second)
    assert not sequences.needs_epoch() and not sequences.admits(batch_of(1), FIRST)
    sequences.delivered(first)
    assert sequences.needs_epoch()


def test_a_new_epoch_waits_for_every_answer_and_numbers_from_zero() -> None:
    sequences = confirmed()
    first, second = send(sequences, batch_of(2)), send(sequences, batch_of(2))
    sequences.gap = True
    first.reenqueued()
    assert not sequences.needs_epoch() and not sequences.admits(first, FIRST)
    second.reenqueued()
    assert sequences.needs_epoch()
    sequences.restart()
    assert sequences.admits(first, NEXT)
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
