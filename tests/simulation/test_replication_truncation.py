"""The classical ways to lose records or to let logs diverge, which leader epochs prevent.

See KIP-101 and KIP-279. Each test runs on both ways to find where to truncate: by fetching, and by
asking before fetching.
"""

import asyncio

import pytest
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.replication_world import TP, ReplicationWorld

Config = dict[str, str]


@pytest.fixture(params=["fetch", "offsets-for-leader-epoch"])
def lookup(request: pytest.FixtureRequest) -> Config:
    """Settings of all brokers."""
    return {"replica.truncation.lookup": request.param}


def test_a_committed_record_survives_a_restart_behind_the_high_watermark_and_a_leader_crash(
    lookup: Config,
) -> None:
    """KIP-101, first scenario: truncating to the high watermark would lose m2, which was acked."""

    async def scenario() -> None:
        world = ReplicationWorld(config=lookup)
        await world.start(1, 2)
        await world.create(2, 1)  # broker 1 is A, broker 2 is B, the leader
        await world.produce(b"m1")
        await world.until_equal(1, 2)
        assert (await world.produce(b"m2")).error_code == ErrorCode.NONE
        assert world.log(1).high_watermark == 1  # A does not know of the commit
        world.kill(1)
        await world.start(1)
        world.cut(1, 2)  # A restarts, but B dies before it can answer
        await world.announce(only=1)
        await asyncio.sleep(0.1)
        world.kill(2)
        await world.elect(1, isr=(1,))
        assert world.values(1) == [b"m1", b"m2"]
        await world.produce(b"m3")
        await world.start(2)
        await world.announce(only=2)
        await world.until_equal(1, 2)
        assert world.values(2) == [b"m1", b"m2", b"m3"]

    run(scenario())


def test_logs_do_not_fork_when_both_lose_power_and_the_shorter_one_leads(lookup: Config) -> None:
    """KIP-101, second scenario: A would keep m2 at the offset where B has m3."""

    async def scenario() -> None:
        world = ReplicationWorld(config=lookup)
        await world.start(1, 2)
        await world.create(1, 2)
        await world.produce(b"m1")
        await world.until_equal(1, 2)
        world.log(2).flush()
        await world.produce(b"m2")
        await world.until_equal(1, 2)
        world.kill(1)
        world.kill(2, keep_unflushed=False)
        await world.start(2)
        await world.elect(2, isr=(2,))
        assert world.values(2) in ([b"m1"], [b"m1", b"m2"])
        lost = world.values(2) == [b"m1"]
        await world.produce(b"m3")
        await world.start(1)
        await world.announce(only=1)
        await world.until_equal(1, 2)
        assert world.values(1) == ([b"m1", b"m3"] if lost else [b"m1", b"m2", b"m3"])

    run(scenario())


def test_three_fast_elections_leave_one_history(lookup: Config) -> None:
    """KIP-279: A {0: 0-9, 2: 10-19} follows B {0: 0-9, 1: 10-14, 3}."""

    async def scenario() -> None:
        world = ReplicationWorld(config=lookup)
        await world.start(1, 2)
        await world.create(1, 2)
        await world.produce(*[b"common-%d" % n for n in range(10)])
        await world.until_equal(1, 2)
        world.kill(1)
        await world.elect(2, isr=(2,))
        await world.produce(*[b"b-%d" % n for n in range(5)], acks=1)
        world.kill(2)
        await world.start(1)
        await world.elect(1, isr=(1,))
        await world.produce(*[b"a-%d" % n for n in range(10)], acks=1)
        world.kill(1)
        await world.start(2)
        await world.elect(2, isr=(2,))
        await world.start(1)
        await world.announce(only=1)
        await world.until_equal(1, 2)
        assert world.values(1) == [
            *[b"common-%d" % n for n in range(10)],
            *[b"b-%d" % n for n in range(5)],
        ]
        epochs = [tuple(entry) for entry in world.log(1).leader_epochs.entries]
        assert epochs[:2] == [(0, 0), (1, 10)]

    run(scenario())


def test_a_deposed_leader_drops_what_no_one_followed(lookup: Config) -> None:
    async def scenario() -> None:
        world = ReplicationWorld(config=lookup)
        await world.start(1, 2, 3)
        await world.create(1, 2, 3)
        await world.produce(b"a")
        await world.until_equal(1, 2, 3)
        world.cut(1, 2)
        world.cut(1, 3)
        await world.produce(b"uncommitted-1", b"uncommitted-2", acks=1)
        await world.elect(2, isr=(2, 3))
        world.heal(1, 2)
        world.heal(1, 3)
        await world.produce(b"b")
        await world.until(lambda: world.isr() == (2, 3, 1))
        await world.until_equal(1, 2, 3)
        assert world.values(1) == [b"a", b"b"]

    run(scenario())


def test_a_leader_that_wrote_nothing_leaves_no_trace_of_its_epoch(lookup: Config) -> None:
    async def scenario() -> None:
        world = ReplicationWorld(config=lookup)
        await world.start(1, 2)
        await world.create(1, 2)
        await world.produce(b"a")
        await world.until_equal(1, 2)
        world.cut(1, 2)
        await world.elect(2)  # leads epoch 1, and no broker fetches from it
        await world.elect(1)
        world.heal(1, 2)
        await world.produce(b"b")
        await world.until_equal(1, 2)
        epochs = [tuple(entry) for entry in world.log(2).leader_epochs.entries]
        assert epochs == [(0, 0), (2, 1)]

    run(scenario())


async def _leader_alone(lookup: Config) -> ReplicationWorld:
    """Broker 1 leads alone, and has three records that broker 2, which is down, lacks."""
    world = ReplicationWorld(config=lookup)
    await world.start(1, 2)
    await world.create(1, 2)
    await world.produce(b"a")
    await world.until_equal(1, 2)
    world.kill(2)
    await world.elect(1, isr=(1,))
    await world.produce(b"b", b"c", b"d")
    return world


def test_an_uncleanly_elected_leader_cuts_its_followers_back(lookup: Config) -> None:
    async def scenario() -> None:
        world = await _leader_alone(lookup)
        world.kill(1)
        await world.start(2)
        await world.elect(2, isr=(2,))
        await world.start(1)
        await world.announce(only=1)
        await world.until_equal(1, 2)
        assert world.values(1) == [b"a"]
        assert (await world.produce(b"e")).error_code == ErrorCode.NONE
        await world.until_equal(1, 2)

    run(scenario())


def test_committed_records_that_are_truncated_are_an_error(lookup: Config) -> None:
    """An unclean election while the old leader still runs: it lost nothing, and must follow."""

    async def scenario() -> None:
        world = await _leader_alone(lookup)
        await world.start(2)
        await world.elect(2, isr=(2,))
        await world.until_equal(1, 2)
        assert world.values(1) == [b"a"]
        (event,) = [
            event
            for event in world.incarnations[1].events.since(0)
            if event.kind is EventKind.COMMITTED_RECORDS_TRUNCATED
        ]
        assert (event.details["to_offset"], event.details["from_offset"]) == (1, 4)
        assert "leader 2 does not have the records from 1 to 4" in event.cause

    run(scenario())


def test_a_follower_behind_the_leaders_log_start_begins_again_there(lookup: Config) -> None:
    async def scenario() -> None:
        world = ReplicationWorld(config=lookup)
        await world.start(1, 2)
        await world.create(1, 2)
        await world.produce(b"a")
        world.kill(2)
        await world.elect(1, isr=(1,))
        for number in range(10):
            await world.produce(b"%d" % number)
        world.log(1).maybe_increment_log_start_offset(6)
        await world.start(2)
        await world.announce(only=2)
        await world.until(lambda: world.isr() == (1, 2))
        assert world.log(2).log_start_offset == 6
        assert world.values(2) == [b"%d" % n for n in range(5, 10)]
        assert (await world.produce(b"z")).error_code == ErrorCode.NONE

    run(scenario())


@pytest.mark.parametrize("seed", range(3))
def test_all_brokers_killed_come_back_with_everything_acknowledged(
    seed: int, lookup: Config
) -> None:
    async def scenario() -> None:
        world = ReplicationWorld(seed, config=lookup)
        await world.start(1, 2, 3)
        keys = [TP, TopicPartition("flights", 1), TopicPartition("flights", 2)]
        for number, key in enumerate(keys):
            await world.create(*((1, 2, 3)[number:] + (1, 2, 3)[:number]), key=key)
        acked: dict[TopicPartition, list[bytes]] = {key: [] for key in keys}
        for number in range(30):
            key, value = keys[number % 3], b"%d" % number
            assert (await world.produce(value, key=key)).error_code == ErrorCode.NONE
            acked[key].append(value)
        for broker_id in (1, 2, 3):
            world.kill(broker_id)
        await world.start(3, 1, 2)
        for number, key in enumerate(keys):
            await world.elect(1 + (number + seed) % 3, key=key)
        for key in keys:
            assert (await world.produce(b"after", key=key)).error_code == ErrorCode.NONE
            await world.until_equal(1, 2, 3, key=key)
            assert world.values(1, key) == [*acked[key], b"after"]

    run(scenario(), seed=seed)


def test_a_leader_that_missed_an_epoch_trusts_no_fetch_of_the_epochs_before(lookup: Config) -> None:
    """Broker 3 had fetched the record from 1, and truncated it as a follower of 2."""

    async def scenario() -> None:
        world = ReplicationWorld(config=lookup)
        await world.start(1, 2, 3)
        await world.create(1, 2, 3)
        await world.produce(b"a")
        world.cut(1, 2)
        await world.produce(b"b", acks=1)
        await world.until(lambda: world.values(3) == [b"a", b"b"])
        await asyncio.sleep(1.0)
        assert world.log(1).high_watermark == 1
        await world.elect(2, isr=(1, 2, 3), but=1)
        await world.until(lambda: world.values(3) == [b"a"])
        await world.elect(1, isr=(1, 3), but=3)
        await asyncio.sleep(1.0)
        assert world.log(1).high_watermark == 1
        await world.announce(only=3)
        await world.until(lambda: world.values(3) == [b"a", b"b"])
        await world.until(lambda: world.log(1).high_watermark == 2)

    run(scenario())


def test_the_lookup_asks_before_it_fetches_again_and_again_until_the_logs_agree(
    lookup: Config,
) -> None:
    """KIP-279 over many epochs: one per round, and a leader of another epoch refuses each round."""

    async def scenario() -> None:
        world = ReplicationWorld(config=lookup)
        await world.start(1, 2)
        await world.create(1, 2)
        await world.produce(b"common")
        await world.until_equal(1, 2)
        for turn in range(6):  # each leads alone, and neither gets the other's records
            leads, sleeps = (1, 2) if turn % 2 else (2, 1)
            if leads not in world.incarnations:
                await world.start(leads)
            if sleeps in world.incarnations:
                world.kill(sleeps)
            await world.elect(leads, isr=(leads,))
            await world.produce(b"%d-of-%d" % (turn, leads), b"more", acks=1)
        leader = world.states[TP].leader
        await world.start(3 - leader)
        await world.announce(only=3 - leader)
        await world.until_equal(1, 2)
        assert world.values(leader)[0] == b"common"
        assert world.log(1).leader_epochs.entries == world.log(2).leader_epochs.entries
        assert world.incarnations[leader].epoch_questions == (
            [] if lookup["replica.truncation.lookup"] == "fetch" else [5, 3, 1]
        )

    run(scenario())


def test_no_leader_of_another_epoch_answers_where_to_cut(lookup: Config) -> None:
    """The question is fenced (KIP-320): an older leader's answer would be about another history."""

    async def scenario() -> None:
        world = ReplicationWorld(config=lookup)
        await world.start(1, 2)
        await world.create(1, 2)
        await world.produce(b"a")
        await world.until_equal(1, 2)
        await world.elect(1, but=1)  # the follower gets the new epoch before its leader does
        await world.produce(b"b", acks=1)
        await asyncio.sleep(1.0)
        assert world.values(2) == [b"a"], "neither cut nor fetched meanwhile"
        await world.announce(only=1)
        await world.until_equal(1, 2)
        assert world.values(2) == [b"a", b"b"]

    run(scenario())
