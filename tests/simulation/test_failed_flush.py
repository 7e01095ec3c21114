"""A failed flush: the page cache still has records that are not on the disk.

Linux marks the pages of a failed fsync clean. Here one broker of a whole cluster restarts on such a
disk, on virtual time. Each half of the remedy is removed once, and then acknowledged records are
lost.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from barnabas_broker.log.manager import directory_loader, log_directory
from barnabas_broker.log.recovery import log_loader
from barnabas_broker.log.recovery.log_history import HistoryNote, LogHistory, history_of
from barnabas_common.errors import CorruptMessageError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_simulator.loop import run

from tests.support.last_replica import TP, Stage, numbers
from tests.support.log_world import values_in
from tests.support.replication_world import ReplicationWorld

SEEDS = range(4)
MAX_SECONDS = 600.0
CHECKPOINT_SECONDS = 70.0


async def fail_a_flush(stage: Stage, broker_id: int) -> None:
    """Roll the broker's log; the flush fails, and the broker ends because it has no other disk."""
    disk = stage.cluster.disks[broker_id]
    disk.fail_next_flush = True
    stage.log(broker_id).roll()
    await stage.until(lambda: broker_id not in stage.cluster.running_brokers)
    assert not disk.fail_next_flush


async def trusted_alone(seed: int) -> set[bytes]:
    """A broker restarts on the disk, becomes the last of the ISR, and loses power.

    The others, which never lost anything, follow it. Returns the missing values.
    """
    stage = Stage(seed, {}, min_isr=2)
    await stage.open()
    acknowledged = await stage.produce(numbers("all-"))
    last = stage.others[0]
    await fail_a_flush(stage, last)
    stage.cluster.start_broker(last)
    await stage.until_whole()
    stage.kill(stage.others[1])
    await stage.until_isr(stage.leader, last)
    stage.kill(stage.leader)
    await stage.until_isr(last)
    await stage.until(lambda: stage.state().durable)
    stage.lose_power(last)
    stage.cluster.start_broker(last)
    assert await stage.until_led() == last
    stage.cluster.start_broker(stage.leader)
    stage.cluster.start_broker(stage.others[1])
    await stage.until_whole()
    return acknowledged - await stage.consume()


async def evicted(seed: int) -> set[bytes]:
    """All brokers are killed when the flush fails, and the page cache evicts the clean pages.

    The broker with that disk is the first to return. Returns the missing values.
    """
    stage = Stage(seed, {}, min_isr=2)
    await stage.open()
    acknowledged = await stage.produce(numbers("all-"))
    doubtful = stage.others[0]
    disk = stage.cluster.disks[doubtful]
    disk.fail_next_flush = True
    stage.log(doubtful).roll()
    await stage.until(lambda: not disk.fail_next_flush, step=0.0001)
    stage.kill(*stage.cluster.running_brokers)
    disk.evict()
    for broker_id in (doubtful, stage.leader, stage.others[1]):
        stage.cluster.start_broker(broker_id)
        await asyncio.sleep(8.0)
    await stage.until_whole()
    return acknowledged - await stage.consume()


async def passed_by(seed: int) -> set[bytes]:
    """A later flush succeeds, the recovery point passes the data, and then the power fails.

    Returns the values that the broker's own log lacks before it has fetched anything.
    """
    stage = Stage(seed, {}, min_isr=2)
    await stage.open()
    acknowledged = await stage.produce(numbers("all-"))
    victim = stage.others[0]
    await fail_a_flush(stage, victim)
    stage.cluster.start_broker(victim)
    await stage.until_whole()
    log = stage.log(victim)
    await stage.cluster.broker(victim).log_manager.flush(log)
    assert log.recovery_point == log.log_end_offset
    await asyncio.sleep(CHECKPOINT_SECONDS)
    stage.lose_power(victim)
    stage.isolate(stage.leader)
    stage.cluster.start_broker(victim)
    await stage.cluster.serving()
    found = stage.cluster.broker(victim).log_manager.get(TP)
    if found is None:  # it ends below its recovery point, and is refused
        return acknowledged
    with suppress(CorruptMessageError):
        acknowledged.difference_update(values_in(found.read(0, 1 << 20, found.log_end_offset)))
    return acknowledged


Story = Callable[[int], Coroutine[Any, Any, set[bytes]]]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("story", [trusted_alone, evicted, passed_by])
def test_nothing_that_was_acknowledged_is_lost(story: Story, seed: int) -> None:
    assert not run(story(seed), seed=seed, max_time=MAX_SECONDS)


@pytest.mark.parametrize("story", [trusted_alone, passed_by])
def test_without_a_copy_the_fsyncs_that_follow_lie(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_loader, "rewrite_unflushed", lambda *_: None)
    assert any(run(story(seed), seed=seed, max_time=MAX_SECONDS) for seed in SEEDS)


def test_a_broker_that_reports_its_page_cache_as_durable_leads_those_who_have_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def believing(note: HistoryNote | None, boot: str, in_order: bool, *_: bool) -> LogHistory:
        return history_of(note, boot, in_order)

    monkeypatch.setattr(log_directory, "history_of", believing)
    assert not any(run(evicted(seed), seed=seed, max_time=MAX_SECONDS) for seed in SEEDS)
    # A start that does not know of a power loss truncates no zeros. Kafka's does.
    monkeypatch.setattr(log_loader, "_check_may_end", lambda *_: None)
    assert any(run(evicted(seed), seed=seed, max_time=MAX_SECONDS) for seed in SEEDS)


def test_records_are_replicated_although_the_flush_after_their_append_has_failed() -> None:
    """For want of a descriptor: the disk works on, and no append follows that would wake them."""

    async def scenario() -> None:
        world = ReplicationWorld(topic={"flush.messages": "2"})
        await world.start(1, 2, 3)
        await world.create(1, 2, 3)
        assert (await world.produce(b"a")).error_code == ErrorCode.NONE
        await world.until_equal(1, 2, 3)
        await asyncio.sleep(5)  # the fetches have nothing more to look for here
        world.disks[1].no_descriptors = True
        refused = await world.produce(b"b", timeout_ms=1000)
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        world.disks[1].no_descriptors = False
        await world.until(lambda: world.values(2) == world.values(3) == [b"a", b"b"], timeout=2)
        await world.until(lambda: world.log(1).high_watermark == 2)

    run(scenario(), max_time=MAX_SECONDS)
