"""All brokers are killed, and a bit changes in a log above the high watermark in the checkpoint."""

import asyncio

import pytest
from barnabas_broker.log.recovery import log_loader
from barnabas_common.events import EventKind
from barnabas_common.record.batch import batches
from barnabas_simulator.loop import run

from tests.support.last_replica import Stage, numbers
from tests.support.whole_cluster import TP

SEEDS = range(4)


async def missing(seed: int, batch: int) -> set[bytes]:
    """The broker with the damage starts first. Returns the acknowledged values that are gone."""
    stage = Stage(seed, {}, min_isr=2)
    await stage.open()
    acknowledged = await stage.produce(numbers("all-"))
    stage.kill(*stage.cluster.running_brokers)
    damaged = stage.others[0]
    folder = f"/data/{TP.topic}-{TP.partition}"
    data = bytes(stage.cluster.disks[damaged].look_into(folder)[f"{0:020}.log"].data)
    position, header = list(batches(data))[batch]
    stage.cluster.disks[damaged].flip(f"{folder}/{0:020}.log", position + header.size - 2, seed % 8)
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
