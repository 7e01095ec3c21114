"""Calls end in the time that they are given while brokers stand still."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from barnabas import Admin, ConfigResource, Consumer, Producer
from barnabas_common.errors import BarnabasError
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.topic_partition import TopicPartition

from tests.support.group_stories import story
from tests.support.scripted_group import GroupBrokers

TP = TopicPartition("flights", 0)
BROKER = ConfigResource.broker(1)
LIMIT_MS, REQUEST_MS = 300, 5_000
# A broker that is asked when the time is over gets 0.1 s. The last pause may be left out.
LEAST_SECONDS, MOST_SECONDS = 0.15, 0.3 + 3 * 0.1 + 0.05


async def silent(_broker_id: int, _request: Any) -> Any:
    await asyncio.Event().wait()


async def fails_in_time(call: Awaitable[object]) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(BarnabasError):
        await call
    assert LEAST_SECONDS < loop.time() - began < MOST_SECONDS


def silenced(brokers: GroupBrokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on brokers answer nothing but what the metadata is."""
    handle = brokers._handle

    async def only_metadata(broker_id: int, request: Any) -> Any:
        known = isinstance(request, MetadataRequest)
        return await (handle if known else silent)(broker_id, request)

    monkeypatch.setattr(brokers, "_handle", only_metadata)


def test_end_offsets_of_a_consumer() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with Consumer(
            bootstrap_servers=brokers.bootstrap,
            runtime=brokers.runtime_of("consumer"),
            request_timeout_ms=REQUEST_MS,
            default_api_timeout_ms=LIMIT_MS,
        ) as consumer:
            brokers.offset_faults = [silent] * 10
            await fails_in_time(consumer.end_offsets([TP]))

    story(scenario)


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.list_offsets({TP: -1}),
        lambda admin: admin.list_groups(),
        lambda admin: admin.list_transactions(),
        lambda admin: admin.describe_configs("flights"),
        lambda admin: admin.describe_broker_configs(1),
        lambda admin: admin.incremental_alter_configs(BROKER, {"log.retention.ms": "1000"}),
    ],
    ids=["offsets", "groups", "transactions", "topic configs", "broker configs", "alter configs"],
)
def test_what_an_administrator_asks(
    call: Callable[[Admin], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with Admin(
            brokers.bootstrap,
            runtime=brokers.runtime_of("admin"),
            request_timeout_ms=REQUEST_MS,
            default_api_timeout_ms=LIMIT_MS,
        ) as admin:
            await admin.describe_topic("flights")
            silenced(brokers, monkeypatch)
            await fails_in_time(call(admin))

    story(scenario)


def test_a_send_to_a_topic_that_is_not_known_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime_of("producer"), max_block_ms=LIMIT_MS
        ) as producer:
            monkeypatch.setattr(brokers, "_handle", silent)
            await fails_in_time(producer.send("other", b"x"))

    story(scenario)


@pytest.mark.parametrize("silent_broker", [1, 2, 3])
def test_one_broker_that_stands_still_takes_the_time_of_one_call_at_most(
    silent_broker: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are asked too, even if it was the one that answered last."""

    async def scenario(brokers: GroupBrokers) -> None:
        handle = brokers._handle

        async def one_is_silent(broker_id: int, request: Any) -> Any:
            return await (silent if broker_id == silent_broker else handle)(broker_id, request)

        monkeypatch.setattr(brokers, "_handle", one_is_silent)
        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime_of("producer"), max_block_ms=LIMIT_MS
        ) as producer:
            led_by_another = next(
                tp for tp, log in brokers.logs.items() if log.leader != silent_broker
            )
            await producer.send_and_wait("flights", b"x", partition=led_by_another.partition)

    story(scenario)
