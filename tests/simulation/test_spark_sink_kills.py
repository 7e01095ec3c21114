"""The exactly-once sink when a whole Spark application dies at any moment of a batch, and again."""

import asyncio
import random

import pytest
from pyspark_barnabas.writing.identity import Batch

from tests.simulation.test_spark_sink import Sink, play, values

BATCHES = 8
# A batch takes about half a second.
LATEST_KILL_SECONDS = 0.7


async def application(sink: Sink, batch: Batch) -> None:
    """Two tasks side by side, one of them twice, and the driver."""
    first, second, _ = await asyncio.gather(
        sink.write(batch, 0, task=10), sink.write(batch, 1, task=11), sink.write(batch, 1, task=12)
    )
    found = [m.transaction for m in (first, second) if m.transaction is not None]
    await sink.commit(batch, found)


async def killed(sink: Sink, batch: Batch, seconds: float) -> bool:
    """Whether the application was killed before its end."""
    before = sink._names
    running = asyncio.create_task(application(sink, batch))
    await asyncio.wait([running], timeout=seconds)
    if running.done():
        await running
        return False
    for number in range(before + 1, sink._names + 1):
        sink.cluster.network.kill(f"spark-{number}")
    running.cancel()
    await asyncio.wait([running])
    return True


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(4))
def test_every_batch_is_there_once_wherever_the_application_dies(seed: int) -> None:
    async def story(sink: Sink) -> None:
        chance = random.Random(seed)
        kills = 0
        for number in range(BATCHES):
            for run in ("a", "b"):
                batch = Batch("query", number, f"{number}-{run}")
                kills += await killed(sink, batch, chance.uniform(0.0, LATEST_KILL_SECONDS))
            await application(sink, Batch("query", number, f"{number}-c"))
        assert kills >= BATCHES / 2, "otherwise this tests little"
        wanted = [v for n in range(BATCHES) for v in values(Batch("query", n, ""))]
        assert await sink.visible() == sorted(wanted)
        assert await sink.nothing_is_open()

    play(story)
