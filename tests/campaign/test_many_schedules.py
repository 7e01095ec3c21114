"""Campaigns of random schedules, safety and liveness."""

import pytest
from barnabas_simulator.campaign.judge.coverage import missing
from barnabas_simulator.campaign.many import Campaign, run_many


def test_ten_more_schedules_hold() -> None:
    """Part of `make test`."""
    campaign = played(range(1_000, 1_010))
    assert [(one.seed, one.violation) for one in campaign.failed] == []


@pytest.mark.slow
def test_two_hundred_and_seventy_more_hold_and_nothing_was_left_out() -> None:
    campaign = played(range(1_010, 1_280))
    assert [(one.seed, one.violation) for one in campaign.failed] == []
    assert missing(campaign.counts) == []


def played(seeds: range) -> Campaign:
    campaign = Campaign()
    for outcome in run_many(seeds, jobs=2):
        campaign.add(outcome)
    return campaign
