"""Where micro-batches end while topics grow, shrink, vanish and come again."""

from collections.abc import Iterable
from typing import Any

import pytest
from barnabas_common.errors import UnknownTopicOrPartitionError
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.topic_partition import TopicPartition
from pyspark_barnabas.options import parse_options
from pyspark_barnabas.reading import lower_ends
from pyspark_barnabas.reading.errors import DataLossError, PlanError
from pyspark_barnabas.reading.offset_reader import Assigned, OffsetReader
from pyspark_barnabas.reading.stream_offsets import StreamOffsets
from pyspark_barnabas.reading.stream_planner import StreamPlanner, _may_lag

from tests.support.scripted_brokers import ScriptedBrokers


def fill(brokers: ScriptedBrokers, partition: int, count: int) -> None:
    builder = BatchBuilder()
    for number in range(count):
        builder.append(1000 + number, None, b"x")
    brokers.log(partition).append(builder.build())


pytestmark = pytest.mark.usefixtures("short_grace")


def planner_of(brokers: ScriptedBrokers, **options: str) -> StreamPlanner:
    given = {"bootstrap.servers": brokers.bootstrap, "subscribe": "flights"} | options
    return StreamPlanner(parse_options(given, "stream"), brokers.runtime)


def ends(position: StreamOffsets) -> dict[int, int]:
    return {tp.partition: offset for tp, offset in position.offsets.items()}


def planned(ranges: list[Any]) -> list[tuple[int, int, int]]:
    return [(r.partition, r.start, r.end) for r in ranges]


async def test_a_stream_starts_at_the_end_or_where_it_is_told_to():
    async with ScriptedBrokers(partitions=2) as brokers:
        fill(brokers, 0, 10)
        for text, offsets in [
            ("latest", {0: 10, 1: 0}),
            ("earliest", {0: 0, 1: 0}),
            ('{"flights": {"0": 4, "1": -1}}', {0: 4, 1: 0}),
        ]:
            planner = planner_of(brokers, startingOffsets=text)
            assert ends(await planner.initial()) == offsets
            await planner.close()


async def test_a_stream_starts_at_a_time():
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 10)
        planner = planner_of(brokers, startingTimestamp="1004")
        assert ends(await planner.initial()) == {0: 4}
        await planner.close()


async def test_batch_after_batch_under_a_limit():
    async with ScriptedBrokers(partitions=2) as brokers:
        fill(brokers, 0, 90)
        fill(brokers, 1, 10)
        planner = planner_of(brokers, startingOffsets="earliest", maxOffsetsPerTrigger="50")
        start = await planner.initial()
        first = await planner.latest(start)
        assert ends(first) == {0: 45, 1: 5}
        assert planned(await planner.plan(start, first)) == [(0, 0, 45), (1, 0, 5)]
        second = await planner.latest(first)
        assert ends(second) == {0: 90, 1: 10}
        assert planner.newest == second
        assert await planner.latest(second) == second
        assert ends(await planner.latest(start, unlimited=True)) == {0: 90, 1: 10}
        await planner.close()


async def test_a_batch_is_held_back_until_there_is_enough():
    async with ScriptedBrokers() as brokers:
        planner = planner_of(brokers, minOffsetsPerTrigger="10")
        start = await planner.initial()
        fill(brokers, 0, 1)
        first = await planner.latest(start)
        assert ends(first) == {0: 1}, "as with Kafka's source, the first batch is not held back"
        fill(brokers, 0, 9)
        assert await planner.latest(first) is first
        fill(brokers, 0, 1)
        assert ends(await planner.latest(first)) == {0: 11}
        await planner.close()


async def test_available_now_reads_what_there_was_and_waits_for_no_more():
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 9)
        planner = planner_of(brokers, startingOffsets="earliest", minOffsetsPerTrigger="100")
        await planner.prepare_for_available_now()
        fill(brokers, 0, 20)
        brokers.grow(2)
        fill(brokers, 1, 20)
        position = StreamOffsets(
            {TopicPartition("flights", 0): 0}, {"flights": brokers.topic_id}, ""
        )
        assert ends(await planner.latest(position)) == {0: 9}
        above = await planner_of(brokers).initial()
        with pytest.raises(PlanError, match="MISMATCHED_TOPIC_PARTITIONS.*flights-1"):
            await planner.plan(position, above)
        await planner.close()


async def test_a_query_that_starts_above_the_target_of_available_now_reads_nothing():
    async with ScriptedBrokers() as brokers:
        planner = planner_of(brokers)
        await planner.prepare_for_available_now()
        fill(brokers, 0, 5)
        start = await planner.initial()
        assert ends(await planner.latest(start)) == ends(start) == {0: 5}
        await planner.close()


async def test_added_partitions_are_read_from_their_first_offset():
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers)
        start = await planner.initial()
        brokers.grow(2)
        fill(brokers, 1, 7)
        end = await planner.latest(start)
        assert ends(end) == {0: 5, 1: 7}
        assert planned(await planner.plan(start, end)) == [(1, 0, 7)]
        await planner.close()


@pytest.mark.parametrize("fail", [True, False])
async def test_an_added_partition_whose_first_records_are_gone(fail: bool):
    async with ScriptedBrokers() as brokers:
        planner = planner_of(brokers, failOnDataLoss=str(fail))
        start = await planner.initial()
        brokers.grow(2)
        fill(brokers, 1, 7)
        brokers.log(1).start = 3
        if fail:
            with pytest.raises(DataLossError, match="ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_Z"):
                await planner.latest(start)
        else:
            end = await planner.latest(start)
            assert planned(await planner.plan(start, end)) == [(1, 3, 7)]
        await planner.close()


@pytest.mark.parametrize("fail", [True, False])
async def test_a_topic_created_again(fail: bool):
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers, failOnDataLoss=str(fail))
        start = await planner.initial()
        brokers.create_again(1)
        fill(brokers, 0, 8)
        if fail:
            with pytest.raises(DataLossError, match="PARTITIONS_DELETED.*created again"):
                await planner.latest(start)
        else:
            end = await planner.latest(start)
            assert planned(await planner.plan(start, end)) == [(0, 0, 8)]
        await planner.close()


@pytest.mark.parametrize("fail", [True, False])
async def test_a_deleted_topic(fail: bool):
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers, failOnDataLoss=str(fail))
        start = await planner.initial()
        brokers.topic = "another"
        if fail:
            with pytest.raises(DataLossError, match="PARTITIONS_DELETED.*flights-0"):
                await planner.latest(start)
        else:
            end = await planner.latest(start)
            assert end.offsets == {}
            assert await planner.plan(start, end) == []
        await planner.close()


async def test_a_deleted_topic_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch):
    """The client asks for it for seconds already, each time."""
    counted = 0
    existing = OffsetReader.existing

    async def count(self: OffsetReader, known: Iterable[str] = ()) -> Assigned:
        nonlocal counted
        counted += 1
        return await existing(self, known)

    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers, failOnDataLoss="false")
        start = await planner.initial()
        brokers.topic = "another"
        monkeypatch.setattr(OffsetReader, "existing", count)
        await planner.latest(start)
        assert counted == 1
        await planner.close()


@pytest.mark.parametrize(
    ("added", "words"),
    [
        ({"subscribe": "flights,fligths"}, "topic 'fligths' does not exist"),
        ({"assign": '{"flights": [0, 7]}'}, "flights has no partition 7"),
    ],
)
async def test_a_restarted_query_that_names_what_does_not_exist(added: dict[str, str], words: str):
    """It would run without the rows of the topic that was meant, and say nothing."""
    async with ScriptedBrokers() as brokers:
        planner = planner_of(brokers)
        start = await planner.initial()
        await planner.close()
        given = {"bootstrap.servers": brokers.bootstrap} | added
        restarted = StreamPlanner(parse_options(given, "stream"), brokers.runtime)
        with pytest.raises(UnknownTopicOrPartitionError, match=words):
            await restarted.latest(start)
        await restarted.close()


FLIGHTS = TopicPartition("flights", 0), TopicPartition("flights", 1)


@pytest.mark.parametrize(
    "partitions, topic_ids, lags",
    [
        (FLIGHTS, {"flights": "a"}, False),
        ((*FLIGHTS, TopicPartition("more", 0)), {"flights": "a", "more": "c"}, False),
        (FLIGHTS, {"flights": "b"}, True),
        (FLIGHTS[:1], {"flights": "a"}, True),
        ((), {}, False),
    ],
    ids=["the same", "more", "another id", "fewer partitions", "no topic"],
)
def test_what_an_outdated_broker_may_say(
    partitions: tuple[TopicPartition, ...], topic_ids: dict[str, str], lags: bool
):
    start = StreamOffsets(dict.fromkeys(FLIGHTS, 3), {"flights": "a"}, "")
    assert _may_lag(Assigned(partitions, topic_ids), start) is lags


@pytest.mark.parametrize("fail", [True, False])
async def test_a_batch_with_an_added_topic_is_planned_again_after_it_was_deleted(fail: bool):
    async with ScriptedBrokers() as brokers:
        planner = planner_of(brokers, failOnDataLoss=str(fail))
        start = StreamOffsets({}, {}, "")
        fill(brokers, 0, 5)
        end = await planner.latest(start)
        assert planned(await planner.plan(start, end)) == [(0, 0, 5)]
        await planner.close()
        brokers.topic = "another"
        restarted = planner_of(brokers, failOnDataLoss=str(fail))
        if fail:
            with pytest.raises(DataLossError, match="PARTITIONS_DELETED.*flights-0"):
                await restarted.plan(start, end)
        else:
            assert await restarted.plan(start, end) == []
        await restarted.close()


async def test_available_now_reads_nothing_of_a_topic_that_is_created_again_meanwhile():
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers, startingOffsets="earliest", failOnDataLoss="false")
        start = await planner.initial()
        await planner.prepare_for_available_now()
        brokers.create_again(1)
        fill(brokers, 0, 2)
        end = await planner.latest(start)
        assert await planner.plan(start, end) == []
        assert await planner.latest(end) == end, "it ends"
        await planner.close()


async def test_a_lagging_high_watermark_is_no_data_loss_until_it_lasts(
    monkeypatch: pytest.MonkeyPatch,
):
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers)
        start = await planner.initial()
        brokers.log().end = 3
        assert ends(await planner.latest(start)) == {0: 5}
        monkeypatch.setattr(lower_ends, "LAGGING_SECONDS", 0.0)
        with pytest.raises(DataLossError, match="PARTITION_OFFSET_CHANGED.*from 5 to 3"):
            await planner.latest(start)
        await planner.close()


@pytest.mark.parametrize("fail", [True, False])
async def test_available_now_does_not_pass_over_records_that_the_log_has_lost(
    monkeypatch: pytest.MonkeyPatch, fail: bool
):
    """It ends when there is nothing to read: the next run would find the new records of [3, 5)
    below its position, and nobody would ever read them."""
    monkeypatch.setattr(lower_ends, "LAGGING_SECONDS", 0.0)
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers, failOnDataLoss=str(fail))
        position = await planner.initial()
        brokers.log().end = 3
        await planner.prepare_for_available_now()
        if fail:
            with pytest.raises(DataLossError, match="PARTITION_OFFSET_CHANGED.*from 5 to 3"):
                await planner.latest(position)
        else:
            end = await planner.latest(position)
            assert ends(end) == {0: 3}
            assert await planner.plan(position, end) == []
            assert await planner.latest(end) == end, "it ends"
        await planner.close()


async def test_available_now_waits_for_a_high_watermark_that_lags():
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers)
        position = await planner.initial()
        brokers.log().end = 3
        await planner.prepare_for_available_now()

        async def lags(*_: object) -> None:
            assert brokers.log().end == 3

        async def rises(*_: object) -> None:
            brokers.log().end = 5

        brokers.offset_faults += [lags, rises]
        assert await planner.latest(position) is position
        assert brokers.offset_faults == [], "it has asked again"
        await planner.close()


@pytest.mark.parametrize("restarted", [False, True])
async def test_records_that_replace_lost_ones_are_not_passed_over(restarted: bool):
    """After an unclean election, producers fill the log up to the position within the time that an
    outdated broker is given."""
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 20)
        planner = planner_of(brokers)
        position = await planner.latest(await planner.initial())
        brokers.log().end = 3
        if restarted:
            await planner.close()
            planner = planner_of(brokers)
            assert await planner.latest(position) is position, "it may be an outdated broker"
            fill(brokers, 0, 4)
        with pytest.raises(DataLossError, match="PARTITION_OFFSET_CHANGED.*from 20 to"):
            await planner.latest(position)
        await planner.close()


async def test_a_topic_that_is_created_again_while_its_end_is_asked_for():
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers)
        position = await planner.latest(await planner.initial())

        async def created_again(*_: object) -> None:
            brokers.create_again(1)

        brokers.offset_faults.append(created_again)
        with pytest.raises(DataLossError, match="PARTITIONS_DELETED.*created again"):
            await planner.latest(position)
        await planner.close()


async def test_a_pattern_takes_topics_in():
    async with ScriptedBrokers() as brokers:
        options = {"bootstrap.servers": brokers.bootstrap, "subscribePattern": "fl.*"}
        planner = StreamPlanner(parse_options(options, "stream"), brokers.runtime)
        assert ends(await planner.initial()) == {0: 0}
        await planner.close()


async def test_a_topic_that_begins_to_match_is_read_from_its_first_offset():
    async with ScriptedBrokers() as brokers:
        options = {"bootstrap.servers": brokers.bootstrap, "subscribePattern": "fl.*"}
        options["failOnDataLoss"] = "false"  # these brokers have one topic at a time
        planner = StreamPlanner(parse_options(options, "stream"), brokers.runtime)
        start = await planner.initial()
        brokers.topic = "flowers"
        brokers.create_again(1)
        fill(brokers, 0, 7)
        (planned_range,) = await planner.plan(start, await planner.latest(start))
        assert str(planned_range) == "flowers-0 [0, 7)"
        await planner.close()


async def test_one_group_for_the_life_of_a_query():
    async with ScriptedBrokers() as brokers:
        planner = planner_of(brokers, groupIdPrefix="mine")
        start = await planner.initial()
        assert start.group_id.startswith("mine-")
        again = planner_of(brokers, groupIdPrefix="mine")
        assert (await again.latest(start)).group_id == start.group_id
        assert (await planner_of(brokers).initial()).group_id != start.group_id
        named = planner_of(brokers, **{"kafka.group.id": "given"})
        assert (await named.initial()).group_id == "given"
        await planner.close()
        await again.close()
        await named.close()
