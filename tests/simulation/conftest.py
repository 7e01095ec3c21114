"""Fixtures of several files."""

import pytest

from tests.support.raw_transactions import MarkerLeaders


@pytest.fixture
def leaders(monkeypatch: pytest.MonkeyPatch) -> MarkerLeaders:
    """Leaders that note the markers they are sent, and may refuse them."""
    leaders = MarkerLeaders()
    leaders.install(monkeypatch)
    return leaders
