"""Campaigns of random schedules, safety and liveness."""

import pytest
from barnabas_simulator.campaign.judge.coverage import missing
from barnabas_simulator.campaign.many import Campaign, run_many


@pytest.mark.slow
def test_two_hundred_and_eighty_hold_and_nothing_was_left_out() -> None:
    """`test_campaign.py` has ten more, in `make test` too."""
    campaign = played(range(1_000, 1_280))
    assert [(one.seed, one.violation) for one in campaign.failed] == []
    assert missing(campaign.counts) == []


def played(seeds: range) -> Campaign:
    campaign = Campaign()
    for outcome in run_many(seeds, jobs=2):
        campaign.add(outcome)
    return campaign
