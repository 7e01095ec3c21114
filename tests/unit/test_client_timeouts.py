"""Calls end in the time that they are given while brokers stand still."""

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas_common.errors import BarnabasError
from barnabas_common.topic_partition import TopicPartition

from tests.support.scripted_brokers import ScriptedBrokers, ScriptedLog

TP = TopicPartition("flights", 0)
LIMIT_MS, REQUEST_MS = 300, 5_000
MOST_SECONDS = 2.0


async def silent(broker_id: int, request: Any) -> Any:
    await asyncio.Event().wait()


async def fails_in_time(call: Awaitable[object]) -> None:
    began = time.monotonic()
    with pytest.raises(BarnabasError):
        await call
    assert time.monotonic() - began < MOST_SECONDS


async def test_end_offsets_of_a_consumer() -> None:
    async with (
        ScriptedBrokers() as brokers,
        Consumer(
            bootstrap_servers=brokers.bootstrap,
            runtime=brokers.runtime,
            request_timeout_ms=REQUEST_MS,
            default_api_timeout_ms=LIMIT_MS,
        ) as consumer,
    ):
        brokers.offset_faults = [silent] * 10
        await fails_in_time(consumer.end_offsets([TP]))


async def test_list_offsets_of_an_admin() -> None:
    async with (
        ScriptedBrokers() as brokers,
        Admin(
            brokers.bootstrap,
            runtime=brokers.runtime,
            request_timeout_ms=REQUEST_MS,
            default_api_timeout_ms=LIMIT_MS,
        ) as admin,
    ):
        brokers.offset_faults = [silent] * 10
        await fails_in_time(admin.list_offsets({TP: -1}))


async def test_send_to_a_topic_that_is_not_known_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        ScriptedBrokers() as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime, max_block_ms=LIMIT_MS) as producer,
    ):
        monkeypatch.setattr(brokers, "_handle", silent)
        await fails_in_time(producer.send("other", b"x"))


async def test_a_broker_that_took_all_the_time_is_asked_after_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        ScriptedBrokers() as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime, max_block_ms=LIMIT_MS) as producer,
    ):
        await producer.send_and_wait("flights", b"x")
        last = producer._cluster._answered_last
        handle = brokers._handle
        assert last is not None
        brokers.topic = "other"
        leader = next(one for one in brokers.brokers if f"broker-{one}" != last.host)
        brokers.logs = {TopicPartition("other", 0): ScriptedLog(leader)}

        async def one_is_silent(broker_id: int, request: Any) -> Any:
            if f"broker-{broker_id}" == last.host:
                await asyncio.Event().wait()
            return await handle(broker_id, request)

        monkeypatch.setattr(brokers, "_handle", one_is_silent)
        await fails_in_time(producer.send("other", b"x"))
        await producer.send_and_wait("other", b"x")
