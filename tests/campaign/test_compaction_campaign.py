"""Compaction as a campaign runs it: under faults of the disk, and against the cleaner's bugs."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest
from barnabas import Admin, Producer
from barnabas_common.events import EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind
from barnabas_simulator.campaign.options import Mode, Options
from barnabas_simulator.campaign.schedule import Outcome, run_schedule
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import Invariants, InvariantViolation
from barnabas_simulator.labels import headers_of, is_tombstone, key_of, keyed_label
from barnabas_simulator.loop import run

from tests.support.cleaner_bugs import CLEANER_BUGS

COMPACTED = Options(
    seed=7,
    chaos_seconds=20.0,
    partitions=1,
    has_admin=False,
    pause=0.1,
    segment_bytes=512,
    cleanup_policy="compact",
    keys=3,
    tombstones=0.2,
    delete_retention_ms=2_000,
    dirty_ratio=0.01,
    cleaner_backoff_ms=500,
    cleaner_buffer_bytes=300,
)
PASSES = f"event: {EventKind.LOG_COMPACTED}"
TP = TopicPartition("prices", 0)


def test_a_third_of_the_runs_or_more_are_compacted_in_every_way() -> None:
    drawn = [Options.draw(seed, Mode.SAFETY) for seed in range(300)]
    compacted = [options for options in drawn if options.is_compacted]
    assert len(drawn) / 3 < len(compacted) < len(drawn) / 2
    assert {one.cleanup_policy for one in compacted} == {"compact", "compact,delete"}
    assert all(one.topic_config["cleanup.policy"] == one.cleanup_policy for one in compacted)
    assert all("cleanup.policy" not in one.topic_config for one in drawn if one not in compacted)


@pytest.mark.parametrize(
    ("kind", "policy"),
    [
        (FaultKind.KILL, "compact"),
        (FaultKind.LOSE_POWER, "compact,delete"),
        (FaultKind.FAIL_WRITE, "compact"),
        (FaultKind.FAIL_FLUSH, "compact,delete"),
        (FaultKind.DISK_FULL, "compact"),
        (FaultKind.WIPE, "compact,delete"),
        (FaultKind.LOSE_FOLDER, "compact"),
        (FaultKind.SPOIL_CHECKPOINT, "compact,delete"),
    ],
)
def test_passes_under_each_fault_of_the_disk(kind: FaultKind, policy: str) -> None:
    """The throttle lets a pass take seconds, so that most faults meet one."""
    options = replace(COMPACTED, cleanup_policy=policy, cleaner_bytes_per_second=4_000)
    faults = [Fault(1.0 + 2.0 * n, kind, "leader" if n % 2 else "2", "", 1.0) for n in range(9)]
    outcome = run_schedule(options, faults)
    assert outcome.violation is None
    assert outcome.counts[f"fault: {kind}"] > 2
    assert outcome.counts[PASSES] > 10


def found(outcome: Outcome, *clauses: str) -> bool:
    return outcome.violation is not None and all(one in outcome.violation for one in clauses)


BUSY = replace(COMPACTED, producers=2, segment_bytes=300, lag_max_ms=10_000)
LAG = [Fault(1.0 + 4.0 * n, FaultKind.CUT, "2", "1", 3.0) for n in range(4)]
"""The high watermark waits, while segments are sealed that are not committed."""


@pytest.mark.parametrize("faults", [[], LAG], ids=["calm", "lag"])
def test_without_a_bug_nothing_is_found(faults: Sequence[Fault]) -> None:
    assert run_schedule(BUSY, faults).violation is None


CAUGHT: list[tuple[str, Sequence[Fault], list[str]]] = [
    ("C1", [], ["I25", "is below the clean offset"]),
    ("C2", [], ["I25", "is the newest of its key", "delete horizon is None"]),
    ("C3", [], ["I25", "ms after it was sent"]),
    ("C4", LAG, ["I25", "is the newest of its key"]),
    ("C5", [], ["I25", "is below the clean offset"]),
    ("C6", [], ["I25", "ms after it was sent"]),
    ("C7", [], ["I25", "is the newest of its key"]),
]
DIRECTED = {"C8"}


def test_every_bug_of_the_cleaner_has_a_schedule_that_always_catches_it() -> None:
    assert {bug for bug, _, _ in CAUGHT} | DIRECTED == CLEANER_BUGS.keys()


@pytest.mark.parametrize(("bug", "faults", "clauses"), CAUGHT, ids=[bug for bug, _, _ in CAUGHT])
def test_a_bug_of_the_cleaner_is_found_at_once(
    bug: str, faults: Sequence[Fault], clauses: list[str]
) -> None:
    with CLEANER_BUGS[bug].planted():
        outcome = run_schedule(BUSY, faults)
    assert found(outcome, *clauses), outcome.violation


# ---- directed


async def started(seed: int) -> tuple[SimulatedCluster, Invariants]:
    cluster = SimulatedCluster(seed, config={"log.cleaner.backoff.ms": "500"})
    checker = Invariants(cluster, delete_retention_ms={TP.topic: 1_000})
    checker.install()
    await cluster.start()
    configs = {
        "cleanup.policy": "compact",
        "segment.bytes": "600",
        "delete.retention.ms": "1000",
        "min.cleanable.dirty.ratio": "0.01",
        "min.insync.replicas": "2",
    }
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(TP.topic, 1, 3, configs=configs)
    return cluster, checker


async def produce(cluster: SimulatedCluster, checker: Invariants, numbers: range) -> None:
    """Few keys, one of which is written only once."""
    async with Producer(cluster.bootstrap, runtime=cluster.client_runtime("producer")) as producer:
        for number in numbers:
            key = b"once" if number == 0 else b"key-%d" % (number % 5)
            label = keyed_label(b"p/%d" % number, key, number % 7 == 6)
            value = None if is_tombstone(label) else label
            checker.sent(TP, label)
            done = await producer.send_and_wait(
                TP.topic, value, key_of(label), 0, headers=headers_of(label)
            )
            checker.acked(TP, done.offset, label)


async def compacted(cluster: SimulatedCluster, passes: int) -> None:
    def count(broker_id: int) -> int:
        events = cluster.broker(broker_id).events.since(0)
        return sum(event.kind is EventKind.LOG_COMPACTED for event in events)

    while not all(count(one) >= passes for one in cluster.running_brokers):
        await asyncio.sleep(0.1)


async def a_replacement_that_stops_half_way() -> None:
    """The disk of a follower fails when the first of the old segments has lost its name; the next
    process finds a working disk."""
    cluster, checker = await started(seed=1)
    await produce(cluster, checker, range(30))
    await compacted(cluster, 1)
    victim = next(one for one in cluster.broker_ids if one != checker.state_of(TP).leader)
    disk = cluster.disks[victim]
    renamed = disk.on_rename

    def fail(path: str) -> None:
        renamed(path)
        if path.endswith(".log.deleted"):
            disk.broken = any(name.endswith(".swap") for name in disk.look_into("/data/prices-0"))

    disk.on_rename = fail
    await produce(cluster, checker, range(30, 60))
    while victim in cluster.running_brokers:
        await asyncio.sleep(0.1)
    assert any(name.endswith(".swap") for name in disk.look_into("/data/prices-0"))
    disk.on_rename = renamed
    disk.repair()
    cluster.start_broker(victim)
    await cluster.serving()
    await checker.at_rest()
    await produce(cluster, checker, range(60, 90))
    await compacted(cluster, 1)
    await checker.at_rest()


def test_a_replacement_that_stops_half_way_is_completed_by_the_next_start() -> None:
    logging.disable(logging.CRITICAL)
    try:
        run(a_replacement_that_stops_half_way(), seed=1, max_time=600.0)
        with CLEANER_BUGS["C8"].planted(), pytest.raises(InvariantViolation, match="I25"):
            run(a_replacement_that_stops_half_way(), seed=1, max_time=600.0)
    finally:
        logging.disable(logging.NOTSET)
