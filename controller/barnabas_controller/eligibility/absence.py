"""How long brokers without a registration are awaited.

A wait begins when the broker's ZooKeeper session has ended; a suspicion does not begin one. A new
controller does not know when the session ended, so it starts the wait again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from barnabas_controller.controller_term import ControllerTerm


def await_registration(
    term: ControllerTerm, brokers: Iterable[int], elect: Callable[[str], Awaitable[object]]
) -> None:
    """Record that these brokers are absent.

    Those that stay absent for `eligible.leader.replicas.wait.ms` are then `given_up`, and
    `elect(cause)` is called on the event queue.
    """
    context, awaited = term.context, list(brokers)
    since = term.runtime.clock.monotonic()
    wait = term.config.eligible_leader_replicas_wait
    context.absent.update(dict.fromkeys(awaited, since))

    async def handle() -> None:
        still = [b for b in awaited if context.absent.get(b) == since]
        context.given_up.update(still)
        if still:
            noun = "broker" if len(still) == 1 else "brokers"
            names = ", ".join(map(str, still))
            await elect(f"{noun} {names} did not register again within {wait:g} s")

    if awaited:
        name = f"brokers {awaited}: the wait is over"
        asyncio.get_running_loop().call_later(wait, term.enqueue, name, handle)
