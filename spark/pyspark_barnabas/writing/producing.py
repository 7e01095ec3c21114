"""The records of one task, sent by a producer."""

from collections.abc import Iterable

from barnabas import Producer

from pyspark_barnabas.writing.columns import Row


async def send(producer: Producer, rows: Iterable[Row]) -> None:
    """Deliver the rows. Raises the error of a record that was refused or given up.

    The producer stands still until the next call, when Spark has computed more rows. That may take
    longer than `delivery.timeout.ms`, so nothing may be left to deliver.
    """
    send_one = producer.send
    for topic, key, value, partition, headers in rows:
        await send_one(topic, value, key, partition, None, headers)
    await producer.flush()
    raise_given_up(producer)


def raise_given_up(producer: Producer) -> None:
    """Raise the first error of a record whose handle was not asked."""
    for error in producer.take_unobserved_errors():
        raise error
