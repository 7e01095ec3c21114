"""Campaigns: many random runs of whole clusters under faults, each judged, a failing one shrunk.

    python -m barnabas_simulator.campaign run 200 --jobs 2
    python -m barnabas_simulator.campaign replay FILE.json

A seed becomes `Options` and a list of `Fault`s, both plain data; those two are the run.
"""
