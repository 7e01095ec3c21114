"""A leader that has forgotten a producer takes any of its sequences."""

import asyncio
from typing import Any

from barnabas import Producer
from barnabas_common.errors.error_code import ErrorCode

from tests.support.scripted_brokers import ScriptedBrokers, refuse


async def test_a_batch_that_later_ones_have_overtaken_is_not_taken_for_stored() -> None:
    """It was refused; the later ones are stored all the same."""

    async def refuse_once_overtaken(broker_id: int, request: Any) -> Any:
        async with asyncio.timeout(5.0):
            while brokers.log().end < 2:
                await asyncio.sleep(0)
        return await refuse(ErrorCode.NOT_ENOUGH_REPLICAS)(broker_id, request)

    async with (
        ScriptedBrokers() as brokers,
        Producer(
            brokers.bootstrap,
            runtime=brokers.runtime,
            retry_backoff_ms=5,
            max_request_size=1_000,
            batch_size=400,
        ) as producer,
    ):
        await producer.send_and_wait("flights", b"first")
        brokers.log().producers.clear()  # as after `producer.id.expiration.ms`
        brokers.faults = [refuse_once_overtaken]
        sent = [b"%02d" % number + b"." * 300 for number in range(12)]
        handles = [await producer.send("flights", value) for value in sent]
        await producer.flush()
        for handle in handles:
            await handle
    stored = [record.value for record in brokers.log().records()]
    assert sorted(stored) == sorted([b"first", *sent])
