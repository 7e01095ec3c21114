"""The ISR over time: stopped members leave, returning ones join, too few refuse acks=all."""

import asyncio
from dataclasses import replace

import pytest
from barnabas_broker.replica.leader.leadership import ACKS_ALL
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.fetch import FetchPartition, FetchRequest
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.replication_world import TP, ReplicationWorld

MAX_LAG = 30.0


async def three(topic: dict[str, str] | None = None) -> ReplicationWorld:
    world = ReplicationWorld(topic=topic)
    await world.start(1, 2, 3)
    await world.create(1, 2, 3)
    return world


def test_a_stopped_follower_leaves_after_one_to_one_and_a_half_lag_times() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        await asyncio.sleep(100.0)
        assert world.isr() == (1, 2, 3)
        world.kill(3)
        stopped = asyncio.get_running_loop().time()
        waiting = asyncio.ensure_future(world.produce(b"b", timeout_ms=120_000))
        await world.until(lambda: world.isr() == (1, 2))
        passed = asyncio.get_running_loop().time() - stopped
        # The follower's last fetch came up to 500 ms before it died.
        assert MAX_LAG - 0.6 <= passed <= 1.5 * MAX_LAG + 0.1
        assert (await waiting).error_code == ErrorCode.NONE
        assert len(world.alterations) == 1

    run(scenario())


def test_a_follower_of_an_idle_partition_stays() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        await asyncio.sleep(1.0)
        world.cut(1, 3)
        await asyncio.sleep(200.0)
        assert world.isr() == (1, 2, 3)

    run(scenario())


def test_an_idle_follower_is_not_taken_for_a_laggard_when_data_comes_at_last() -> None:
    """A follower's fetches do not name an idle partition, but the follower was caught up."""

    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        await asyncio.sleep(500.0)
        world.cut(1, 3)
        await world.produce(b"b", acks=1)
        await asyncio.sleep(MAX_LAG - 2.0)
        assert world.isr() == (1, 2, 3)
        assert world.alterations == []

    run(scenario())


def test_where_a_follower_was_in_an_earlier_incarnation_does_not_let_it_join() -> None:
    """It returned without its log; the leader, in the same epoch, still knows a higher log end."""

    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        world.kill(3)
        await world.elect(1, isr=(1, 2))
        await world.start(3)
        await world.update_metadata()
        position = FetchPartition(*TP, 1_000, current_leader_epoch=world.states[TP].leader_epoch)
        first = FetchRequest(0, 1, 1 << 20, replica_id=3, session_epoch=0, partitions=[position])
        answer = await world.on(1, world.incarnations[1].manager.follower_fetches.fetch(first))
        assert answer.partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        again = replace(first, session_id=answer.session_id, session_epoch=1, partitions=[])
        await world.on(1, world.incarnations[1].manager.follower_fetches.fetch(again))
        await asyncio.sleep(1.0)
        assert world.isr() == (1, 2)

    run(scenario())


def test_a_follower_that_returns_catches_up_and_joins_again() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        world.kill(3)
        await world.elect(1, isr=(1, 2))
        for number in range(50):
            await world.produce(b"%d" % number)
        await world.start(3)
        await world.announce(only=3)
        await world.until(lambda: world.isr() == (1, 2, 3))
        assert world.values(3) == world.values(1)
        assert (await world.produce(b"z")).error_code == ErrorCode.NONE
        assert world.values(3)[-1] == b"z"

    run(scenario())


def test_a_refused_admission_no_longer_holds_the_high_watermark_back() -> None:
    """The candidate dies before the controller answers; nothing else would move the watermark."""

    async def scenario() -> None:
        world = await three()
        world.kill(3)
        await world.elect(1, isr=(1, 2))
        world.controller_answers.clear()
        await world.start(3)
        await world.announce(only=3)
        await world.until(lambda: len(world.alterations) == 1)
        world.kill(3)
        await world.update_metadata()
        waiting = asyncio.ensure_future(world.produce(b"b", timeout_ms=20_000))
        await world.until(lambda: world.values(2) == [b"b"])
        await asyncio.sleep(1.0)
        assert not waiting.done(), "the proposed member still counts"
        world.controller_answers.set()
        async with asyncio.timeout(1.0):
            assert (await waiting).error_code == ErrorCode.NONE
        assert world.isr() == (1, 2)

    run(scenario())


def test_an_idle_follower_joins_as_soon_as_its_broker_is_known_to_live() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        world.kill(3)
        await world.elect(1, isr=(1, 2))
        await world.start(3)
        dead_to_the_leader = world.incarnations[3]
        request = world.leader_and_isr()
        await world.on(3, dead_to_the_leader.manager.become_leader_or_follower(request))
        await world.until(lambda: world.values(3) == [b"a"])
        await asyncio.sleep(5.0)
        assert world.isr() == (1, 2)
        await world.update_metadata()
        await world.until(lambda: world.isr() == (1, 2, 3), timeout=1.0)

    run(scenario())


def test_a_follower_that_caught_up_while_its_removal_was_under_way_joins_again() -> None:
    """Nothing is written afterwards, so that it never names the partition again."""

    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        world.cut(1, 3)
        await world.produce(b"b", acks=1)
        world.controller_answers.clear()
        await world.until(lambda: len(world.alterations) == 1)
        world.heal(1, 3)
        await world.until(lambda: world.values(3) == [b"a", b"b"])
        await asyncio.sleep(1.0)
        world.controller_answers.set()
        await world.until(lambda: world.isr() == (1, 2))
        await world.until(lambda: world.isr() == (1, 2, 3))

    run(scenario())


def test_a_follower_joins_only_by_a_position_that_was_found_valid() -> None:
    """It has gone back since its last valid fetch, in the same session."""

    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        world.kill(3)
        await world.elect(1, isr=(1, 2))
        epoch = world.states[TP].leader_epoch
        fetches = world.incarnations[1].manager.follower_fetches
        session_id = 0
        for number, offsets in enumerate(([1], [1_000], [])):
            positions = [FetchPartition(*TP, at, current_leader_epoch=epoch) for at in offsets]
            request = FetchRequest(
                0, 1, 1 << 20, replica_id=3, session_id=session_id, session_epoch=number,
                partitions=positions,
            )  # fmt: skip
            session_id = (await world.on(1, fetches.fetch(request))).session_id
            if number == 1:
                await world.start(3)
                await world.update_metadata()
        await asyncio.sleep(1.0)
        assert world.isr() == (1, 2)

    run(scenario())


def test_a_refused_change_falls_back_and_is_tried_again() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        await world.elect(1, isr=(1, 2))
        world.refuse_with = ErrorCode.INELIGIBLE_REPLICA
        await world.until(lambda: len(world.alterations) >= 3)
        leadership = world.partition(1).leadership
        assert leadership is not None
        assert leadership.isr.committed == (1, 2)
        world.refuse_with = None
        await world.until(lambda: world.isr() == (1, 2, 3))

    run(scenario())


def test_a_change_overtaken_by_the_controller_waits_for_its_word() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        world.refuse_with = ErrorCode.INVALID_UPDATE_VERSION
        await world.elect(1, isr=(1, 2))
        await world.until(lambda: len(world.alterations) == 1)
        await asyncio.sleep(10.0)
        assert len(world.alterations) == 1
        leadership = world.partition(1).leadership
        assert leadership is not None
        assert leadership.isr.maximal == (1, 2, 3)
        world.refuse_with = None
        await world.elect(1)
        await world.until(lambda: world.isr() == (1, 2, 3))

    run(scenario())


def test_too_few_in_sync_replicas_refuse_acks_all_before_anything_is_written() -> None:
    async def scenario() -> None:
        world = await three(topic={"min.insync.replicas": "2"})
        await world.produce(b"a")
        world.kill(2)
        world.kill(3)
        await world.elect(1, isr=(1,))
        result = await world.produce(b"b")
        assert result.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert world.values(1) == [b"a"]
        await world.start(3)
        await world.announce(only=3)
        await world.until(lambda: world.isr() == (1, 3))
        assert (await world.produce(b"b")).error_code == ErrorCode.NONE

    run(scenario())


def test_acks_one_under_the_minimum_is_written_but_shown_to_no_one_until_replicated() -> None:
    async def scenario() -> None:
        world = await three(topic={"min.insync.replicas": "2"})
        await world.produce(b"a")
        world.kill(2)
        world.kill(3)
        await world.elect(1, isr=(1,))
        assert (await world.produce(b"b", acks=1)).error_code == ErrorCode.NONE
        assert (await world.consume(1))[1] == [b"a"]
        await world.start(3)
        await world.announce(only=3)
        await world.until(lambda: world.log(1).high_watermark == 2)
        assert (await world.consume(1))[1] == [b"a", b"b"]

    run(scenario())


def test_a_single_replica_commits_alone_whatever_the_minimum() -> None:
    async def scenario() -> None:
        world = ReplicationWorld(topic={"min.insync.replicas": "2"})
        await world.start(1)
        await world.create(1)
        assert (await world.produce(b"a")).error_code == ErrorCode.NONE
        assert (await world.consume(1)) == (1, [b"a"])

    run(scenario())


def test_changes_of_many_partitions_travel_in_few_requests() -> None:
    async def scenario() -> None:
        world = ReplicationWorld()
        await world.start(1, 2)
        keys = [TopicPartition("many", number) for number in range(20)]
        for key in keys:
            await world.create(1, 2, key=key)
            await world.produce(b"a", key=key)
        world.kill(2)
        for key in keys:
            await world.produce(b"b", key=key, acks=1)
        await world.until(lambda: all(world.isr(key) == (1,) for key in keys))
        assert len(world.alterations) <= 2

    run(scenario())


def test_nothing_is_proposed_while_a_change_is_under_way_and_the_maximal_isr_counts() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        await world.elect(1, isr=(1, 2))
        await world.until(lambda: world.isr() == (1, 2, 3))
        # The controller cannot be reached while 3 stops: 3 stays a member and holds the HW back.
        world.network.cut(world.incarnations[1].name, "controller")
        world.kill(3)
        produced = await world.produce(b"b", timeout_ms=100_000)
        assert produced.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert world.log(1).high_watermark == 1
        world.network.heal(world.incarnations[1].name, "controller")
        await world.until(lambda: world.log(1).high_watermark == 2)
        assert world.isr(TP) == (1, 2)

    run(scenario())


def test_a_wish_is_told_once_however_long_the_controller_is_away() -> None:
    """Nor in a later epoch of the same leader, whose proposal waits behind the one in flight."""

    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        world.network.cut(world.incarnations[1].name, "controller")
        for _ in range(2):
            await world.elect(1, isr=(1, 2))
            for number in range(10):
                await world.produce(b"%d" % number)
        told = [e.kind for e in world.incarnations[1].events.since(0)]
        assert told.count(EventKind.ISR_CHANGE_PROPOSED) == 1
        world.network.heal(world.incarnations[1].name, "controller")
        await world.until(lambda: world.isr() == (1, 2, 3))

    run(scenario())


def test_a_committed_record_is_told_when_too_few_replicas_are_left_by_then() -> None:
    """The ISR shrank, or the topic asked for more, between the commit and the answer."""

    async def scenario() -> None:
        world = await three()
        produced = await world.produce(b"a")
        world.kill(3)
        await world.elect(1, isr=(1, 2))
        log, leadership = world.log(1), world.partition(1).leadership
        assert leadership is not None
        required = produced.base_offset + 1
        await world.until(lambda: log.high_watermark >= required)
        assert leadership.outcome_of_append(ACKS_ALL, required) is ErrorCode.NONE
        log.config = replace(log.config, min_insync_replicas=3)
        outcome = leadership.outcome_of_append(ACKS_ALL, required)
        assert outcome is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    run(scenario())


@pytest.mark.parametrize("max_messages", [None, 200])
def test_a_burst_throws_healthy_followers_out_if_lag_is_counted_in_records(
    max_messages: int | None,
) -> None:
    """Why Kafka removed `replica.lag.max.messages` in 0.9 (KIP-16)."""

    async def scenario() -> None:
        config = {"replica.lag.time.max.ms": "1000"}
        if max_messages is not None:
            config["replica.lag.max.messages"] = str(max_messages)
        world = ReplicationWorld(config=config)
        await world.start(1, 2, 3)
        await world.create(1, 2, 3)
        burst = [b"%d" % number for number in range(500)]
        world.network.links.conditions = replace(
            world.network.links.conditions, min_latency=0.005, max_latency=0.01
        )
        for _ in range(150):  # the followers fetch each immediately, and are checked every 500 ms
            await world.produce(*burst, acks=1)
            await asyncio.sleep(0.0237)
        await world.until_equal(1, 2, 3)
        causes = [alteration.partitions[0].cause for alteration in world.alterations]
        if max_messages is None:
            assert causes == []
        else:
            assert causes, "the check never met a burst"
            assert "keeps up, but is" in causes[0]
            assert "replica.lag.max.messages is 200" in causes[0]

    run(scenario())
