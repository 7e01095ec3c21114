"""A group costs nothing for each record: it works once for each poll, commit or heartbeat."""

import sys
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import pytest
from barnabas import Consumer

from tests.support.group_stories import PARTITIONS, member, settle, story, write
from tests.support.scripted_group import GroupBrokers

RECORDS = 20_000
# Heartbeats, automatic commits and the like, in all; one call for each record would be 20,000.
CALLS_OF_A_GROUP = 1_000


async def _poll(consumer: Consumer) -> None:
    count = 0
    while count < RECORDS:
        count += len(await consumer.poll())


async def _iterate(consumer: Consumer) -> None:
    count = 0
    async for _ in consumer:
        count += 1
        if count == RECORDS:
            return


async def calls_of(read: Callable[[Consumer], Awaitable[None]], consumer: Consumer) -> int:
    """How many functions of the client are called while the records are read."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        if event == "call" and "/client/barnabas/" in frame.f_code.co_filename:
            calls += 1

    sys.setprofile(count)
    try:
        await read(consumer)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("read", [_poll, _iterate])
def test_a_group_calls_nothing_for_each_record(
    read: Callable[[Consumer], Awaitable[None]],
) -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        calls = []
        for group in (None, "g"):
            async with member(brokers, group_id=group) as consumer:
                if group is None:
                    while not all(tp in consumer.assignment() for tp in PARTITIONS):
                        await consumer.poll(timeout_ms=50)
                else:
                    await settle(consumer)
                await consumer.seek_to_end()
                write(brokers, RECORDS // len(PARTITIONS))
                calls.append(await calls_of(read, consumer))
        without, within = calls
        assert without > 40, "the count sees the client"
        assert within - without < CALLS_OF_A_GROUP, calls

    story(scenario)
