"""Random schedules find the seeded bugs, as the table in `docs/simulator-bugs.md` says."""

import pytest

from tests.support import seeded_bugs
from tests.support.bug_search import BUDGET, ELEVEN, Found, Judge, find, safety, steps
from tests.support.group_bugs import GROUP_BUGS
from tests.support.seeded_bugs import SEEDED_BUGS, SeededBug
from tests.support.transaction_bugs import TRANSACTION_BUGS

HARD = ("M3", "M4")  # these need a request, or a high watermark, that is late by milliseconds


@pytest.mark.slow
@pytest.mark.parametrize(("judge", "wanted"), [(safety, 8), (steps, 6)])
def test_most_of_the_seeded_bugs_are_found_at_random(judge: Judge, wanted: int) -> None:
    found: dict[str, Found] = {}
    for name in sorted(ELEVEN, key=lambda name: name in HARD):
        result = find(SEEDED_BUGS[name], range(BUDGET), judge)
        if result is not None:
            found[name] = result
        if len(found) == wanted:
            return
    pytest.fail(f"only these were found: {found}")


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUP_BUGS)
def test_the_bugs_of_groups_are_found_at_random(name: str) -> None:
    assert find(GROUP_BUGS[name], range(40)) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["M9", "M14", "T2", "T3"])
def test_the_bugs_of_transactions_are_found_at_random(name: str) -> None:
    assert find(TRANSACTION_BUGS[name], range(10)) is not None


def test_what_also_fails_without_the_bug_is_not_its_finding() -> None:
    always = find(SEEDED_BUGS["M1"], range(3), judge=lambda _: "something else")
    assert always is None
    bug = SEEDED_BUGS["M12"]
    assert find(bug, range(1, 5), steps) is not None  # seed 0 shows it too, after much longer


def test_a_bug_whose_code_is_gone_fails_loudly() -> None:
    gone = SeededBug("M0", "nothing", lambda: [(seeded_bugs, "no_such_name", None)])
    with pytest.raises(AssertionError, match="no_such_name"), gone.planted():
        pass
