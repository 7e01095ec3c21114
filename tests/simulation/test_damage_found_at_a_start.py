"""All brokers have stopped, and the log of one of them is damaged before they start again."""

import asyncio
from enum import StrEnum

import pytest
from barnabas_broker.log.recovery import log_loader
from barnabas_common.events import EventKind
from barnabas_common.record.batch import batches
from barnabas_simulator.loop import run

from tests.support.last_replica import Stage, numbers
from tests.support.log_world import read_all, values_in
from tests.support.whole_cluster import TP

SEEDS = range(4)
FOLDER = f"/data/{TP.topic}-{TP.partition}"
LOG = f"{FOLDER}/{0:020}.log"


def place(stage: Stage, broker_id: int, batch: int) -> tuple[int, int]:
    """Where a batch is in a broker's log, and its size."""
    data = bytes(stage.cluster.disks[broker_id].look_into(FOLDER)[f"{0:020}.log"].data)
    position, header = list(batches(data))[batch]
    return position, header.size


async def missing(seed: int, batch: int) -> set[bytes]:
    """A bit changes above the high watermark in the checkpoint; that broker starts first.

    Returns the acknowledged values that are gone."""
    stage = Stage(seed, {}, min_isr=2)
    await stage.open()
    acknowledged = await stage.produce(numbers("all-"))
    stage.kill(*stage.cluster.running_brokers)
    damaged = stage.others[0]
    position, size = place(stage, damaged, batch)
    stage.cluster.disks[damaged].flip(LOG, position + size - 2, seed % 8)
    for broker_id in (damaged, stage.leader, stage.others[1]):
        stage.cluster.start_broker(broker_id)
        await asyncio.sleep(8.0)
    await stage.until_whole()
    lost = [e for e in stage.cluster.events() if e.kind is EventKind.REPLICA_LOST]
    assert [(e.broker_id, e.topic_partition) for e in lost][:1] in ([], [(damaged, TP)])
    return acknowledged - await stage.consume()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("batch", [-1, -5, 3])
def test_no_acknowledged_record_is_lost(batch: int, seed: int) -> None:
    assert not run(missing(seed, batch), seed=seed, max_time=600)


def test_a_start_that_truncates_there_loses_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_loader, "_check_may_end", lambda *_: None)
    assert all(run(missing(seed, -5), seed=seed, max_time=600) for seed in SEEDS)


class Damage(StrEnum):
    FLIPPED = "a bit has changed"
    SHORT = "its last batches are gone"
    EMPTY = "its segment is empty"
    GONE = "its segment is gone"
    ALL_GONE = "all its files are gone"


def do_damage(stage: Stage, broker_id: int, damage: Damage) -> None:
    disk = stage.cluster.disks[broker_id]
    position, size = place(stage, broker_id, 5)
    if damage is Damage.FLIPPED:
        disk.flip(LOG, position + size - 2, 0)
    elif damage in (Damage.SHORT, Damage.EMPTY):
        disk.open(LOG).truncate(position if damage is Damage.SHORT else 0)
    else:
        names = disk.list(FOLDER) if damage is Damage.ALL_GONE else [f"{0:020}.log"]
        for name in names:
            disk.remove(f"{FOLDER}/{name}")


async def missing_after_start(stage: Stage, acknowledged: set[bytes]) -> set[bytes]:
    """The broker with the damage leads by the assignment. Returns the values that are gone."""
    for broker_id in (stage.leader, *stage.others):
        stage.cluster.start_broker(broker_id)
    await stage.until(lambda: stage.state().leader in stage.others)
    await stage.until_whole()
    return acknowledged - await stage.consume()


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("damage", [one for one in Damage if one is not Damage.FLIPPED])
def test_a_log_that_is_empty_or_short_takes_no_acknowledged_record_with_it(
    damage: Damage, is_clean: bool
) -> None:
    async def damaged() -> set[bytes]:
        stage = Stage(1, {}, min_isr=2)
        await stage.open()
        acknowledged = await stage.produce(numbers("all-"))
        await asyncio.sleep(6.0)  # the high watermark is in the checkpoint
        if is_clean:  # the leader is the last, alone in the ISR
            for broker_id in (*stage.others, stage.leader):
                await stage.cluster.stop_broker(broker_id)
        else:
            stage.kill(*stage.cluster.running_brokers)
        do_damage(stage, stage.leader, damage)
        return await missing_after_start(stage, acknowledged)

    assert not run(damaged(), max_time=600)


@pytest.mark.parametrize(("is_clean", "seconds"), [(False, 6), (False, 75), (True, 6)])
@pytest.mark.parametrize("damage", [Damage.EMPTY, Damage.GONE, Damage.ALL_GONE])
@pytest.mark.parametrize("number", [0, 2])
def test_a_segment_that_is_missing_is_fetched_again(
    number: int, damage: Damage, is_clean: bool, seconds: float
) -> None:
    """Also one below the recovery point, which no start reads: that is known after 75 s."""

    async def damaged() -> set[bytes]:
        stage = Stage(1, {"log.segment.bytes": "1024"}, min_isr=2)
        await stage.open()
        acknowledged = await stage.produce(numbers("all-", 60))
        await asyncio.sleep(seconds)
        if is_clean:
            for broker_id in (*stage.others, stage.leader):
                await stage.cluster.stop_broker(broker_id)
        else:
            stage.kill(*stage.cluster.running_brokers)
        disk = stage.cluster.disks[stage.leader]
        segment = [name for name in disk.list(FOLDER) if name.endswith(".log")][number]
        for name in disk.list(FOLDER):
            if damage is Damage.EMPTY and name == segment:
                disk.open(f"{FOLDER}/{name}").truncate(0)
            elif name == segment or (
                damage is Damage.ALL_GONE and name.startswith(segment.removesuffix(".log"))
            ):
                disk.remove(f"{FOLDER}/{name}")
        gone = await missing_after_start(stage, acknowledged)
        for broker_id in stage.cluster.broker_ids:
            assert set(values_in(read_all(stage.log(broker_id)))) == acknowledged
        return gone

    assert not run(damaged(), seed=1, max_time=600)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("damage", [Damage.FLIPPED, Damage.SHORT])
def test_after_a_power_loss_nothing_flushed_is_missing(damage: Damage, seed: int) -> None:
    """All lost their power, so none counts as complete; but all had flushed everything."""

    async def damaged() -> set[bytes]:
        stage = Stage(seed, {"log.flush.interval.messages": "1"}, min_isr=2)
        await stage.open()
        acknowledged = await stage.produce(numbers("all-"))
        await asyncio.sleep(75.0)  # the recovery point is in the checkpoint
        stage.lose_power(*stage.cluster.running_brokers)
        do_damage(stage, stage.leader, damage)
        return await missing_after_start(stage, acknowledged)

    assert not run(damaged(), seed=seed, max_time=600)


def test_after_a_power_loss_a_member_without_its_log_is_not_elected() -> None:
    async def without() -> set[bytes]:
        stage = Stage(1, {"log.flush.interval.messages": "1"}, min_isr=2)
        await stage.open()
        acknowledged = await stage.produce(numbers("all-"))
        await asyncio.sleep(75.0)
        stage.lose_power(*stage.cluster.running_brokers)
        stage.cluster.disks[stage.leader].remove_tree(FOLDER)
        return await missing_after_start(stage, acknowledged)

    assert not run(without(), seed=1, max_time=600)


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_damaged_log_without_replicas_is_given_up_as_the_documentation_says(
    is_clean: bool,
) -> None:
    async def given_up() -> set[bytes]:
        stage = Stage(1, {}, min_isr=1, replicas=1)
        await stage.open()
        await stage.produce(numbers("all-"))
        stage.kill(stage.leader)
        disk = stage.cluster.disks[stage.leader]
        do_damage(stage, stage.leader, Damage.FLIPPED)
        stage.cluster.start_broker(stage.leader)
        await stage.until(lambda: stage.state().leader == -1)
        if is_clean:
            await stage.cluster.stop_broker(stage.leader)
        else:
            stage.kill(stage.leader)
        for name in (".barnabas_history", ".kafka_cleanshutdown"):
            disk.remove(f"/data/{name}")
        stage.cluster.start_broker(stage.leader)
        await stage.until_led()
        return await stage.consume()

    assert run(given_up(), seed=1, max_time=600) == set(numbers("all-", 5))
