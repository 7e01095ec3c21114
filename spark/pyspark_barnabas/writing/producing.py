"""The records of one task, sent by a producer."""

from collections.abc import Iterable

from barnabas import Producer

from pyspark_barnabas.writing.columns import Row


async def send(producer: Producer, rows: Iterable[Row]) -> None:
    """Send the rows. Raises the error of a record that was refused or given up."""
    send_one = producer.send
    for topic, key, value, partition, headers in rows:
        await send_one(topic, value, key, partition, None, headers)
    raise_given_up(producer)


async def deliver(producer: Producer) -> None:
    """Wait until everything is delivered; raises the error of a record that is not."""
    await producer.flush()
    raise_given_up(producer)


def raise_given_up(producer: Producer) -> None:
    """Raise the first error of a record whose handle was not asked."""
    for error in producer.take_unobserved_errors():
        raise error
