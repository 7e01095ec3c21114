"""The last replica standing, told as schedules: with Kafka's behaviour each loses, by ours none.

Whole clusters on virtual time, their disks forgetting at a power loss what was not flushed.
"""

from collections.abc import Mapping

import pytest
from barnabas_simulator.loop import run

from tests.support.last_replica import Stage, numbers

SEEDS = range(4)
MAX_SECONDS = 600.0
NO_FSYNC = {"last.replica.fsync.enable": "false"}
NO_GATE = {"high.watermark.min.isr.gate.enable": "false"}


async def alone(seed: int, config: Mapping[str, str], min_isr: int) -> set[bytes]:
    """Followers fall behind, the leader stands alone, loses power and returns; what is missing."""
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
    """How much of a page cache survives is chance: one of some schedules shows it."""
    wanted = b"all-" if min_isr == 2 else b"alone-"  # even acks=all records, with two
    assert any(
        wanted in value
        for seed in range(16)
        for value in run(alone(seed, NO_FSYNC, min_isr), seed=seed, max_time=MAX_SECONDS)
    )


async def exposed(seed: int, config: Mapping[str, str]) -> tuple[set[bytes], set[bytes]]:
    """A record written with acks=1 to a thin ISR is lost: what of it was consumed before, and what
    of that is gone."""
    stage = Stage(seed, {**NO_FSYNC, **config}, min_isr=2)
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
def test_under_the_minimum_isr_nobody_sees_what_may_vanish(seed: int) -> None:
    consumed, _ = run(exposed(seed, {}), seed=seed, max_time=MAX_SECONDS)
    assert consumed and not of_the_thin_isr(consumed)


def test_without_the_gate_a_consumed_record_vanishes() -> None:
    runs = [run(exposed(seed, NO_GATE), seed=seed, max_time=MAX_SECONDS) for seed in SEEDS]
    assert all(of_the_thin_isr(consumed) for consumed, _ in runs)
    assert any(of_the_thin_isr(vanished) for _, vanished in runs)
