"""Random schedules find the seeded bugs, as the table in `docs/simulator-bugs.md` says."""

import pytest

from tests.support import seeded_bugs
from tests.support.bug_search import BUDGET, ELEVEN, find
from tests.support.seeded_bugs import SEEDED_BUGS, SeededBug

WANTED = 8


@pytest.mark.slow
def test_most_of_the_seeded_bugs_are_found_at_random() -> None:
    found = {name: find(SEEDED_BUGS[name], range(BUDGET)) for name in ELEVEN}
    assert sum(result is not None for result in found.values()) >= WANTED, found


def test_what_also_fails_without_the_bug_is_not_its_finding() -> None:
    always = find(SEEDED_BUGS["M1"], range(3), judge=lambda _: "something else")
    assert always is None
    bug = SEEDED_BUGS["M12"]
    assert find(bug, range(5)) is not None


def test_a_bug_whose_code_is_gone_fails_loudly() -> None:
    gone = SeededBug("M0", "nothing", lambda: [(seeded_bugs, "no_such_name", None)])
    with pytest.raises(AssertionError, match="no_such_name"), gone.planted():
        pass
