"""A transactional producer, what it sends, and the scripted brokers that it sends it to."""

from collections.abc import Awaitable, Callable
from typing import Any

from barnabas import Producer
from barnabas_common.record.batch import batches
from barnabas_simulator.loop import run

from tests.support.scripted_transactions import TransactionBrokers

Scenario = Callable[[TransactionBrokers], Awaitable[None]]


def story(scenario: Scenario, partitions: int = 3) -> None:
    """Play a scenario on brokers whose topic `flights` has so many partitions."""

    async def tell() -> None:
        async with TransactionBrokers(partitions=partitions) as brokers:
            await scenario(brokers)

    run(tell(), seed=1, max_time=300.0)


def producer_of(brokers: TransactionBrokers, name: str = "p", **options: Any) -> Producer:
    return Producer(
        brokers.bootstrap,
        runtime=brokers.runtime_of(name),
        **{"transactional_id": "copy", "client_id": name, **options},
    )


async def send(producer: Producer, *values: bytes) -> list[Any]:
    """One record to each partition in turn."""
    return [
        await producer.send("flights", value, partition=number % 3)
        for number, value in enumerate(values)
    ]


def epochs(brokers: TransactionBrokers, partition: int = 0) -> list[tuple[int, int]]:
    """Epoch and first sequence of every batch of a partition."""
    found = [header for _, header in batches(bytes(brokers.log(partition).data))]
    assert all(header.is_transactional for header in found)
    return [(header.producer_epoch, header.base_sequence) for header in found]
