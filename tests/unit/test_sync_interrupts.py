"""The blocking clients: a wait that Ctrl-C ends, and use after a fork."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from barnabas.sync import Admin
from barnabas.sync.loop_thread import LoopThread
from barnabas_common.errors import ClientError, ClosedError
from barnabas_common.topic_partition import TopicPartition

from tests.support.blocking_clients import consumer_of, on_background_loop, producer_of
from tests.support.scripted_brokers import ScriptedBrokers, never_acknowledged

TP = TopicPartition("flights", 0)


@pytest.fixture
def brokers() -> Iterator[ScriptedBrokers]:
    with on_background_loop(ScriptedBrokers(partitions=2)) as brokers:
        yield brokers


def test_ctrl_c_ends_a_wait_and_leaves_the_consumer_usable(brokers: ScriptedBrokers) -> None:
    with consumer_of(brokers, "flights") as consumer:
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            consumer.poll()
        with producer_of(brokers) as producer:
            producer.send_and_wait("flights", b"v")
        assert [r.value for r in consumer.poll(timeout_ms=2_000)] == [b"v"]


@pytest.mark.parametrize("arrow", [False, True])
def test_what_ctrl_c_kept_from_the_caller_is_read_again(
    brokers: ScriptedBrokers, monkeypatch: pytest.MonkeyPatch, arrow: bool
) -> None:
    """It may come when the records are there already: no commit may cover them."""
    with producer_of(brokers) as producer:
        for value in (b"a", b"b"):
            producer.send("flights", value, partition=0)
    with consumer_of(brokers, "flights") as consumer:
        poll = consumer.poll_arrow if arrow else consumer.poll
        with monkeypatch.context() as patch:
            patch.setattr(LoopThread, "call", interrupted_after(LoopThread.call))
            with pytest.raises(KeyboardInterrupt):
                poll(timeout_ms=2_000)
        assert consumer.position(TP) == 0
        assert [record.offset for record in consumer.poll(timeout_ms=2_000)] == [0, 1]


def interrupted_after(call: Callable[..., Any]) -> Callable[..., Any]:
    def interrupted(*arguments: Any) -> None:
        call(*arguments)
        raise KeyboardInterrupt

    return interrupted


def test_ctrl_c_while_a_producer_closes_ends_it_nevertheless(brokers: ScriptedBrokers) -> None:
    producer = producer_of(brokers)
    brokers.faults += [never_acknowledged] * 100
    handle = producer.send("flights", b"v")
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        producer.close()
    with pytest.raises(ClosedError):
        handle.result(timeout=5)
    with pytest.raises(ClosedError):
        producer.flush()


def test_use_after_fork_says_so(brokers: ScriptedBrokers, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = producer_of(brokers)
    parent = os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: parent + 1)
        with pytest.raises(ClientError, match="forked"):
            producer.send("flights", b"v")
    producer.close()


def test_a_handle_that_is_waited_for_after_a_fork_says_so(
    brokers: ScriptedBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child has no thread that could ever answer."""
    brokers.faults += [never_acknowledged] * 100
    producer = producer_of(brokers)
    handle = producer.send("flights", b"v")
    parent = os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: parent + 1)
        with pytest.raises(ClientError, match="forked"):
            handle.result(timeout=1)
    producer.close(timeout_ms=0)


def test_a_stream_of_events_that_is_left_after_a_fork_says_so(
    brokers: ScriptedBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = os.getpid()
    with Admin(brokers.bootstrap, runtime=brokers.runtime) as admin:
        stream = admin.events()
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: parent + 1)
            with pytest.raises(ClientError, match="forked"):
                stream.__exit__(None, None, None)
