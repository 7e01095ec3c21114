"""Each of the single-line bugs fits the code as it is, and is in no other list."""

import pytest

from tests.rules import SECTIONS
from tests.support.opposites import edited, path_of
from tests.support.single_line_bugs import SINGLE_LINE_BUGS
from tests.support.single_line_bugs.bug import SingleLineBug

BUGS = SINGLE_LINE_BUGS.values()


def test_each_has_its_own_name() -> None:
    assert len(SINGLE_LINE_BUGS) == 29


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_it_fits_the_code_as_it_is(bug: SingleLineBug) -> None:
    assert bug.misfits() == []
    assert bug.breaks


def test_none_is_the_opposite_of_a_rule() -> None:
    files = {bug.file for bug in BUGS}
    opposites = {
        edited(planted, path_of(planted.file).read_text())
        for section in SECTIONS
        for planted in section.opposites
        if planted.file in files
    }
    assert [bug.name for bug in BUGS if bug.edited() in opposites] == []


# ---- the checks find what they are for


def misfits(old: str, new: str) -> list[str]:
    return SingleLineBug("planted", "replica/purgatory.py", old, new, "").misfits()


def test_text_that_is_not_there_or_there_twice_does_not_fit() -> None:
    assert misfits("no such line", "") == ["replica/purgatory.py: 0 times: 'no such line'"]
    assert "times" in misfits("self._produces", "self._flushes")[0]


def test_text_that_is_no_python_does_not_fit() -> None:
    (misfit,) = misfits("class DelayedOperations:", "class DelayedOperations")
    assert misfit.startswith("planted: ")
