"""Campaigns: many random runs of whole clusters under faults; a failing run is shrunk.

    python -m barnabas_simulator.campaign run 200 --jobs 2
    python -m barnabas_simulator.campaign replay FILE.json

A seed determines `Options` and a list of `Fault`s, both plain data; they determine the run.
"""
