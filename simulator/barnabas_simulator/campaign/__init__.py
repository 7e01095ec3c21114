"""Campaigns: many random runs of whole clusters under faults, each judged, a failing one shrunk.

    python -m barnabas_simulator.campaign run 200 --jobs 2
    python -m barnabas_simulator.campaign replay FILE.json

A seed becomes `Options` and a list of `Fault`s, both plain data; those two are the run.
"""

from barnabas_simulator.campaign.faults import Fault, FaultKind
from barnabas_simulator.campaign.options import Mode, Options
from barnabas_simulator.campaign.plan import plan
from barnabas_simulator.campaign.schedule import Outcome, run_schedule

__all__ = ["Fault", "FaultKind", "Mode", "Options", "Outcome", "plan", "run_schedule"]
