"""The phase at the end: everything is read, by new clients until one has come to the end.

A reader that gave up looks like a loss (Jepsen), so this one tries hard.
"""

import asyncio
from collections.abc import Mapping, Sequence

from barnabas import Admin, Consumer
from barnabas.consumer.config import ConsumerOptions
from barnabas_common.errors import BarnabasError
from barnabas_common.history.operations import UNKNOWN, Committed, FinalRead, Stage
from barnabas_common.history.recorder import Recorder
from barnabas_common.topic_partition import TopicPartition

from barnabas_tools.chaos.clients.reading import POLL_MS, as_records

ATTEMPT_SECONDS = 30.0
RETRY_SECONDS = 0.5
MOST_RECORDS = 5_000


async def read_finally(
    recorder: Recorder,
    bootstrap: str,
    partitions: Sequence[TopicPartition],
    acknowledged: Mapping[TopicPartition, int],
    options: ConsumerOptions,
    within: float = 60.0,
) -> bool:
    """Read every partition from its beginning to its end, and return whether that was possible.

    For half of the time the ends are awaited to pass the highest `acknowledged` offsets.
    """
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while (left := begun + within - loop.time()) > 0:
        settings: ConsumerOptions = {"auto_offset_reset": "earliest", **options}
        try:
            async with (
                asyncio.timeout(min(ATTEMPT_SECONDS, left)),
                Consumer(bootstrap_servers=bootstrap, **settings) as consumer,
            ):
                consumer.assign(partitions)
                ends = await _ends(consumer, acknowledged, begun + within / 2)
                begins = await consumer.beginning_offsets(partitions)
                await _read(recorder, consumer, ends, settings)
        except (BarnabasError, TimeoutError) as error:
            recorder.note(FinalRead, error=type(error).__name__)
            await asyncio.sleep(RETRY_SECONDS)
        else:
            bounds = {str(tp): (begins[tp], ends[tp]) for tp in partitions}
            recorder.note(FinalRead, bounds=bounds)
            return True
    return False


async def _ends(
    consumer: Consumer, acknowledged: Mapping[TopicPartition, int], until: float
) -> dict[TopicPartition, int]:
    loop = asyncio.get_running_loop()
    while True:
        ends = await consumer.end_offsets(consumer.assignment())
        late = loop.time() >= until
        if late or all(end > acknowledged.get(tp, UNKNOWN) for tp, end in ends.items()):
            return ends
        await asyncio.sleep(RETRY_SECONDS)


async def _read(
    recorder: Recorder,
    consumer: Consumer,
    ends: Mapping[TopicPartition, int],
    options: ConsumerOptions,
) -> None:
    is_committed = options.get("isolation_level") == "read_committed"
    await consumer.seek_to_beginning(*ends)
    while any([await consumer.position(tp) < end for tp, end in ends.items()]):
        polled = await consumer.poll(timeout_ms=POLL_MS, max_records=MOST_RECORDS)
        if polled:
            records = as_records(polled)
            recorder.note(FinalRead, records=records, read_committed=is_committed)


async def ask_for_commits(
    recorder: Recorder, bootstrap: str, groups: Sequence[str], within: float = 60.0
) -> None:
    """Record what each group has committed. Raises TimeoutError if one does not say in time."""
    async with asyncio.timeout(within), Admin(bootstrap) as admin:
        for group in groups:
            while not await _ask(recorder, admin, group):  # noqa: ASYNC110
                await asyncio.sleep(RETRY_SECONDS)


async def _ask(recorder: Recorder, admin: Admin, group: str) -> bool:
    asked = recorder.begin(Committed, group=group)
    try:
        found = await admin.list_group_offsets(group)
    except BarnabasError as error:
        recorder.end(asked, Stage.INFO, error=type(error).__name__)
        return False
    recorder.end(asked, offsets={str(tp): stored.offset for tp, stored in found.items()})
    return True
