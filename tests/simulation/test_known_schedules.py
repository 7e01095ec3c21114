"""The classic failures by name: none happens, but each does with the bug that Kafka once had."""

import pytest
from barnabas_simulator.invariants import InvariantViolation

from tests.support.known_schedules import KNOWN_SCHEDULES, KnownSchedule
from tests.support.seeded_bugs import SEEDED_BUGS

schedules = pytest.mark.parametrize(
    "schedule", KNOWN_SCHEDULES.values(), ids=lambda schedule: schedule.name
)


@schedules
def test_the_code_as_it_is_passes(schedule: KnownSchedule) -> None:
    schedule.run()


@pytest.mark.parametrize(
    "schedule",
    [schedule for schedule in KNOWN_SCHEDULES.values() if schedule.bug is not None],
    ids=lambda schedule: schedule.name,
)
def test_the_bug_it_is_known_for_is_caught(schedule: KnownSchedule) -> None:
    bug = SEEDED_BUGS[schedule.bug or ""]
    with bug.planted(), pytest.raises(InvariantViolation) as caught:
        schedule.run()
    assert caught.value.name in schedule.invariants


def test_every_seeded_bug_has_a_schedule_that_always_catches_it() -> None:
    assert {schedule.bug for schedule in KNOWN_SCHEDULES.values()} >= SEEDED_BUGS.keys()
