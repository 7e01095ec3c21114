"""Groups as a campaign runs them: under each of its faults, and against the seeded bugs."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from barnabas_simulator.campaign.faults.faults import OF_MEMBERS, Fault, FaultKind
from barnabas_simulator.campaign.options import Mode, Options
from barnabas_simulator.campaign.schedule import Outcome, run_schedule

from tests.support.group_bugs import GROUP_BUGS

GROUPS = Options(
    seed=7,
    chaos_seconds=30.0,
    partitions=3,
    has_admin=False,
    pause=0.2,
    groups=1,
    members=3,
    assignors="cooperative-sticky",
    heartbeat_ms=1_000,
    max_poll_ms=5_000,
    commit_seconds=1.0,
)
COMMITS = "commit acknowledged"


def every(seconds: float, kind: FaultKind, *targets: str, lasting: float = 1.0) -> list[Fault]:
    count = int(GROUPS.chaos_seconds / seconds)
    return [
        Fault(1.0 + seconds * n, kind, targets[n % len(targets)], seconds=lasting)
        for n in range(count)
    ]


def members(*numbers: int) -> list[str]:
    names = GROUPS.member_names("group-0")
    return [names[number] for number in numbers]


def test_most_runs_have_groups_of_all_kinds() -> None:
    drawn = [Options.draw(seed, Mode.SAFETY) for seed in range(300)]
    grouped = [options for options in drawn if options.groups]
    assert len(grouped) > len(drawn) / 2
    assert {options.groups for options in grouped} == {1, 2}
    assert any(options.static_members for options in grouped)
    assert any("cooperative-sticky" in options.assignors for options in grouped)


@pytest.mark.parametrize("kind", OF_MEMBERS)
def test_a_group_outlives_what_befalls_its_members(kind: FaultKind) -> None:
    options = replace(GROUPS, static_members=1)
    faults = every(4.0, kind, *members(0, 1, 2), lasting=9.0)
    outcome = run_schedule(options, faults)
    assert outcome.violation is None
    assert outcome.counts[f"fault: {kind}"] > 2
    assert outcome.counts[COMMITS] > 10


@pytest.mark.parametrize(
    ("kind", "moves"),
    [
        (FaultKind.KILL, True),
        (FaultKind.STOP, True),
        (FaultKind.PAUSE, True),
        (FaultKind.LOSE_POWER, True),
        (FaultKind.UNPLUG, True),
        (FaultKind.EXPIRE, True),
        (FaultKind.ISOLATE, False),
    ],
)
def test_a_group_outlives_its_coordinator(kind: FaultKind, moves: bool) -> None:
    options = replace(GROUPS, chaos_seconds=20.0, session_timeout_ms=2_000)
    outcome = run_schedule(options, every(5.0, kind, "coordinator", lasting=4.0)[:4])
    assert outcome.violation is None
    assert outcome.counts[f"fault: {kind}"] > 2
    assert (outcome.counts["event: coordinator-loaded"] > 3) is moves
    assert outcome.counts[COMMITS] > 10


# ---- seeded bugs


def found(outcome: Outcome, *clauses: str) -> bool:
    return outcome.violation is not None and all(one in outcome.violation for one in clauses)


KILLED = every(3.0, FaultKind.KILL, "coordinator")
MOVED = every(3.0, FaultKind.EXPIRE, "coordinator", lasting=0.0)
ZOMBIE = every(10.0, FaultKind.PAUSE_MEMBER, *members(0, 1), lasting=9.0)
RETURN = every(10.0, FaultKind.KILL_MEMBER, *members(0, 2), lasting=8.0)

RANGE, STICKY = replace(GROUPS, assignors="range"), replace(GROUPS, assignors="sticky")
COOPERATIVE = replace(GROUPS, commit_seconds=6.0)
"""A member that gives a partition up has something to commit."""

CAUGHT: list[tuple[str, Options, Sequence[Fault], list[str]]] = [
    ("M15", RANGE, ZOMBIE, ["I18", "was accepted after generation"]),
    ("G1", RANGE, [], ["I19", "is in the log"]),
    ("G2", RANGE, KILLED, ["I19", "the log says"]),
    ("G3", RANGE, MOVED, ["I19", "the log says"]),
    ("G4", RANGE, KILLED, ["I19", "the log says"]),
    ("G5", RANGE, [], ["I19", "was answered"]),
    ("G6", COOPERATIVE, RETURN, ["I18", "owns it"]),
    ("G7", RANGE, [], ["I18", "belongs to"]),
    ("G8", STICKY, [], ["L9", "lag"]),
]
CALM = [
    (RANGE, KILLED),
    (RANGE, MOVED),
    (RANGE, ZOMBIE),
    (COOPERATIVE, RETURN),
    (STICKY, []),
]


def test_every_bug_of_groups_has_a_schedule_that_always_catches_it() -> None:
    assert [bug for bug, *_ in CAUGHT] == list(GROUP_BUGS)


@pytest.mark.parametrize(("options", "faults"), CALM)
def test_without_a_bug_nothing_is_found(options: Options, faults: Sequence[Fault]) -> None:
    assert run_schedule(options, faults).violation is None


@pytest.mark.parametrize(
    ("bug", "options", "faults", "clauses"), CAUGHT, ids=[bug for bug, *_ in CAUGHT]
)
def test_a_bug_of_groups_is_found_at_once(
    bug: str, options: Options, faults: Sequence[Fault], clauses: list[str]
) -> None:
    with GROUP_BUGS[bug].planted():
        outcome = run_schedule(options, faults)
    assert found(outcome, *clauses), outcome.violation
