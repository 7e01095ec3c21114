"""The protocol of the exactly-once sink on a whole cluster, without Spark: tasks and drivers that
die, run twice, or come late."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from barnabas import Admin, PreparedTransaction
from barnabas_common.errors import BarnabasError, ProducerFencedError
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run
from pyspark_barnabas.writing.columns import Row
from pyspark_barnabas.writing.decision_log import DecisionLog
from pyspark_barnabas.writing.driver import Driver, SupersededDriver
from pyspark_barnabas.writing.identity import Attempt, Batch
from pyspark_barnabas.writing.options import WriteOptions
from pyspark_barnabas.writing.records import Decision, JobState, Slot, transactional_id
from pyspark_barnabas.writing.task import AbandonedAttempt, Prepared, TaskWriter

from tests.support.raw_transactions import SETTINGS
from tests.support.transactional_data import read

PARTITIONS = [TopicPartition("orders", number) for number in range(3)]
FIRST = Batch("query", 7, "run-a")
AGAIN = Batch("query", 7, "run-b")
Story = Callable[["Sink"], Awaitable[None]]


class Sink:
    """Tasks and drivers, each with a memory of its own."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.options = WriteOptions(cluster.bootstrap, "orders", True)
        self._names = 0

    def _runtime(self) -> object:
        self._names += 1
        return self.cluster.client_runtime(f"spark-{self._names}")

    def task(self, batch: Batch, partition: int, task: int = 0) -> TaskWriter:
        attempt = Attempt(batch, partition, task or partition + 1)
        return TaskWriter(self.options, attempt, self._runtime(), {})  # type: ignore[arg-type]

    def driver(self, batch: Batch) -> Driver:
        return Driver(self.options, batch, self._runtime(), {})  # type: ignore[arg-type]

    async def write(self, batch: Batch, partition: int, task: int = 0) -> Prepared:
        """One attempt from its start to its message; a record for each partition of the topic."""
        writer = self.task(batch, partition, task)
        if not await writer.open():
            await writer.close()
            return Prepared(batch, decided=True)
        await writer.send(rows(batch, partition))
        message = await writer.prepare()
        await writer.close()
        return message

    async def write_all(self, batch: Batch, tasks: int = 2) -> list[PreparedTransaction]:
        messages = [await self.write(batch, number) for number in range(tasks)]
        return [m.transaction for m in messages if m.transaction is not None]

    async def commit(self, batch: Batch, transactions: Sequence[PreparedTransaction]) -> None:
        async with self.driver(batch) as driver:
            await driver.commit(transactions)

    async def decide(self, batch: Batch, transactions: Sequence[PreparedTransaction]) -> None:
        """A driver that dies when its decision is durable."""
        async with self.driver(batch) as driver:
            await driver._decide(Decision(batch, True, tuple(transactions)))

    async def visible(self) -> list[bytes]:
        await asyncio.sleep(2.0)
        return sorted(await read(self.cluster, PARTITIONS))

    async def nothing_is_open(self) -> bool:
        runtime = self.cluster.client_runtime("admin-2")
        async with Admin(self.cluster.bootstrap, runtime=runtime) as admin:
            return await admin.list_transactions(states=["Ongoing"]) == []


def rows(batch: Batch, partition: int) -> list[Row]:
    return [
        Row("orders", None, b"%d-%d-%d" % (batch.batch_id, partition, number), number, ())
        for number in range(3)
    ]


def values(batch: Batch, tasks: int = 2) -> list[bytes]:
    return sorted(row.value or b"" for p in range(tasks) for row in rows(batch, p))


def play(story: Story) -> None:
    async def scenario() -> None:
        cluster = SimulatedCluster(1, config=SETTINGS)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("orders", partitions=3, replication_factor=3)
        await story(Sink(cluster))

    run(scenario(), seed=1, max_time=4000.0)


def test_a_batch_is_visible_after_its_commit_and_its_slots_serve_the_next() -> None:
    async def story(sink: Sink) -> None:
        first = await sink.write_all(FIRST)
        assert await sink.visible() == []
        await sink.commit(FIRST, first)
        following = FIRST._replace(batch_id=8)
        second = await sink.write_all(following)
        assert [p.transactional_id for p in second] == [p.transactional_id for p in first]
        await sink.commit(following, second)
        assert await sink.visible() == sorted(values(FIRST) + values(following))
        assert await sink.nothing_is_open()

    play(story)


@pytest.mark.parametrize("completed", [0, 1, 2])
def test_a_batch_that_is_decided_is_completed_and_not_written_again(completed: int) -> None:
    async def story(sink: Sink) -> None:
        prepared = await sink.write_all(FIRST)
        await sink.decide(FIRST, prepared)
        runtime = sink.cluster.client_runtime("dying")
        async with Admin(sink.cluster.bootstrap, runtime=runtime) as admin:
            for transaction in prepared[:completed]:
                await admin.complete_transaction(transaction, commit=True)
        if completed == 1:
            await asyncio.sleep(1000.0)  # longer than transaction.max.timeout.ms
        sink.cluster.kill(1)
        again = await sink.write_all(AGAIN)
        assert again == []
        await sink.commit(AGAIN, again)
        assert await sink.visible() == values(FIRST)
        sink.cluster.start_broker(1)
        await sink.cluster.serving()
        assert await sink.nothing_is_open()

    play(story)


def test_a_batch_that_is_not_decided_is_written_again_and_the_first_attempts_are_aborted() -> None:
    async def story(sink: Sink) -> None:
        await sink.write_all(FIRST, tasks=5)  # more tasks than the next attempt has
        await sink.commit(AGAIN, await sink.write_all(AGAIN))
        assert await sink.visible() == values(AGAIN)
        assert await sink.nothing_is_open()

    play(story)


def test_two_attempts_of_a_task_use_different_slots_and_the_driver_aborts_the_other() -> None:
    async def story(sink: Sink) -> None:
        chosen = await sink.write_all(FIRST)
        speculative = await sink.write(FIRST, 0, task=99)
        assert speculative.transaction is not None
        assert speculative.transaction.transactional_id != chosen[0].transactional_id
        await sink.commit(FIRST, chosen)
        assert await sink.visible() == values(FIRST)
        assert await sink.nothing_is_open()

    play(story)


def test_an_attempt_that_comes_late_writes_nothing() -> None:
    async def story(sink: Sink) -> None:
        chosen = await sink.write_all(FIRST)
        early = sink.task(FIRST, 0, task=99)
        assert await early.open()
        await sink.commit(FIRST, chosen)
        with pytest.raises(BarnabasError):
            await early.send(rows(FIRST, 0))
            await early.prepare()
        await early.close()
        late = sink.task(FIRST, 1, task=100)
        assert not await late.open()
        await late.close()
        assert await sink.visible() == values(FIRST)
        assert await sink.nothing_is_open()

    play(story)


@pytest.mark.parametrize("claimed", [False, True])
def test_an_attempt_that_is_overtaken_before_it_has_an_epoch_writes_nothing(claimed: bool) -> None:
    """It has read that nothing is decided; the driver ends the batch before its InitProducerId."""

    async def story(sink: Sink) -> None:
        chosen = await sink.write_all(FIRST)
        late = sink.task(FIRST, 0, task=99)
        claim = late._claim

        async def overtaken(log: DecisionLog, state: JobState) -> Slot | None:
            slot = await claim(log, state) if claimed else None
            await sink.commit(FIRST, chosen)
            return slot or await claim(log, state)

        late._claim = overtaken  # type: ignore[method-assign]
        assert not await late.open()
        await late.close()
        assert await sink.visible() == values(FIRST)
        assert await sink.nothing_is_open()

    play(story)


@pytest.mark.parametrize("claimed", [False, True])
def test_a_late_attempt_leaves_alone_what_the_next_batch_has_prepared(claimed: bool) -> None:
    async def story(sink: Sink) -> None:
        following = FIRST._replace(batch_id=8)
        prepared: list[PreparedTransaction] = []
        late = sink.task(FIRST, 0, task=99)
        claim = late._claim

        async def overtaken(log: DecisionLog, state: JobState) -> Slot | None:
            slot = await claim(log, state) if claimed else None
            await sink.commit(FIRST, await sink.write_all(FIRST))
            prepared.extend(await sink.write_all(following))
            return slot or await claim(log, state)

        late._claim = overtaken  # type: ignore[method-assign]
        assert not await late.open()
        await late.close()
        await sink.commit(following, prepared)
        assert await sink.visible() == sorted(values(FIRST) + values(following))
        assert await sink.nothing_is_open()

    play(story)


def test_an_aborted_run_is_over_and_the_next_one_writes_the_batch() -> None:
    async def story(sink: Sink) -> None:
        await sink.write(FIRST, 0)
        async with sink.driver(FIRST) as driver:
            await driver.abort()
        late = sink.task(FIRST, 1)
        with pytest.raises(AbandonedAttempt):
            await late.open()
        await late.close()
        assert await sink.nothing_is_open()
        await sink.commit(AGAIN, await sink.write_all(AGAIN))
        assert await sink.visible() == values(AGAIN)

    play(story)


def test_an_abort_after_the_decision_changes_nothing() -> None:
    async def story(sink: Sink) -> None:
        prepared = await sink.write_all(FIRST)
        await sink.decide(FIRST, prepared)
        async with sink.driver(FIRST) as driver:
            await driver.abort()
        await sink.commit(AGAIN, [])
        assert await sink.visible() == values(FIRST)

    play(story)


def test_an_older_driver_is_fenced_and_its_decision_does_not_count_twice() -> None:
    async def story(sink: Sink) -> None:
        old = await sink.write_all(FIRST)
        zombie = sink.driver(FIRST)
        await zombie.__aenter__()
        new = await sink.write_all(AGAIN)
        await sink.commit(AGAIN, new)
        with pytest.raises(ProducerFencedError):
            await zombie._decide(Decision(FIRST, True, tuple(old)))
        await zombie.__aexit__(None, None, None)
        assert await sink.visible() == values(AGAIN)
        # One that looks first finds the decision, and completes that.
        await sink.commit(FIRST, old)
        following = AGAIN._replace(batch_id=8)
        await sink.commit(following, await sink.write_all(following))
        with pytest.raises(SupersededDriver):
            await sink.commit(FIRST, old)
        assert await sink.visible() == sorted(values(AGAIN) + values(following))
        assert await sink.nothing_is_open()

    play(story)


def test_an_older_driver_that_finds_the_decision_leaves_the_next_batch_alone() -> None:
    async def story(sink: Sink) -> None:
        old = await sink.write_all(FIRST)
        await sink.commit(AGAIN, await sink.write_all(AGAIN))
        following = AGAIN._replace(batch_id=8)
        last = await sink.write(following, 2)
        await sink.commit(FIRST, old)
        prepared = await sink.write_all(following)
        assert last.transaction is not None
        await sink.commit(following, [*prepared, last.transaction])
        assert await sink.visible() == sorted(values(AGAIN) + values(following, 3))
        assert await sink.nothing_is_open()

    play(story)


def test_an_older_driver_that_gives_up_leaves_what_the_newer_has_prepared() -> None:
    async def story(sink: Sink) -> None:
        await sink.write_all(FIRST)
        prepared = await sink.write_all(AGAIN)
        async with sink.driver(FIRST) as zombie:
            await zombie.abort()
        await sink.commit(AGAIN, prepared)
        assert await sink.visible() == values(AGAIN)
        assert await sink.nothing_is_open()

    play(story)


def test_a_decision_about_very_many_tasks_can_be_written() -> None:
    """Names of tasks differ in few characters; without compression they are more than a MiB."""

    async def story(sink: Sink) -> None:
        batch = Batch(
            "0d4d1d42-5a94-4f9f-9a0c-6a6a4b1bb4ff", 7, "b6f7b1b8-2f9c-4f0a-8b3e-9f4b2f1f2f3f"
        )
        prepared = tuple(
            PreparedTransaction(transactional_id("spark", batch.job, slot), 4_000 + number, 1)
            for number in range(20_000)
            for slot in [Slot(batch.run, number, 0)]
        )
        async with sink.driver(batch) as driver:
            state = await driver._decide(Decision(batch, True, prepared))
        assert state.decision == Decision(batch, True, prepared)

    play(story)


def test_the_topic_of_decisions_is_kept_as_safely_as_the_transactions() -> None:
    async def story(sink: Sink) -> None:
        await sink.commit(FIRST, [])
        runtime = sink.cluster.client_runtime("admin-2")
        async with Admin(sink.cluster.bootstrap, runtime=runtime) as admin:
            topic = sink.options.decisions_topic
            decisions, transactions = [
                (
                    len((await admin.describe_topic(name)).partitions[0].replicas),
                    {s.name: s.value for s in await admin.describe_configs(name)},
                )
                for name in (topic, TRANSACTION_STATE_TOPIC)
            ]
        assert decisions[0] == transactions[0] == 3
        for name in ("min.insync.replicas", "cleanup.policy"):
            assert decisions[1][name] == transactions[1][name]

    play(story)


def test_tasks_without_a_row_leave_nothing_to_commit() -> None:
    async def story(sink: Sink) -> None:
        writer = sink.task(FIRST, 0)
        assert await writer.open()
        assert await writer.prepare() == Prepared(FIRST, None)
        await writer.close()
        await sink.commit(FIRST, [])
        assert await sink.visible() == []
        assert await sink.nothing_is_open()

    play(story)
