"""Transactions of the blocking producer."""

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from barnabas import ConsumerRecord, ProducerRecord, RebalanceListener
from barnabas.sync import Consumer, Producer, exactly_once
from barnabas_common.errors import (
    BarnabasError,
    ClientError,
    ClosedError,
    InvalidArgumentError,
    MessageTooLargeError,
    ProducerFencedError,
)
from barnabas_common.messages.transactions import EndTxnRequest
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.topic_partition import TopicPartition

from tests.support.blocking_clients import on_background_loop
from tests.support.scripted_transactions import TransactionBrokers

TP = TopicPartition("flights", 0)


@pytest.fixture
def brokers() -> Iterator[TransactionBrokers]:
    with on_background_loop(TransactionBrokers()) as brokers:
        yield brokers


def producer_of(brokers: TransactionBrokers, **options: Any) -> Producer:
    return Producer(
        brokers.bootstrap, runtime=brokers.runtime, **{"transactional_id": "copy", **options}
    )


def test_blocks_commit_and_abort(brokers: TransactionBrokers) -> None:
    with producer_of(brokers) as producer:
        producer.init_transactions()
        with producer.transaction():
            for number in range(3_000):
                producer.send("flights", b"%d" % number, partition=0)
            producer.send_offsets_to_transaction({("flights", 1): 7}, "g")
        with pytest.raises(ValueError, match="mine"), producer.transaction():
            producer.send("flights", b"dropped", partition=0)
            raise ValueError("mine")
        producer.begin_transaction()
        producer.send("flights", b"last", partition=0)
        producer.commit_transaction()
    assert brokers.committed() == [*(b"%d" % number for number in range(3_000)), b"last"]
    assert brokers.groups["g"].offsets == {("flights", 1): (7, -1, "")}


def test_misuse_is_told_at_once(brokers: TransactionBrokers) -> None:
    with producer_of(brokers) as producer:
        with pytest.raises(ClientError, match=r"init_transactions\(\) first"):
            producer.begin_transaction()
        producer.init_transactions()
        with pytest.raises(ClientError, match=r"begin_transaction\(\) first"):
            producer.send("flights", b"v")
        with pytest.raises(ClientError, match=r"begin_transaction\(\) first"):
            producer.commit_transaction()
    assert brokers.committed() == []


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("flights", bytes(2_000_000)), MessageTooLargeError),
        (("flights", b"v", None, None, -1), InvalidArgumentError),
    ],
)
def test_a_record_that_was_refused_makes_the_commit_fail(
    brokers: TransactionBrokers, arguments: tuple[Any, ...], kind: type[BarnabasError]
) -> None:
    with producer_of(brokers) as producer:
        producer.init_transactions()
        with pytest.raises(kind), producer.transaction():
            producer.send("flights", b"good", partition=0)
            producer.send(*arguments)
        with producer.transaction():
            producer.send("flights", b"next", partition=0)
    assert brokers.committed() == [b"next"]
    assert [r.committed for r in brokers.requests(EndTxnRequest)][-1] is True


def test_a_fenced_producer_is_closed_by_its_block(brokers: TransactionBrokers) -> None:
    with producer_of(brokers) as first, producer_of(brokers) as second:
        first.init_transactions()
        with pytest.raises(ProducerFencedError), first.transaction():
            first.send_and_wait("flights", b"zombie", partition=0)
            second.init_transactions()
        with pytest.raises(ClosedError):
            first.begin_transaction()
    assert brokers.aborted() == [b"zombie"]


def test_a_block_does_not_end_as_if_it_had_committed(brokers: TransactionBrokers) -> None:
    with producer_of(brokers) as first, producer_of(brokers) as second:
        first.init_transactions()
        with pytest.raises(ProducerFencedError), first.transaction():
            second.init_transactions()
            with pytest.raises(ProducerFencedError):
                first.send_and_wait("flights", b"zombie", partition=0)
    assert brokers.committed() == []


def test_the_loop_transforms_in_a_thread(brokers: TransactionBrokers) -> None:
    builder = BatchBuilder()
    for number in range(20):
        builder.append(number, None, b"%d" % number, [])
    brokers.log().append(builder.build())
    threads = set()

    def to_partition_1(record: ConsumerRecord) -> list[ProducerRecord]:
        threads.add(threading.current_thread().name)
        if record.partition:
            return []
        return [ProducerRecord("flights", b"copy of " + (record.value or b""), partition=1)]

    consumer = Consumer(
        "flights", bootstrap_servers=brokers.bootstrap, runtime=brokers.runtime, group_id="g",
        auto_offset_reset="earliest", enable_auto_commit=False, isolation_level="read_committed",
    )  # fmt: skip

    def close_after_the_last() -> None:
        while brokers.groups["g"].offsets.get(TP, (0,))[0] < 20:
            time.sleep(0.01)
        consumer.close()

    closing = threading.Thread(target=close_after_the_last)
    with consumer, producer_of(brokers) as producer:
        closing.start()
        assert exactly_once(consumer, producer, to_partition_1) >= 20
        closing.join()
    assert sorted(brokers.committed(1)) == sorted(b"copy of %d" % n for n in range(20))
    assert "barnabas" not in threads and threading.main_thread().name not in threads


def test_a_listener_may_commit_but_not_poll(brokers: TransactionBrokers) -> None:
    """A poll would wait for the rebalance, which waits for the listener."""
    brokers.log().append(one_record())
    told: list[str] = []

    class Busy(RebalanceListener):
        def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            consumer.commit({partitions[0]: 0})
            for poll in (consumer.poll, consumer.poll_arrow, lambda timeout_ms: next(consumer)):
                with pytest.raises(ClientError, match="must not poll"):
                    poll(timeout_ms=1_000)
                told.append("refused")
            with Consumer("flights", bootstrap_servers=brokers.bootstrap, runtime=brokers.runtime,
                          auto_offset_reset="earliest") as another:  # fmt: skip
                told.append(str(len(another.poll(timeout_ms=10_000))))

    consumer = Consumer(
        bootstrap_servers=brokers.bootstrap, runtime=brokers.runtime, group_id="g",
        auto_offset_reset="earliest",
    )  # fmt: skip
    with consumer:
        consumer.subscribe("flights", Busy())
        assert len(consumer.poll(timeout_ms=30_000)) == 1
    assert told == ["refused", "refused", "refused", "1"]


def test_a_listener_commits_when_the_consumer_is_closed(brokers: TransactionBrokers) -> None:
    brokers.log().append(one_record())

    class Committing(RebalanceListener):
        def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            consumer.commit()

    consumer = Consumer(
        bootstrap_servers=brokers.bootstrap, runtime=brokers.runtime, group_id="g",
        auto_offset_reset="earliest", enable_auto_commit=False,
    )  # fmt: skip
    with consumer:
        consumer.subscribe("flights", Committing())
        assert len(consumer.poll(timeout_ms=30_000)) == 1
    assert brokers.groups["g"].offsets[TP][0] == 1
    with pytest.raises(ClosedError):
        consumer.commit()


def one_record() -> bytes:
    builder = BatchBuilder()
    builder.append(0, None, b"v", [])
    return bytes(builder.build())
