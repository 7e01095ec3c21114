"""What a broker answers: one file a request, each a plain async function.

A handler takes the broker's parts, a request (a dataclass of `barnabas.messages`) and the peer, and
returns the response. It knows nothing of gRPC: `rpc/` stands in front of it in production, the
simulator's network in simulations. `router.py` says which handler serves which request where.
"""
