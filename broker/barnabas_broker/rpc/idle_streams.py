"""Ends streams that carry no request for `connections.max.idle.ms`, and those that take no answer.

A request only sets a flag. A sweep reads the flags ten times per period, so that an idle stream is
ended after one period and at most a tenth more.
"""

import asyncio
from collections.abc import Collection

from barnabas_broker.rpc.credits import BrokerCredits
from barnabas_broker.rpc.exchange import Exchange

_SWEEPS = 10


async def end_idle_streams(exchanges: Collection[Exchange], max_idle: float) -> None:
    """Sweep forever. `exchanges` always holds the open ones; `max_idle` is in seconds."""
    idle_sweeps: dict[Exchange, int] = {}
    while True:
        await asyncio.sleep(max(max_idle / _SWEEPS, 0.01))
        idle_sweeps = {
            exchange: 0 if exchange.take_used() else idle_sweeps.get(exchange, 0) + 1
            for exchange in exchanges
        }
        for exchange, sweeps in idle_sweeps.items():
            if sweeps > _SWEEPS:
                exchange.close_idle()


async def end_stalled_streams(
    exchanges: Collection[Exchange], shared: BrokerCredits, longest: float
) -> None:
    """While the bytes of the broker are used up, end streams that have not taken an answer for
    `longest` seconds. No other client's request is read meanwhile, and they may never take it."""
    while True:
        await asyncio.sleep(longest / _SWEEPS)
        if shared.bytes.is_used_up:
            stalled = [exchange for exchange in exchanges if exchange.is_stalled(longest)]
            for exchange in stalled[: max(0, shared.abandoned.limit - shared.abandoned.used)]:
                exchange.close_stalled()
