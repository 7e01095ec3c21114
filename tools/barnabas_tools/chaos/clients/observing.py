"""An observer that records leaders and ISRs when they change, for the report."""

import asyncio
from collections.abc import Sequence

from barnabas import Admin
from barnabas_common.errors import BarnabasError
from barnabas_common.history.operations import PartitionState
from barnabas_common.history.recorder import Recorder

EVERY_SECONDS = 0.5


async def observe(
    recorder: Recorder, bootstrap: str, topics: Sequence[str], stop: asyncio.Event
) -> None:
    """Ask for the topics until `stop` is set."""
    known: dict[str, tuple[int, list[int]]] = {}
    while not stop.is_set():
        try:
            async with Admin(bootstrap) as admin:
                while not stop.is_set():
                    await _look(recorder, admin, topics, known)
                    await asyncio.sleep(EVERY_SECONDS)
        except BarnabasError:
            await asyncio.sleep(EVERY_SECONDS)


async def _look(
    recorder: Recorder,
    admin: Admin,
    topics: Sequence[str],
    known: dict[str, tuple[int, list[int]]],
) -> None:
    for topic in await admin.describe_topics(list(topics)):
        for found in topic.partitions:
            name = f"{topic.topic}-{found.partition}"
            state = (found.leader_id, sorted(found.in_sync_replicas))
            if known.get(name) != state:
                known[name] = state
                recorder.note(
                    PartitionState, partition=name, leader=state[0], in_sync_replicas=state[1]
                )
