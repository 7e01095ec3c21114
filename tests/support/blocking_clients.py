"""Blocking clients, and scripted brokers for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from barnabas.sync import Consumer, Producer
from barnabas.sync.loop_thread import LoopThread

from tests.support.scripted_brokers import ScriptedBrokers

B = TypeVar("B", bound=ScriptedBrokers)


@contextmanager
def on_background_loop(brokers: B) -> Iterator[B]:
    """Run the brokers on the blocking clients' own background loop."""
    thread = LoopThread.shared()

    async def start() -> None:
        await brokers.__aenter__()

    thread.call(start())
    yield brokers
    thread.call(brokers.__aexit__())


def producer_of(brokers: ScriptedBrokers, **options: Any) -> Producer:
    return Producer(brokers.bootstrap, runtime=brokers.runtime, **options)


def consumer_of(brokers: ScriptedBrokers, *topics: str, **options: Any) -> Consumer:
    return Consumer(
        *topics,
        bootstrap_servers=brokers.bootstrap,
        runtime=brokers.runtime,
        **{"auto_offset_reset": "earliest", **options},
    )
