"""Schedules of the last replica standing: Kafka's behaviour loses records in each, ours in none.

Whole clusters run on virtual time. At a power loss their disks lose what was not flushed.
"""

import asyncio
from collections.abc import Mapping

import pytest
from barnabas_controller.eligibility.eligible_leader_replicas import lost_members
from barnabas_simulator.campaign.state import registered
from barnabas_simulator.loop import VirtualClock, run

from tests.support.last_replica import TP, Stage, numbers

SEEDS = range(4)
MAX_SECONDS = 600.0
NO_FSYNC = {"last.replica.fsync.enable": "false"}
NO_ELIGIBLE = {"eligible.leader.replicas.enable": "false"}
KAFKA = {**NO_FSYNC, **NO_ELIGIBLE}
NO_GATE = {"high.watermark.min.isr.gate.enable": "false"}


async def alone(seed: int, config: Mapping[str, str], min_isr: int) -> set[bytes]:
    """Followers fall behind; the leader is alone, loses power, returns.

    Returns the missing values.
    """
    stage = Stage(seed, config, min_isr)
    await stage.open()
    acknowledged = await stage.produce(numbers("all-"))
    stage.isolate(stage.leader)
    await stage.produce([b"behind"], acks=1)
    await stage.until_isr(stage.leader)
    acknowledged |= await stage.produce(numbers("alone-"), acks="all" if min_isr == 1 else 1)
    stage.lose_power(stage.leader)
    stage.cluster.start_broker(stage.leader)
    await stage.until_led()
    await stage.until_whole()
    return acknowledged - await stage.consume()


@pytest.mark.parametrize("min_isr", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_last_replica_that_flushed_returns_with_everything(seed: int, min_isr: int) -> None:
    assert not run(alone(seed, {}, min_isr), seed=seed, max_time=MAX_SECONDS)


@pytest.mark.parametrize("min_isr", [1, 2])
def test_a_last_replica_that_trusts_its_page_cache_loses(min_isr: int) -> None:
    """How much of a page cache survives is random: one of several schedules shows the loss."""
    wanted = b"all-" if min_isr == 2 else b"alone-"  # even acks=all records, with two
    assert any(
        wanted in value
        for seed in range(16)
        for value in run(alone(seed, KAFKA, min_isr), seed=seed, max_time=MAX_SECONDS)
    )


async def exposed(seed: int, config: Mapping[str, str]) -> tuple[set[bytes], set[bytes]]:
    """Records written with acks=1 while the ISR is below the minimum are lost.

    Returns those that were consumed before, and those of them that are gone.
    """
    stage = Stage(seed, {**KAFKA, **config}, min_isr=2)
    await stage.open()
    await stage.produce(numbers("all-"))
    stage.isolate(stage.leader)
    await stage.produce([b"behind"], acks=1)
    await stage.until_isr(stage.leader)
    await stage.produce(numbers("alone-"), acks=1)
    consumed = await stage.consume()
    stage.lose_power(stage.leader)
    stage.cluster.start_broker(stage.leader)
    await stage.until_led()
    await stage.until_whole()
    return consumed, consumed - await stage.consume()


def of_the_thin_isr(values: set[bytes]) -> set[bytes]:
    return {value for value in values if value.startswith(b"alone-")}


@pytest.mark.parametrize("seed", SEEDS)
def test_under_the_minimum_isr_no_one_sees_what_may_vanish(seed: int) -> None:
    consumed, _ = run(exposed(seed, {}), seed=seed, max_time=MAX_SECONDS)
    assert consumed and not of_the_thin_isr(consumed)


def test_without_the_gate_a_consumed_record_vanishes() -> None:
    runs = [run(exposed(seed, NO_GATE), seed=seed, max_time=MAX_SECONDS) for seed in SEEDS]
    assert all(of_the_thin_isr(consumed) for consumed, _ in runs)
    assert any(of_the_thin_isr(vanished) for _, vanished in runs)


async def all_gone(
    seed: int, config: Mapping[str, str], order: str, pause: float, returning: int = 3
) -> tuple[set[bytes], float]:
    """The last member of the ISR loses power; the others were killed, and their disks are intact.

    After a pause they return one by one, `last` or `others` first. Returns the missing values, and
    the seconds until there was a leader.
    """
    stage = Stage(seed, {**NO_FSYNC, **config}, min_isr=2)
    await stage.open()
    acknowledged = await stage.produce(numbers("all-"))
    stage.isolate(stage.leader)
    await stage.produce([b"behind"], acks=1)
    await stage.until_isr(stage.leader)
    stage.kill(*stage.others)
    stage.lose_power(stage.leader)
    returns = [stage.leader, *stage.others]
    if order == "others":
        returns.reverse()
    await asyncio.sleep(pause)
    began = asyncio.get_running_loop().time()
    for broker_id in returns[:returning]:
        await asyncio.sleep(2.0)
        stage.cluster.start_broker(broker_id)
        await stage.cluster.serving()
    await stage.until_led()
    took = asyncio.get_running_loop().time() - began
    missing = acknowledged - await stage.consume() if returning > 1 else set()
    return missing, took


@pytest.mark.parametrize("pause", [0.0, 10.0], ids=["within-the-session", "later"])
@pytest.mark.parametrize("order", ["last", "others"])
@pytest.mark.parametrize("seed", SEEDS)
def test_who_left_with_everything_is_eligible_for_a_last_member_that_lost(
    seed: int, order: str, pause: float
) -> None:
    lost, took = run(all_gone(seed, {}, order, pause), seed=seed, max_time=MAX_SECONDS)
    assert not lost and took < 20


@pytest.mark.parametrize("order", ["last", "others"])
def test_by_the_isr_alone_the_last_member_rules_over_those_who_have_more(order: str) -> None:
    runs = [run(all_gone(s, NO_ELIGIBLE, order, 9.0), seed=s, max_time=MAX_SECONDS) for s in SEEDS]
    assert any(lost for lost, _ in runs)


@pytest.mark.parametrize("rate", [1.0, 0.9999], ids=["exact", "timers fire early"])
def test_no_one_is_waited_for_longer_than_was_said(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others never return: after the wait the last member leads with the records it has.

    A timer of uvloop may fire up to a millisecond before the clock says that it is due.
    """
    monotonic = VirtualClock.monotonic
    monkeypatch.setattr(VirtualClock, "monotonic", lambda clock: monotonic(clock) * rate)
    config = {"eligible.leader.replicas.wait.ms": "20000"}
    _, took = run(all_gone(1, config, "last", 9.0, returning=1), seed=1, max_time=MAX_SECONDS)
    assert 20 < took < 40


async def triple_fault(seed: int, config: Mapping[str, str]) -> set[bytes]:
    """Before any controller can act, it dies, one member restarts, and another loses power."""
    stage = Stage(seed, config, min_isr=2)
    await stage.open()
    acknowledged = await stage.produce(numbers("all-"))
    stage.kill(stage.leader)
    stage.lose_power(stage.others[0])  # the next in the order of the assignment
    stage.kill(stage.others[1])
    for broker_id in stage.others:
        stage.cluster.start_broker(broker_id)
    await stage.until_led()
    stage.cluster.start_broker(stage.leader)
    await stage.until_whole()
    return acknowledged - await stage.consume()


@pytest.mark.parametrize("seed", SEEDS)
def test_of_two_that_restarted_the_one_that_kept_its_log_leads(seed: int) -> None:
    assert not run(triple_fault(seed, {}), seed=seed, max_time=MAX_SECONDS)


def test_of_two_that_restarted_kafka_takes_the_first() -> None:
    assert any(run(triple_fault(seed, KAFKA), seed=seed, max_time=MAX_SECONDS) for seed in SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("thin", [False, True])
def test_after_kill_9_of_all_every_order_brings_the_partition_back_at_once(
    seed: int, thin: bool
) -> None:
    """The disks are intact: the first member of the ISR to return leads, without any wait."""

    async def story() -> None:
        stage = Stage(seed, {}, min_isr=2)
        await stage.open()
        acknowledged = await stage.produce(numbers("all-"))
        if thin:
            stage.isolate(stage.leader)
            acknowledged |= await stage.produce([b"behind"], acks=1)
            await stage.until_isr(stage.leader)
        first = stage.leader if thin else stage.others[seed % 2]
        stage.kill(*stage.cluster.running_brokers)
        await asyncio.sleep(10.0)
        stage.cluster.start_broker(first)
        began = asyncio.get_running_loop().time()
        assert await stage.until_led() == first
        assert asyncio.get_running_loop().time() - began < 3.0
        for broker_id in stage.cluster.broker_ids:
            if broker_id != first:
                stage.cluster.start_broker(broker_id)
        await stage.until_whole()
        assert acknowledged <= await stage.consume()

    run(story(), seed=seed, max_time=MAX_SECONDS)


def test_one_replica_is_all_there_ever_was() -> None:
    """With one replica nothing is flushed specially, and it leads again after a power loss."""

    async def story() -> None:
        stage = Stage(1, {}, min_isr=1, replicas=1)
        await stage.open()
        await stage.produce(numbers("all-"))
        log = stage.cluster.broker(stage.leader).log_manager.get(TP)
        assert log is not None and log.recovery_point == 0
        stage.lose_power(stage.leader)
        await asyncio.sleep(10.0)
        began = asyncio.get_running_loop().time()
        stage.cluster.start_broker(stage.leader)
        await stage.until_led()
        assert asyncio.get_running_loop().time() - began < 3.0

    run(story(), seed=1, max_time=MAX_SECONDS)


async def window(seed: int, config: Mapping[str, str], min_isr: int) -> set[bytes]:
    """The controller removes the others, which died; the leader loses power before its flush ends.

    The others return first, with intact disks. Returns the missing values.
    """
    stage = Stage(seed, config, min_isr)
    await stage.open()
    acknowledged = await stage.produce(numbers("all-"))
    stage.kill(*stage.others)
    await stage.until(lambda: stage.state().isr == (stage.leader,), step=0.0001)
    assert not stage.state().durable
    stage.lose_power(stage.leader)
    for broker_id in (*stage.others, stage.leader):
        stage.cluster.start_broker(broker_id)
    await stage.until_led()
    await stage.until_whole()
    return acknowledged - await stage.consume()


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", SEEDS)
def test_before_the_last_member_has_flushed_those_who_just_left_are_eligible(seed: int) -> None:
    assert not run(window(seed, {}, 2), seed=seed, max_time=MAX_SECONDS)


@pytest.mark.lengthy
@pytest.mark.parametrize(("config", "min_isr"), [(NO_ELIGIBLE, 2), ({}, 1)])
def test_flushing_alone_leaves_a_window(config: Mapping[str, str], min_isr: int) -> None:
    """So does a minimum ISR of 1: no replica is eligible, as the high watermark may have moved."""
    assert any(run(window(s, config, min_isr), seed=s, max_time=MAX_SECONDS) for s in SEEDS)


async def told(seed: int) -> list[tuple[str, str]]:
    """Return kinds and causes of the events about a last replica."""
    stage = Stage(seed, {}, min_isr=2)
    await stage.open()
    await stage.produce(numbers("all-"))
    stage.isolate(stage.leader)
    await stage.produce([b"behind"], acks=1)
    await stage.until_isr(stage.leader)
    await stage.until(lambda: stage.state().durable)
    stage.rejoin(stage.leader)
    await stage.until_whole()
    events = stage.cluster.broker(stage.leader).events.since(0)
    return [(event.kind.value, event.cause) for event in events if "last-replica" in event.kind]


def test_it_tells_what_it_does_and_why() -> None:
    events = run(told(1), seed=1, max_time=MAX_SECONDS)
    kinds = [kind for kind, _ in events]
    assert kinds[0] == "last-replica-flushing" and kinds[-1] == "last-replica-relieved"
    assert "last-replica-durable" in kinds
    causes = dict(events)
    assert causes["last-replica-flushing"] == "about to ask for an ISR of 1, fewer than 2"
    assert causes["last-replica-durable"].startswith("all of the log is flushed, up to offset")


def test_a_broker_tells_a_loss_of_power_from_a_kill() -> None:
    async def story() -> None:
        stage = Stage(1, {}, min_isr=2)
        await stage.open()
        broker = stage.others[0]
        for end, power_was_lost in ((stage.lose_power, True), (stage.kill, False)):
            end(broker)
            stage.cluster.start_broker(broker)
            await stage.cluster.serving()
            (started, *_) = stage.cluster.broker(broker).events.since(0)
            assert started.kind == "broker-started"
            assert ("may have lost its power" in started.cause) is power_was_lost

    run(story(), seed=1, max_time=MAX_SECONDS)


@pytest.mark.parametrize("free_bytes", [0, 50, 60, 100])  # each fails at another step of the start
def test_a_broker_whose_disks_all_fail_at_its_start_is_not_taken_for_empty(free_bytes: int) -> None:
    """If it registered without its disks it would count as having lost everything.

    No broker would then wait for it, but a full disk still has its data.
    """

    async def story() -> None:
        stage = Stage(0, {}, min_isr=2)
        await stage.open()
        cluster, one = stage.cluster, stage.others[0]
        acknowledged = await stage.produce(numbers("all-"))
        stage.kill(one)
        await stage.until_isr(stage.leader, stage.others[1])
        cluster.disks[one].free_bytes = free_bytes
        cluster.start_broker(one)
        # the session of its last incarnation
        await stage.until(lambda: one not in registered(cluster))
        while one in cluster.running_brokers:
            told = registered(cluster).get(one)
            assert told is None or told.unbroken_since >= 0
            await asyncio.sleep(0.001)
        cluster.disks[one].free_bytes = None
        cluster.start_broker(one)
        await stage.until_whole()
        assert not acknowledged - await stage.consume()

    run(story(), max_time=MAX_SECONDS)


def test_where_all_lost_something_one_leads_and_the_others_prove_themselves_again() -> None:
    """Otherwise they would stay in sync, but could never lead again."""

    async def story() -> None:
        stage = Stage(0, {}, min_isr=2)
        await stage.open()
        await stage.produce(numbers("all-"))
        members = (stage.leader, *stage.others)
        stage.lose_power(*members)
        for broker_id in members:
            stage.cluster.start_broker(broker_id)
        await stage.until_led()
        await stage.until_whole()
        assert not lost_members(stage.state(), registered(stage.cluster))

    run(story(), max_time=MAX_SECONDS)


@pytest.mark.parametrize("place", range(3))
def test_where_all_lost_something_the_newest_log_leads(place: int) -> None:
    """All machines lose power, and only one of them had flushed what was acknowledged."""

    async def story() -> None:
        stage = Stage(0, {"log.flush.scheduler.interval.ms": str(2**62)}, min_isr=2)
        await stage.open()
        acknowledged = await stage.produce(numbers("all-"))
        members = (stage.leader, *stage.others)
        log_manager = stage.cluster.broker(members[place]).log_manager
        await log_manager.flush(stage.log(members[place]))
        stage.lose_power(*members)
        for broker_id in members:
            stage.cluster.start_broker(broker_id)
        assert await stage.until_led() == members[place]
        await stage.until_whole()
        assert acknowledged == await stage.consume()

    run(story(), max_time=MAX_SECONDS)
