"""A campaign of random schedules, safety and liveness. Part of `make test`."""

import pytest
from barnabas_simulator.campaign.judge.coverage import missing
from barnabas_simulator.campaign.many import Campaign, run_many


def test_eighty_schedules_hold_and_nothing_was_left_out() -> None:
    campaign = Campaign()
    for outcome in run_many(range(1_000, 1_080), jobs=2):
        campaign.add(outcome)
    assert [(one.seed, one.violation) for one in campaign.failed] == []
    assert missing(campaign.counts) == []


@pytest.mark.slow
def test_two_hundred_more_schedules_hold() -> None:
    failed = [
        (one.seed, one.violation)
        for one in run_many(range(1_080, 1_280), jobs=2)
        if one.violation is not None
    ]
    assert failed == []
