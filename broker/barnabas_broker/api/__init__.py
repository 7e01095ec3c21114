"""Request handlers: one file for each request that needs more than a call of a part of the broker.

A handler takes the broker's parts, a request (a dataclass of `barnabas_common.messages`) and the
peer, and returns the response. It does not depend on gRPC: its caller is `rpc/` in production and
the simulator's network in simulations. `router.py` has the table of all requests.
"""
