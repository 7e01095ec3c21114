"""Faults of disks and of power as a campaign makes them, and what is excused after them."""

from collections import Counter

import pytest
from barnabas_common.events import EventKind
from barnabas_simulator.campaign.faults.faults import DESTROYING, OF_DISKS, Fault, FaultKind
from barnabas_simulator.campaign.options import Mode, Options
from barnabas_simulator.campaign.plans.plan import plan
from barnabas_simulator.campaign.schedule import Outcome, run_schedule
from barnabas_simulator.invariants.excuses import LOST, Excuses

EXCUSED = f"excused: {LOST}"
UNCLEAN = "excused: unclean elections"


def small(**changes: object) -> Options:
    """A run of plain records, with small segments and few clients."""
    plain = Options(
        seed=4,
        chaos_seconds=30.0,
        has_admin=False,
        pause=0.1,
        segment_bytes=1_024,
        lag_max_ms=2_000,
    )
    return Options.from_json({**plain.to_json(), **changes})


def held(outcome: Outcome) -> Counter[str]:
    assert outcome.violation is None, outcome.violation
    return outcome.counts


@pytest.mark.parametrize(
    ("kind", "options", "seen"),
    [
        (FaultKind.FAIL_DIRECTORY, small(log_dirs=2), [EventKind.LOG_DIRECTORY_FAILED]),
        (
            FaultKind.NO_DESCRIPTORS,
            small(),
            [EventKind.DESCRIPTORS_EXHAUSTED, EventKind.DESCRIPTORS_FREED],
        ),
        (FaultKind.EVICT, small(), [EventKind.LOG_RECOVERED]),
        (FaultKind.ROT, small(), [EventKind.LOG_DAMAGED]),
        (FaultKind.ROT_INDEX, small(index_interval_bytes=100), []),
        (FaultKind.ROT_CHECKPOINT, small(), [EventKind.CHECKPOINT_DAMAGED]),
    ],
)
def test_a_fault_shows_in_what_the_brokers_tell(
    kind: FaultKind, options: Options, seen: list[EventKind]
) -> None:
    faults = [Fault(3.0 + 6.0 * n, kind, "leader", seconds=4.0) for n in range(2)]
    counts = held(run_schedule(options, faults))
    assert counts[f"fault: {kind}"] > 0
    assert [event for event in seen if not counts[f"event: {event}"]] == []
    assert not counts[EXCUSED]


def test_the_only_member_of_an_isr_with_a_damaged_log_gets_a_sound_one_in_the_end() -> None:
    """Nobody else may lead meanwhile: `docs/failures.md` leaves it to an operator."""
    faults = [
        Fault(7.0, FaultKind.ROT, "1"),
        Fault(7.1, FaultKind.KILL, "2", seconds=6.0),
        Fault(7.2, FaultKind.KILL, "3", seconds=6.0),
        Fault(12.0, FaultKind.KILL, "1", seconds=0.5),
    ]
    counts = held(run_schedule(small(lag_max_ms=1_000), faults))
    assert counts[f"event: {EventKind.REPLICA_LOST}"]
    assert counts[f"event: {EventKind.ELECTION_REFUSED}"]


def test_no_shortage_of_descriptors_takes_a_directory_out_of_use() -> None:
    faults = [Fault(2.0, FaultKind.NO_DESCRIPTORS, "leader", seconds=8.0)]
    counts = held(run_schedule(small(flush_all=True), faults))
    assert not counts[f"event: {EventKind.LOG_DIRECTORY_FAILED}"]
    assert not counts["broker exited by itself"]


# ---- a disk has lost data, and its broker still has its places


@pytest.mark.parametrize(
    ("kind", "seconds", "waits"),
    [(FaultKind.KILL, 1.0, False), (FaultKind.KILL, 9.0, True), (FaultKind.UNPLUG, 1.0, True)],
)
def test_a_fault_follows_at_once_if_it_is_short_enough(
    kind: FaultKind, seconds: float, waits: bool
) -> None:
    """The machine is silent, so that its broker keeps its places until its session ends."""
    faults = [
        Fault(3.0, FaultKind.LOSE_POWER, "leader", seconds=12.0),
        Fault(3.5, kind, "follower", seconds=seconds),
    ]
    options = small(failure_detection="session", elr_wait_ms=10_000)
    outcome = run_schedule(options, faults, tell=True)
    held(outcome)
    struck_after = _time_of(outcome, f"*** {kind}") - _time_of(outcome, "*** lose-power")
    assert (struck_after > 2.0) is waits


def _time_of(outcome: Outcome, text: str) -> float:
    return next(float(line.split()[0]) for line in outcome.story if text in line)


# ---- all machines lose power at once

POWER = [Fault(5.0 + 6.0 * n, FaultKind.CUT_POWER, seconds=1.0) for n in range(2)]


def test_what_no_disk_had_flushed_is_lost_with_all_power_and_counted() -> None:
    assert held(run_schedule(small(), POWER))[EXCUSED] > 0


def test_with_every_record_flushed_nothing_is_excused_after_a_power_cut() -> None:
    counts = held(run_schedule(small(flush_all=True, flush_messages=1), POWER))
    assert counts["fault: cut-power"] == 2
    assert not counts[EXCUSED]


def test_without_the_excuse_a_power_cut_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Excuses, "forgot", _nobody_has_lost_anything)
    assert run_schedule(small(), POWER).kind in ("I4", "I4b", "I9")


def _nobody_has_lost_anything(*_: object) -> None:
    """Plant the mistake that a power cut takes nothing."""


# ---- unclean elections


OUTSIDER_LEADS = [
    Fault(2.0, FaultKind.ISOLATE, "3", seconds=8.0),
    Fault(9.0, FaultKind.KILL, "1", seconds=8.0),
    Fault(9.1, FaultKind.KILL, "2", seconds=8.0),
]


def test_what_an_unclean_election_cuts_is_excused_and_counted() -> None:
    counts = held(run_schedule(small(unclean_elections=True), OUTSIDER_LEADS))
    assert counts[UNCLEAN] > 0
    assert counts[EXCUSED] > 0


def test_without_unclean_elections_the_same_faults_lose_nothing() -> None:
    counts = held(run_schedule(small(), OUTSIDER_LEADS))
    assert not counts[UNCLEAN]
    assert not counts[EXCUSED]


# ---- what is drawn


def drawn(mode: Mode) -> list[tuple[Options, list[Fault]]]:
    options = [Options.draw(seed, mode) for seed in range(300)]
    return [(one, plan(one)) for one in options]


def test_every_kind_and_every_switch_is_drawn() -> None:
    runs = drawn(Mode.SAFETY)
    kinds = Counter(fault.kind for _, faults in runs for fault in faults)
    assert all(kinds[kind] > 10 for kind in OF_DISKS)
    for name in (
        "log_dirs",
        "flush_all",
        "unclean_elections",
        "truncation_lookup",
        "failure_detection",
        "has_eligible_replicas",
        "has_gate",
        "flushes_last_replica",
        "throttle_bytes",
        "index_interval_bytes",
    ):
        assert len({getattr(options, name) for options, _ in runs}) > 1, name


def test_nothing_is_drawn_that_the_promise_does_not_cover() -> None:
    for mode in Mode:
        for options, faults in drawn(mode):
            kinds = {fault.kind for fault in faults}
            if not options.keeps_last_replica:
                assert not kinds & set(DESTROYING)
            if options.unclean_elections:
                assert options.may_lose_records
            if FaultKind.CUT_POWER in kinds:
                assert options.flush_all or options.may_lose_records
            if FaultKind.ROT in kinds:
                assert options.may_lose_records and not options.unclean_elections
                assert mode is Mode.SAFETY
