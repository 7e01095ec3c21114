"""The first batch of a stream is the same whenever it is planned; whose checkpoint is taken."""

import json
from typing import Any

import pytest
from barnabas_common.topic_partition import TopicPartition
from pyspark_barnabas.reading.errors import PlanError
from pyspark_barnabas.reading.stream_offsets import StreamOffsets
from pyspark_barnabas.reading.stream_planner import StreamPlanner

from tests.support.scripted_brokers import ScriptedBrokers
from tests.unit.test_spark_stream_planner import ends, fill, planned, planner_of

pytestmark = pytest.mark.usefixtures("short_grace")
OFFSETS = {"flights": {"0": 23}}


def kept(position: StreamOffsets) -> StreamOffsets:
    """The position as it comes back from the checkpoint."""
    return StreamOffsets.from_json(json.loads(json.dumps(position.to_json())))


async def initial_again(planner: StreamPlanner) -> StreamOffsets:
    return kept(await planner.initial())


async def test_records_produced_while_the_first_batch_is_planned_are_read_once():
    """Spark asks for the start of a query for the end of its first batch, and to plan it."""
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers, startingOffsets="latest")
        start = kept(await planner.initial())
        fill(brokers, 0, 3)
        end = kept(await planner.latest(start))
        fill(brokers, 0, 4)
        assert planned(await planner.plan(await initial_again(planner), end)) == [(0, 5, 8)]
        assert planned(await planner.plan(end, await planner.latest(end))) == [(0, 8, 12)]
        await planner.close()


@pytest.mark.parametrize("starting", ["latest", "earliest"])
async def test_the_first_batch_after_a_restart_is_what_it_was_before(starting: str):
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers, startingOffsets=starting)
        start = kept(await planner.initial())
        fill(brokers, 0, 3)
        end = kept(await planner.latest(start))
        before = planned(await planner.plan(start, end))
        await planner.close()
        fill(brokers, 0, 10)
        brokers.log().start = 7
        brokers.grow(2)
        restarted = planner_of(brokers, startingOffsets=starting)
        assert planned(await restarted.plan(await initial_again(restarted), end)) == before
        await restarted.close()


async def test_an_added_partition_of_the_first_batch_begins_where_it_did():
    async with ScriptedBrokers() as brokers:
        planner = planner_of(brokers, startingOffsets="latest")
        start = kept(await planner.initial())
        brokers.grow(2)
        fill(brokers, 1, 7)
        end = kept(await planner.latest(start))
        fill(brokers, 1, 2)
        await planner.close()
        restarted = planner_of(brokers, startingOffsets="latest")
        assert planned(await restarted.plan(await initial_again(restarted), end)) == [(1, 0, 7)]
        await restarted.close()


@pytest.mark.parametrize("held_back", [False, True])
async def test_a_first_batch_without_records_is_followed_by_those_that_come(held_back: bool):
    limit = {"minOffsetsPerTrigger": "3", "maxTriggerDelay": "1h"} if held_back else {}
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers, startingOffsets="latest", **limit)
        start = kept(await planner.initial())
        end = await planner.latest(start)
        assert end is start, "Spark sees by this that there is nothing new"
        await planner.close()
        fill(brokers, 0, 3)
        restarted = planner_of(brokers, startingOffsets="latest", **limit)
        assert await restarted.plan(await initial_again(restarted), end) == []
        assert planned(await restarted.plan(end, await restarted.latest(end))) == [(0, 5, 8)]
        await restarted.close()


async def test_before_spark_4_2_a_query_does_not_start_behind_the_end_of_its_first_batch():
    """There Spark asks for the end of the first batch before it asks for its start."""
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers, startingOffsets="latest")
        end = kept(await planner.newest_without_start())
        fill(brokers, 0, 3)
        assert await planner.plan(await initial_again(planner), end) == []
        following = kept(await planner.newest_without_start())
        assert planned(await planner.plan(end, following)) == [(0, 5, 8)]
        await planner.close()


async def test_a_batch_without_news_ends_in_the_same_text():
    async with ScriptedBrokers() as brokers:
        planner = planner_of(brokers, startingOffsets="earliest")
        fill(brokers, 0, 5)
        first = kept(await planner.latest(kept(await planner.initial())))
        assert await planner.latest(first) is first
        fill(brokers, 0, 1)
        second = await planner.latest(first)
        assert "began" not in second.to_json()["@barnabas"], "of the first batch only"
        await planner.close()


async def test_a_partition_added_as_available_now_begins_is_no_data_loss():
    """The target is older than the position, or comes from a broker that knows less."""
    async with ScriptedBrokers() as brokers:
        fill(brokers, 0, 5)
        planner = planner_of(brokers, startingOffsets="earliest")
        await planner.prepare_for_available_now()
        brokers.grow(2)
        fill(brokers, 1, 4)
        start = await planner.initial()
        end = await planner.latest(start)
        assert ends(end) == {0: 5, 1: 0}
        assert planned(await planner.plan(start, end)) == [(0, 0, 5)]
        assert await planner.latest(end) is end, "it ends"
        await planner.close()


@pytest.mark.parametrize(
    "found",
    [
        OFFSETS,
        {"logOffset": 3},
        7,
        "7",
        None,
        [OFFSETS],
        {"@barnabas": 7},
        {"@barnabas": {"group.id": "g"}} | OFFSETS,
        {"@barnabas": {"group.id": "g", "topic.ids": []}, "flights": {"0": "x"}},
        {"@barnabas": {"group.id": "g", "topic.ids": {}}, "flights": {"-1": 0}},
        {"@barnabas": {"group.id": "g", "topic.ids": {}, "began": 7}} | OFFSETS,
    ],
    ids=str,
)
def test_a_checkpoint_of_another_source_is_refused(found: Any):
    with pytest.raises(PlanError, match="not one of a stream with format.*checkpointLocation"):
        StreamOffsets.from_json(found)


def test_a_first_position_comes_back_from_the_checkpoint():
    first = {TopicPartition("flights", 0): 3}
    position = StreamOffsets({TopicPartition("flights", 0): 5}, {"flights": "id"}, "g", first)
    assert kept(position) == position
    assert not position.is_first
