"""Waits for a transaction to be complete whose end is decided (beyond Kafka).

Until then the next one cannot begin. Kafka answers CONCURRENT_TRANSACTIONS, and its client asks
again after 20 ms. A completion takes a few milliseconds, so the request waits for it first.
"""

import asyncio

from barnabas_broker.coordinator.transaction.metadata import Transaction
from barnabas_broker.coordinator.transaction.states import is_decided


class Completions:
    """The requests that wait for the completion of a transactional id."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = {}

    async def wait(self, transaction: Transaction | None, seconds: float) -> None:
        """Return once the transaction is complete or is not here any more, or after `seconds`; at
        once if its end is not decided."""
        if transaction is None or not is_decided(transaction.metadata.state):
            return
        event = self._events.setdefault(transaction.transactional_id, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass

    def over(self, transaction: Transaction) -> None:
        """It is complete, or not here any more."""
        event = self._events.pop(transaction.transactional_id, None)
        if event is not None:
            event.set()
