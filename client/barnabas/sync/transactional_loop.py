"""The blocking `exactly_once`."""

import asyncio
from collections.abc import Callable, Sequence

from barnabas.cluster.options import check_callable
from barnabas.consumer import ConsumerRecord
from barnabas.sync.consumer import Consumer
from barnabas.sync.producer import Producer
from barnabas.transactional_loop import ProducerRecord, Results, check_kind, checked_results, run


def exactly_once(
    consumer: Consumer,
    producer: Producer,
    transform: Callable[[ConsumerRecord], Results],
    idle_ms: int | None = None,
) -> int:
    """`barnabas.exactly_once`; `transform` is called in a thread, one record after the other."""

    def every(records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        return [result for record in records for result in checked_results(transform(record))]

    async def transform_all(records: Sequence[ConsumerRecord]) -> Results:
        return await asyncio.to_thread(every, records)

    check_kind(consumer, Consumer)
    check_kind(producer, Producer)
    check_callable("transform", transform)
    return producer._call(run(consumer._client, producer._client, transform_all, idle_ms))
