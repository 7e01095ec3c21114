"""A campaign: 150 random schedules, safety and liveness. Part of `make test`."""

from barnabas_simulator.campaign.judge.coverage import missing
from barnabas_simulator.campaign.many import Campaign, run_many


def test_a_hundred_and_fifty_schedules_hold_and_nothing_was_left_out() -> None:
    campaign = Campaign()
    for outcome in run_many(range(1_000, 1_150), jobs=1):
        campaign.add(outcome)
    assert [(one.seed, one.violation) for one in campaign.failed] == []
    assert missing(campaign.counts) == []
