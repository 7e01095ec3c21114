"""The exactly-once sink when its topic of decisions is not what the sink created, or changes."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pytest
from barnabas import Admin
from barnabas_common.topic_partition import TopicPartition
from pyspark_barnabas.writing.columns import ColumnError
from pyspark_barnabas.writing.decision_log import Cache
from pyspark_barnabas.writing.decisions_topic import DecisionsTopicError
from pyspark_barnabas.writing.driver import Driver
from pyspark_barnabas.writing.identity import Attempt, Batch
from pyspark_barnabas.writing.options import WriteOptions
from pyspark_barnabas.writing.task import Prepared, TaskWriter

from tests.simulation.test_spark_sink import AGAIN, FIRST, Sink, play, values

TOPIC = WriteOptions.decisions_topic
SOUND = {"cleanup.policy": "compact", "min.compaction.lag.ms": "3600000"}


def admin_of(sink: Sink) -> Admin:
    return Admin(sink.cluster.bootstrap, runtime=sink.cluster.client_runtime("admin-3"))


async def delete(sink: Sink) -> None:
    async with admin_of(sink) as admin:
        await admin.delete_topics([TOPIC])
        async with asyncio.timeout(60):
            while TOPIC in await admin.list_topics():
                await asyncio.sleep(0.5)


def test_a_decision_is_found_after_partitions_were_added_to_its_topic() -> None:
    async def story(sink: Sink) -> None:
        prepared = await sink.write_all(FIRST)
        await sink.decide(FIRST, prepared)
        async with admin_of(sink) as admin:
            await admin.create_partitions(TOPIC, 37)
        again = await sink.write_all(AGAIN)
        assert again == [], "the batch is decided"
        await sink.commit(AGAIN, again)
        assert await sink.visible() == values(FIRST)
        assert await sink.nothing_is_open()

    play(story)


@pytest.mark.parametrize(
    ("partitions", "replicas", "configs", "words"),
    [
        (16, 3, {"cleanup.policy": "delete"}, "cleanup.policy is delete"),
        (1, 3, SOUND, "1 partitions and needs 16"),
        (16, 1, SOUND, "1 replicas and needs 3"),
        (16, 3, {"cleanup.policy": "compact"}, "min.compaction.lag.ms is 0"),
    ],
)
def test_a_topic_that_may_lose_decisions_is_refused_before_anything_is_written(
    partitions: int, replicas: int, configs: Mapping[str, str], words: str
) -> None:
    async def story(sink: Sink) -> None:
        async with admin_of(sink) as admin:
            settings = {"min.insync.replicas": "2" if replicas > 1 else "1"}
            await admin.create_topic(TOPIC, partitions, replicas, configs=settings | dict(configs))
        with pytest.raises(DecisionsTopicError, match=words):
            await sink.write(FIRST, 0)
        with pytest.raises(DecisionsTopicError, match=words):
            await sink.commit(FIRST, [])
        assert await sink.nothing_is_open()

    play(story)


def test_a_topic_that_has_lost_its_first_records_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(sink: Sink) -> None:
        prepared = await sink.write_all(FIRST)
        driver = sink.driver(FIRST)

        async def begins(partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
            return dict.fromkeys(partitions, 5)

        monkeypatch.setattr(driver._log._consumer, "beginning_offsets", begins)
        with pytest.raises(DecisionsTopicError, match="records before offset 5 were deleted"):
            await driver.__aenter__()
        await sink.commit(FIRST, prepared)
        assert await sink.visible() == values(FIRST)

    play(story)


def test_a_topic_deleted_while_a_batch_is_written_decides_nothing_and_leaves_nothing_open() -> None:
    async def story(sink: Sink) -> None:
        prepared = await sink.write_all(FIRST)
        await delete(sink)
        with pytest.raises(DecisionsTopicError, match="no claim of spark-query-run-a-0-0"):
            await sink.commit(FIRST, prepared)
        assert await sink.visible() == []
        assert await sink.nothing_is_open()
        await sink.commit(AGAIN, await sink.write_all(AGAIN))
        assert await sink.visible() == values(AGAIN)

    play(story)


def test_a_batch_is_not_left_out_if_its_decision_is_lost_after_its_tasks_have_found_it() -> None:
    """They have written nothing: there is nothing that could be committed instead."""

    async def story(sink: Sink) -> None:
        await sink.decide(FIRST, await sink.write_all(FIRST))
        found = await sink.write(AGAIN, 0)
        assert found == Prepared(AGAIN, decided=True)
        await delete(sink)
        async with sink.driver(AGAIN) as driver:
            with pytest.raises(
                DecisionsTopicError, match="no commit of .*, which a task has found"
            ):
                await driver.commit([], found.decided)
        assert len(await sink.write_all(FIRST._replace(run="run-c"))) == 2, "the next run writes it"

    play(story)


class OneProcess(Sink):
    """Tasks and drivers that share a memory, as those of one Python worker."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(sink.cluster)
        self._cache: Cache = {}

    def task(self, batch: Batch, partition: int, task: int = 0) -> TaskWriter:
        attempt = Attempt(batch, partition, task or partition + 1)
        return TaskWriter(self.options, attempt, self._runtime(), self._cache)  # type: ignore[arg-type]

    def driver(self, batch: Batch) -> Driver:
        return Driver(self.options, batch, self._runtime(), self._cache)  # type: ignore[arg-type]


def test_a_topic_created_again_is_read_from_its_start() -> None:
    async def story(cold: Sink) -> None:
        sink = OneProcess(cold)
        await sink.commit(FIRST, await sink.write_all(FIRST))
        await delete(sink)
        following = FIRST._replace(batch_id=8)
        await cold.write_all(following, tasks=6)  # in the new topic, beyond the old end
        again = AGAIN._replace(batch_id=8)
        await sink.commit(again, await sink.write_all(again))
        assert await sink.visible() == sorted(values(FIRST) + values(again))
        assert await sink.nothing_is_open()

    play(story)


def test_what_an_earlier_run_left_open_under_another_prefix_is_aborted() -> None:
    async def story(sink: Sink) -> None:
        await sink.write_all(FIRST, tasks=3)
        renamed = Sink(sink.cluster)
        renamed.options = WriteOptions(sink.cluster.bootstrap, "orders", True, prefix="other")
        renamed._names = 100
        await renamed.commit(AGAIN, await renamed.write_all(AGAIN))
        assert await renamed.visible() == values(AGAIN)
        assert await renamed.nothing_is_open()

    play(story)


def test_the_topic_is_created_while_the_first_broker_is_away() -> None:
    async def story(sink: Sink) -> None:
        sink.cluster.kill(1)
        # The settings of a dead broker cannot be asked for; the topic waits for its replicas.
        writing = asyncio.create_task(sink.write_all(FIRST))
        await asyncio.sleep(20.0)
        sink.cluster.start_broker(1)
        await sink.cluster.serving()
        await sink.commit(FIRST, await writing)
        assert await sink.visible() == values(FIRST)
        assert await sink.nothing_is_open()

    play(story)


def test_a_row_for_the_topic_of_decisions_is_refused_and_the_next_batch_is_decided() -> None:
    """In a prepared transaction it would hide every later decision of that partition, also the one
    that is to end the transaction."""

    async def story(sink: Sink) -> None:
        sink.options = replace(sink.options, topic=None)
        writer = sink.task(FIRST, 0)
        assert await writer.open()
        batch = pa.RecordBatch.from_pydict({"value": ["1", "2"], "topic": ["orders", TOPIC]})
        with pytest.raises(ColumnError, match=f"a row is for '{TOPIC}'"):
            await writer.send_batch(batch)
        await writer.close()
        await sink.commit(AGAIN, await sink.write_all(AGAIN))
        assert await sink.visible() == values(AGAIN)
        assert await sink.nothing_is_open()

    play(story)
