"""The history of a run, as its clients saw it, and the checker that judges it.

Nothing here knows brokers, the wire or the codec: what is judged cannot influence the judge. Real
clients (`barnabas_tools.chaos`) and simulated ones write the same operations.
"""
