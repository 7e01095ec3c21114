"""The states of a producer's batch, and what its handles say in each."""

import pytest
from barnabas.producer.batch import BatchState, ProducerBatch
from barnabas.producer.producer_id import ProducerIdAndEpoch
from barnabas.producer.queues import TopicQueues
from barnabas.producer.sequences import UNLIMITED
from barnabas_common.errors import ClientError, UnknownServerError
from barnabas_common.record.batch import parse_header
from barnabas_common.record.compression import Compression
from barnabas_common.topic_partition import TopicPartition


def batch_of(records: int) -> ProducerBatch:
    batch = ProducerBatch(TopicPartition("flights", 0), "none", created=0.0)
    for number in range(records):
        batch.append(1_000 + number, None, b"%d" % number, ())
    return batch


def test_a_batch_is_filled_closed_sent_and_delivered() -> None:
    batch = batch_of(1)
    handle = batch.append(2_000, None, b"x", ())
    assert batch.state is BatchState.OPEN
    batch.close()
    batch.sent()
    batch.reenqueued()
    batch.sent()
    with pytest.raises(ClientError):
        handle.result()
    batch.complete(10, -1)
    assert batch.state is BatchState.DONE
    assert batch.attempts == 2
    assert handle.result() == ("flights", 0, 11, 2_000)


def test_a_batch_is_done_only_once() -> None:
    batch = batch_of(1)
    batch.close()
    batch.fail(UnknownServerError("late"))
    for again in (batch.sent, batch.reenqueued, batch.close, lambda: batch.complete(0, -1)):
        with pytest.raises(AssertionError):
            again()


def test_only_a_batch_in_flight_is_split() -> None:
    batch = batch_of(2)
    batch.close()
    with pytest.raises(AssertionError):
        batch.split()


def test_a_batch_that_was_refused_with_others_is_alone_in_its_request() -> None:
    """One behind it would be refused with it."""
    (queue,) = TopicQueues("flights", 1).queues
    batches = [batch_of(1) for _ in range(5)]
    for batch in batches:
        batch.close()
    queue.closed.extend(batches)
    queue.separate([batches[2]])
    shares = []
    while share := queue.fresh(UNLIMITED, room=1 << 20, first=True):
        queue.take(share, None)
        shares.append(share)
    assert shares == [batches[:2], [batches[2]], batches[3:]]


def test_the_parts_of_a_batch_are_compressed_and_in_a_transaction_as_it_was() -> None:
    batch = ProducerBatch(TopicPartition("flights", 0), "gzip", created=3.0)
    for _ in range(2):
        batch.append(1_000, None, b"x", ())
    batch.close()
    batch.transactional = True
    batch.sent()
    for part in batch.split():
        part.number(ProducerIdAndEpoch(7, 0), 0)
        header = parse_header(part.payload)
        assert (header.compression, header.is_transactional) == (Compression.GZIP, True)
        assert part.created == 3.0


def test_handles_find_their_records_in_the_parts() -> None:
    batch = batch_of(2)
    third = batch.append(2_000, None, b"third", ())
    batch.close()
    batch.sent()
    first_part, second_part = batch.split()
    assert (first_part.count, second_part.count) == (1, 2)
    assert first_part.state is second_part.state is BatchState.CLOSED
    second_part.sent()
    second_part.complete(20, -1)
    assert third.result().offset == 21
