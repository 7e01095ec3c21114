"""Short runs in steps: a fault about every second, on brokers, links, sessions and power."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from barnabas_broker.replica.leader import leadership
from barnabas_broker.replica.leader.high_watermark import Progress
from barnabas_controller.eligibility import eligible_leader_replicas as eligible
from barnabas_controller.partitions.partition_state_machine import PartitionStateMachine
from barnabas_simulator.campaign.faults.faults import FaultKind
from barnabas_simulator.campaign.many import mode_of, run_many, run_seed
from barnabas_simulator.campaign.options import STEPS_SECONDS, Mode, Options
from barnabas_simulator.campaign.plans.plan import plan
from barnabas_simulator.campaign.plans.steps import WEIGHTS
from barnabas_simulator.campaign.schedule import Outcome, run_schedule


def assert_held(outcomes: list[Outcome]) -> None:
    assert [(one.seed, one.violation) for one in outcomes if one.violation is not None] == []
    assert all(outcome.acked > 100 for outcome in outcomes)


def test_eight_runs_hold() -> None:
    assert_held(list(run_many(range(8), Mode.STEPS, jobs=2)))


@pytest.mark.slow
def test_a_hundred_more_hold_and_no_kind_of_step_was_left_out() -> None:
    outcomes = list(run_many(range(1_000, 1_100), Mode.STEPS, jobs=2))
    assert_held(outcomes)
    struck = {kind for kind in WEIGHTS for one in outcomes if one.counts[f"fault: {kind}"]}
    assert struck == set(WEIGHTS)


@pytest.mark.parametrize("detection", ["evidence", "session"])
def test_a_run_holds_with_either_detection_of_failures(detection: str) -> None:
    options = replace(Options.draw(11, Mode.STEPS), failure_detection=detection)
    assert_held([run_schedule(options, plan(options))])


def test_steps_follow_each_other_within_seconds_and_end_in_time() -> None:
    for seed in range(50):
        faults = plan(Options.draw(seed, Mode.STEPS))
        assert len(faults) > 5
        assert all(fault.at + fault.seconds <= STEPS_SECONDS for fault in faults)
        assert all(bool(f.target) is (f.kind is not FaultKind.KILL_ALL) for f in faults)


def test_by_default_a_tenth_of_the_runs_has_steps() -> None:
    modes = [mode_of(seed, None) for seed in range(30)]
    assert modes.count(Mode.STEPS) == 3
    assert modes.count(Mode.LIVENESS) == 9
    assert mode_of(9, Mode.SAFETY) is Mode.SAFETY


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


@pytest.mark.parametrize(
    "plant", [_let_earlier_incarnations_rule, _trust_every_isr_member, _commit_alone]
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among sixteen runs; the last first, because it shows the rarest of them today."""
    plant(monkeypatch)
    seeds = reversed(range(16))
    assert any(run_seed(seed, Mode.STEPS).violation is not None for seed in seeds)
