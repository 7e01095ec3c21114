"""Many batches in one request that the leader does not take together: one by one, each once."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from barnabas import Producer
from barnabas.producer import DeliveryHandle
from barnabas_common.errors import MessageTooLargeError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProduceRequest
from barnabas_common.record.batch import batches

from tests.support.scripted_brokers import ScriptedBrokers, refuse

RECORDS = 30
"""Each fills a batch of about 70 bytes. A leader remembers five of them."""
MAY_BE_STORED = refuse(ErrorCode.REQUEST_TIMED_OUT)
VALUES = [b"%03d" % number for number in range(RECORDS)]


def keep_only(records: bytes, count: int) -> bytes:
    """The first of the batches, as a follower has them when their leader dies."""
    return b"".join(
        records[position : position + header.size]
        for position, header in [*batches(records)][:count]
    )


def store_and_shrink(
    brokers: ScriptedBrokers, stored: int, max_append: int, max_batch: int = 1 << 30
) -> Callable[[int, ProduceRequest], Any]:
    """A fault: the next leader has `stored` of the batches, and less room for a request."""

    async def fault(broker_id: int, request: ProduceRequest) -> Any:
        log = brokers.log()
        records = keep_only(request.partitions[0].records, stored)
        if records:
            log.append(records)
        log.max_append, log.max_batch = max_append, max_batch
        return await MAY_BE_STORED(broker_id, request)

    return fault


@asynccontextmanager
async def sending(
    brokers: ScriptedBrokers, *faults: Any, idempotent: bool = True
) -> AsyncIterator[tuple[Producer, list[DeliveryHandle]]]:
    """A producer whose records all wait for one request, which meets the first of the faults."""
    held, release = asyncio.Event(), asyncio.Event()

    async def hold(broker_id: int, request: Any) -> None:
        held.set()
        await release.wait()

    async with Producer(
        brokers.bootstrap, runtime=brokers.runtime, batch_size=64,
        retry_backoff_ms=5, retry_backoff_max_ms=20, enable_idempotence=idempotent,
    ) as producer:  # fmt: skip
        await producer.send_and_wait("flights", b"first")
        brokers.faults += [hold, *faults]
        handles = [await producer.send("flights", b"before", partition=0)]
        await held.wait()
        handles += [await producer.send("flights", value, partition=0) for value in VALUES]
        release.set()
        yield producer, handles


def values(brokers: ScriptedBrokers) -> list[bytes | None]:
    return [record.value for record in brokers.log().records()]


async def offsets(handles: list[DeliveryHandle]) -> list[int]:
    return [(await handle).offset for handle in handles]


@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_share_larger_than_a_segment_is_sent_batch_by_batch(idempotent: bool) -> None:
    async with ScriptedBrokers() as brokers:
        brokers.log().max_append = 200
        async with sending(brokers, idempotent=idempotent) as (producer, handles):
            assert await offsets(handles) == list(range(1, RECORDS + 2))
            assert producer.metrics().epochs_started == 0
        assert values(brokers) == [b"first", b"before", *VALUES]


@pytest.mark.parametrize("max_append", [80, 200, 1 << 30])
@pytest.mark.parametrize("stored", [*range(9), 15, 24, 25, 26, 27, 28, 29, 30])
async def test_a_share_that_may_be_stored_is_stored_once_though_it_is_too_large_now(
    stored: int, max_append: int
) -> None:
    async with ScriptedBrokers() as brokers:
        lost = store_and_shrink(brokers, stored, max_append)
        async with sending(brokers, lost) as (producer, handles):
            assert await offsets(handles) == list(range(1, RECORDS + 2))
            assert producer.metrics().epochs_started == 0
        assert values(brokers) == [b"first", b"before", *VALUES]


@pytest.mark.parametrize("stored", [0, 3, 12, 30])
async def test_a_share_that_may_be_stored_is_stored_once_though_its_batches_are_too_large_now(
    stored: int,
) -> None:
    async with ScriptedBrokers() as brokers:
        lost = store_and_shrink(brokers, stored, 200, max_batch=40)
        async with sending(brokers, lost) as (_, handles):
            assert await offsets(handles[: stored + 1]) == list(range(1, stored + 2))
            for handle in handles[stored + 1 :]:
                with pytest.raises(MessageTooLargeError):
                    await handle
        assert values(brokers) == [b"first", b"before", *VALUES[:stored]]


@pytest.mark.parametrize("stored", [0, 12, 30])
async def test_after_an_error_of_unknown_effect_each_batch_is_stored_once(stored: int) -> None:
    async with ScriptedBrokers() as brokers:
        lost = store_and_shrink(brokers, stored, 1 << 30)
        unknown = refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
        async with sending(brokers, lost, unknown) as (_, handles):
            assert await offsets(handles) == list(range(1, RECORDS + 2))
        assert values(brokers) == [b"first", b"before", *VALUES]


async def test_a_leader_that_misses_an_earlier_batch_gets_a_new_epoch() -> None:
    async with ScriptedBrokers() as brokers:

        async def lose_what_is_stored(broker_id: int, request: ProduceRequest) -> Any:
            for state in brokers.log().producers.values():
                state.window = state.window[:1]
            brokers.log().max_append = 200
            return await MAY_BE_STORED(broker_id, request)

        async with sending(brokers, lose_what_is_stored) as (producer, handles):
            await offsets(handles)
            assert producer.metrics().epochs_started == 1
        assert values(brokers) == [b"first", b"before", *VALUES]
