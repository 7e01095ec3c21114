"""A close that is cancelled at any of its awaits, as by `asyncio.wait_for`, ends everything."""

import asyncio
from typing import Any

import pytest
from barnabas import Consumer, Producer
from barnabas.consumer.commits import Commits
from barnabas.group.heartbeats import Heartbeats
from barnabas.group.member import GroupMember
from barnabas.group.waiting import RebalanceWait

from tests.support.group_stories import member, settle, story
from tests.support.scripted_brokers import ScriptedBrokers
from tests.support.scripted_group import GroupBrokers

# The longest of these closes takes about 40 steps of the event loop.
STEPS = range(1, 60)
OURS = (
    "channel",
    "cluster",
    "consumer",
    "positions",
    "producer",
    "member",
    "group",
    "heart",
    "commit",
)


async def _cancelled_after(steps: int, client: Consumer | Producer) -> None:
    closing = asyncio.ensure_future(client.close())
    for _ in range(steps):
        await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    await asyncio.sleep(0)  # what is cancelled without a wait ends now


def _running() -> set[asyncio.Task[object]]:
    tasks = asyncio.all_tasks()
    return {task for task in tasks if task.get_name().startswith(OURS)}


@pytest.mark.parametrize("kind", [Consumer, Producer])
async def test_of_a_client(kind: type[Consumer] | type[Producer]) -> None:
    """Fetches, and the connections to all brokers, went on until the program ended."""
    async with ScriptedBrokers(partitions=3) as brokers:
        servers, runtime = brokers.bootstrap, brokers.runtime
        for steps in STEPS:
            client: Consumer | Producer
            if kind is Consumer:
                client = Consumer("flights", bootstrap_servers=servers, runtime=runtime)
                await client.start()
            else:
                client = Producer(servers, runtime=runtime)
                await client.send_and_wait("flights", b"v")
            await _cancelled_after(steps, client)
            assert not _running(), f"after {steps} steps"


@pytest.mark.parametrize("part", [RebalanceWait, Heartbeats, GroupMember, Commits])
def test_of_a_member_of_a_group(part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cancellation comes while this part of it is closed. Its heartbeats went on."""
    close = part.close

    async def cancelled(self: Any) -> None:
        current = asyncio.current_task()
        assert current is not None
        asyncio.get_running_loop().call_soon(current.cancel)
        await close(self)

    async def scenario(brokers: GroupBrokers) -> None:
        consumer = member(brokers)
        await consumer.start()
        await settle(consumer)
        monkeypatch.setattr(part, "close", cancelled)
        await asyncio.gather(asyncio.ensure_future(consumer.close()), return_exceptions=True)
        await asyncio.sleep(0)
        assert not _running()

    story(scenario)
