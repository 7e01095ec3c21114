"""Whole clusters under random faults; see `tests/support/random_faults.py` for what must hold."""

from collections.abc import Callable

import pytest
from barnabas_broker.replica.leader import leadership
from barnabas_broker.replica.leader.high_watermark import Progress
from barnabas_controller.eligibility import eligible_leader_replicas as eligible
from barnabas_controller.partitions.partition_state_machine import PartitionStateMachine

from tests.support.random_faults import RandomFaults, run_seed


def acknowledged(faults: RandomFaults) -> int:
    return sum(len(history.acked) for history in faults.histories.values())


@pytest.mark.parametrize("seed", range(5))
def test_nothing_acknowledged_is_lost_and_all_recovers(seed: int) -> None:
    assert acknowledged(run_seed(seed)) > 100


@pytest.mark.parametrize("seed", range(5, 8))
def test_nothing_acknowledged_is_lost_without_power_loss_either(seed: int) -> None:
    assert acknowledged(run_seed(seed, power_loss=False)) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_nothing_acknowledged_is_lost_in_many_runs(seed: int) -> None:
    run_seed(seed, steps=50)


def test_one_seed_is_one_exact_run() -> None:
    first, second = run_seed(3, steps=10), run_seed(3, steps=10)
    assert first.acts == second.acts
    assert first.histories == second.histories


def _let_earlier_incarnations_rule(patch: pytest.MonkeyPatch) -> None:
    """Plant the fault that brokers which restarted during a failover stay in the ISRs."""

    async def nothing(*_: object) -> None:
        return

    patch.setattr(PartitionStateMachine, "handle_unclean_shutdown", nothing)


def _trust_every_isr_member(patch: pytest.MonkeyPatch) -> None:
    """Plant the fault that a member of the ISR that lost power counts as complete."""
    patch.setattr(eligible, "may_have_lost_records", lambda *_: False)


def _commit_alone(patch: pytest.MonkeyPatch) -> None:
    """Plant the fault that the high watermark follows the leader's own log end."""

    def wrong(progress: Progress) -> int:
        return max(progress.high_watermark, progress.end_offset)

    patch.setattr(leadership, "next_high_watermark", wrong)


@pytest.mark.parametrize("seed", range(5))
def test_nothing_acknowledged_is_lost_when_sessions_alone_detect_deaths(seed: int) -> None:
    assert acknowledged(run_seed(seed, detection="session")) > 100


@pytest.mark.parametrize(
    "plant", [_let_earlier_incarnations_rule, _trust_every_isr_member, _commit_alone]
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the time of writing the first seeds find each; more seeds are tried if they do not."""
    plant(monkeypatch)
    with pytest.raises((AssertionError, TimeoutError)):
        for seed in (0, 8, 13, 15, *range(16, 32)):
            run_seed(seed)
