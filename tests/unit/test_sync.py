"""The blocking clients: from plain threads, and beside a running loop."""

import asyncio
import inspect
import logging
import threading
from collections.abc import Iterator
from typing import Any

import barnabas.sync
import pytest
from barnabas.sync import Admin, Consumer, Producer
from barnabas.sync.loop_thread import LoopThread
from barnabas_common.errors import (
    ClientError,
    ClosedError,
    InvalidArgumentError,
    InvalidRecordError,
    MessageTooLargeError,
    NoBrokerReachableError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.topic_partition import TopicPartition

from tests.support.blocking_clients import consumer_of, on_background_loop, producer_of
from tests.support.scripted_brokers import ScriptedBrokers, never_acknowledged, refuse

TP = TopicPartition("flights", 0)


@pytest.fixture
def brokers() -> Iterator[ScriptedBrokers]:
    with on_background_loop(ScriptedBrokers(partitions=2)) as brokers:
        yield brokers


def test_what_is_sent_is_read_back_in_order(brokers: ScriptedBrokers) -> None:
    with producer_of(brokers) as producer:
        handles = [producer.send("flights", b"%d" % i, partition=0) for i in range(3_000)]
        assert [handle.result(5).offset for handle in handles] == list(range(3_000))
        assert producer.partitions_for("flights") == 2
    with consumer_of(brokers, "flights") as consumer:
        values = []
        for record in consumer:
            values.append(record.value)
            assert consumer.position(TP) == len(values)
            if len(values) == 3_000:
                break
        assert values == [b"%d" % i for i in range(3_000)]
        assert consumer.end_offsets([TP]) == {TP: 3_000}
        consumer.seek(TP, 2_999)
        assert [r.value for r in consumer.poll(timeout_ms=1_000)] == [b"2999"]
        assert consumer.poll(timeout_ms=10) == []


def test_leaving_with_delivers(brokers: ScriptedBrokers) -> None:
    with producer_of(brokers, linger_ms=60_000) as producer:
        for i in range(50_000):
            producer.send("flights", b"%d" % i, partition=1)
    assert [r.value for r in brokers.log(1).records()] == [b"%d" % i for i in range(50_000)]
    with pytest.raises(ClosedError):
        producer.send("flights", b"late")


async def test_works_where_a_loop_already_runs() -> None:
    asyncio.get_running_loop()
    thread = LoopThread.shared()

    async def start() -> ScriptedBrokers:
        return await ScriptedBrokers().__aenter__()

    scripted = thread.call(start())
    with producer_of(scripted) as producer:
        assert producer.send_and_wait("flights", b"v").offset == 0
    thread.call(scripted.__aexit__())


def test_a_buffer_may_be_used_again_as_soon_as_send_returns(brokers: ScriptedBrokers) -> None:
    with producer_of(brokers) as producer:
        buffer = bytearray(b"first")
        handles = [
            producer.send("flights", same, partition=0) for same in (buffer, memoryview(buffer))
        ]
        buffer[:] = b"other"
        for handle in handles:
            handle.result(5)
    assert [record.value for record in brokers.log(0).records()] == [b"first", b"first"]


def test_result_raises_what_became_of_the_record(brokers: ScriptedBrokers) -> None:
    with producer_of(brokers, max_request_size=2_000) as producer:
        assert producer.send("flights", b"good").result(5).offset == 0
        with pytest.raises(MessageTooLargeError):
            producer.send("flights", b"x" * 3_000).result(5)
        with pytest.raises(UnknownTopicOrPartitionError):
            producer.send("flights", b"v", partition=9).result(5)
        brokers.faults.append(refuse(ErrorCode.INVALID_RECORD))
        with pytest.raises(InvalidRecordError):
            producer.send_and_wait("flights", b"v")
        with pytest.raises(InvalidArgumentError, match="encode it first"):
            producer.send("flights", "text")  # type: ignore[arg-type]


def test_flush_raises_an_error_no_one_would_see_otherwise_once(brokers: ScriptedBrokers) -> None:
    with producer_of(brokers) as producer:
        brokers.faults.append(refuse(ErrorCode.INVALID_RECORD))
        producer.send("flights", b"bad")
        with pytest.raises(InvalidRecordError):
            producer.flush()
        producer.flush()
        producer.send("flights", b"v", partition=9)
        with pytest.raises(UnknownTopicOrPartitionError):
            producer.flush()


def test_leaving_with_raises_too(brokers: ScriptedBrokers) -> None:
    brokers.faults.append(refuse(ErrorCode.INVALID_RECORD))
    with pytest.raises(InvalidRecordError), producer_of(brokers) as producer:
        producer.send("flights", b"bad")


def test_an_error_in_the_block_is_not_hidden_by_one_of_delivery(brokers: ScriptedBrokers) -> None:
    brokers.faults.append(refuse(ErrorCode.INVALID_RECORD))
    with pytest.raises(ZeroDivisionError), producer_of(brokers) as producer:
        producer.send("flights", b"bad")
        raise ZeroDivisionError


def test_result_times_out_and_the_record_still_arrives(brokers: ScriptedBrokers) -> None:
    leader, brokers.log(0).leader = brokers.log(0).leader, -1
    with producer_of(brokers, retry_backoff_ms=5) as producer:
        handle = producer.send("flights", b"v", partition=0)
        with pytest.raises(TimeoutError):
            handle.result(0.05)
        assert not handle.done()
        brokers.log(0).leader, brokers.log(0).epoch = leader, 2
        assert handle.result(5).offset == 0


def test_callbacks_run(brokers: ScriptedBrokers) -> None:
    seen: list[Any] = []
    with producer_of(brokers) as producer:
        producer.send("flights", b"v", partition=0, on_delivery=lambda m, e: seen.append((m, e)))
        producer.flush()
    assert [(metadata.offset, error) for metadata, error in seen] == [(0, None)]


def test_many_threads_may_send(brokers: ScriptedBrokers) -> None:
    with producer_of(brokers) as producer:

        def work(number: int) -> None:
            for i in range(500):
                producer.send("flights", b"%d:%d" % (number, i), partition=0)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.flush()
    values = [r.value or b"" for r in brokers.log(0).records()]
    for number in range(4):
        own = [v for v in values if v.startswith(b"%d:" % number)]
        assert own == [b"%d:%d" % (number, i) for i in range(500)]


def test_prebuilt_batches_follow_what_was_sent_before(brokers: ScriptedBrokers) -> None:
    builder = BatchBuilder()
    builder.append(5, None, b"second")
    with producer_of(brokers) as producer:
        producer.send("flights", b"first", partition=0)
        assert producer.send_batch("flights", 0, builder.build()).offset == 1
        assert producer.send_batch("flights", 0, bytearray(builder.build() * 2)).offset == 2


def test_a_callback_that_closes_its_producer_is_refused_and_can_be_closed(
    brokers: ScriptedBrokers, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), producer_of(brokers) as producer:
        producer.send("flights", b"v", on_delivery=lambda m, e: producer.close())
        producer.flush()
        handle = producer.send("flights", b"w")
    assert handle.done() and handle.result().offset >= 0
    assert "not possible in an on_delivery callback" in caplog.text


def test_a_time_that_is_none_closes_no_producer(brokers: ScriptedBrokers) -> None:
    """It was closed without its records, and the time was refused afterwards."""
    wrong: Any = "5"
    with producer_of(brokers) as producer:
        handle = producer.send("flights", b"v")
        with pytest.raises(InvalidArgumentError, match="timeout_ms"):
            producer.close(wrong)
    assert handle.result().offset >= 0


def test_a_producer_counts_what_is_not_delivered(brokers: ScriptedBrokers) -> None:
    producer = producer_of(brokers)
    brokers.faults += [never_acknowledged] * 100
    for number in range(7):
        producer.send("flights", b"%d" % number, partition=1)
    assert producer.undelivered == 7
    with pytest.raises(ClosedError):
        producer.close(timeout_ms=100)
    assert producer.undelivered == 0


# What the asyncio clients have for the parts that they are made of, or for `async` alone.
_INTERNAL = {
    "Admin": {"start"},
    "Consumer": {"start", "fill_pending", "group_config", "reads_committed"},
    "Producer": {"start", "backoff_seconds", "initialized", "take_unobserved_errors", "undo"},
}


@pytest.mark.parametrize("name", _INTERNAL)
def test_a_blocking_client_has_the_methods_and_arguments_of_its_model(name: str) -> None:
    model, client = getattr(barnabas, name), getattr(barnabas.sync, name)
    public = {member for member in dir(model) if not member.startswith("_")}
    assert public - _INTERNAL[name] == {m for m in dir(client) if not m.startswith("_")}
    for member in public - _INTERNAL[name]:
        wanted = getattr(model, member)
        if callable(wanted):
            arguments = inspect.signature(wanted).parameters
            assert list(inspect.signature(getattr(client, member)).parameters.values()) == list(
                arguments.values()
            ), member


def test_unreachable_cluster_fails_in_seconds() -> None:
    runtime = ScriptedBrokers().runtime
    for open_client in (
        lambda: Producer("nowhere:1", runtime=runtime),
        lambda: Admin("nowhere:1", runtime=runtime),
        lambda: Consumer("flights", bootstrap_servers="nowhere:1", runtime=runtime),
    ):
        with pytest.raises(NoBrokerReachableError, match="nowhere:1"):
            open_client()


def test_a_call_after_the_background_loop_has_ended_does_not_wait_for_it() -> None:
    thread = LoopThread()

    async def answer() -> int:
        return 1

    assert thread.call(answer()) == 1
    thread.stop()
    with pytest.raises(ClientError, match="the program is ending"):
        thread.call(answer())


def test_admin_describes(brokers: ScriptedBrokers) -> None:
    with Admin(brokers.bootstrap, runtime=brokers.runtime) as admin:
        assert [b.broker_id for b in admin.describe_cluster().brokers] == [1, 2, 3]
        assert admin.list_topics() == ["flights"]
        assert len(admin.describe_topics()[0].partitions) == 2
        with pytest.raises(UnknownTopicOrPartitionError, match="nowhere"):
            admin.describe_topics(["nowhere"])


def test_blocking_call_in_a_callback_is_refused(
    brokers: ScriptedBrokers, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), producer_of(brokers) as producer:
        producer.send("flights", b"v", on_delivery=lambda m, e: producer.flush())
        producer.flush()
    assert "not possible in an on_delivery callback" in caplog.text


def test_a_callback_cannot_end_the_background_loop(
    brokers: ScriptedBrokers, caplog: pytest.LogCaptureFixture
) -> None:
    def end(metadata: object, failure: object) -> None:
        raise SystemExit(7)

    with caplog.at_level(logging.ERROR), producer_of(brokers) as producer:
        producer.send("flights", b"v", on_delivery=end)
        producer.flush()
        assert producer.send_and_wait("flights", b"v", partition=0).offset >= 0
    assert "a callback tried to end the program" in caplog.text


def test_a_flush_waits_for_no_record_that_another_thread_sends_after_it(
    brokers: ScriptedBrokers,
) -> None:
    """The queue is never empty while others send: a flush did not return."""
    done = threading.Event()
    with producer_of(brokers) as producer:

        def send() -> None:
            while not done.is_set():
                producer.send("flights", b"v")

        senders = [threading.Thread(target=send) for _ in range(2)]
        for sender in senders:
            sender.start()
        handle = producer.send("flights", b"last before the flush")
        flush = threading.Thread(target=producer.flush)
        flush.start()
        flush.join(timeout=20)
        returned, delivered = not flush.is_alive(), handle.done()
        done.set()
        for thread in (*senders, flush):
            thread.join()
    assert returned and delivered


@pytest.mark.usefixtures("short_grace")
def test_records_to_a_topic_that_does_not_exist_are_refused_together(
    brokers: ScriptedBrokers,
) -> None:
    """Each was looked up for two seconds: a flush of some thousands took hours."""
    with producer_of(brokers) as producer:
        handles = [producer.send("flihgts", b"v") for _ in range(1_000)]
        producer.send("flights", b"v").result(20)
        for handle in handles:
            with pytest.raises(UnknownTopicOrPartitionError, match="flihgts"):
                handle.result(5)
        asked = brokers.metadata_requests
        with pytest.raises(UnknownTopicOrPartitionError):
            producer.send("flihgts", b"v").result(20)
        assert brokers.metadata_requests > asked, "it may have been created meanwhile"


def test_a_stream_of_events_ends_when_another_thread_closes_its_client(
    brokers: ScriptedBrokers,
) -> None:
    admin = Admin(brokers.bootstrap, runtime=brokers.runtime)
    closing = threading.Timer(0.5, admin.close)
    closing.start()
    with admin.events() as stream:
        for found in stream:
            assert "does not answer" in str(found), "these brokers have no events"
    closing.join()
