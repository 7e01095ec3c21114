"""A control stream held open for one reason more than its requests: its end is noticed.

The controller has one to every registered broker, and every other broker one to the controller's.
This is the I/O that feeds `evidence.Evidence`, which judges.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from barnabas.errors import Refused
from barnabas.runtime import Channel, Network

from barnabas_controller.evidence import Evidence
from barnabas_controller.znodes import Broker

logger = logging.getLogger(__name__)

OPEN_SECONDS = 5.0
# Linux needs 3 s to find out that a host on its own network is gone.
KNOCK_SECONDS = 4.0
PAUSE_SECONDS = 0.05
# Where no stream has ever been open nothing is at stake: the broker may still be starting.
FIRST_PAUSE_SECONDS = 0.2


class Testimony(NamedTuple):
    """What a watcher knows of one life of a broker (its broker epoch says which)."""

    broker: Broker
    had_stream: bool = False
    verdict: str | None = None


class Lifeline:
    """Watches one life of one broker; `run` ends with a call of `on_evidence`, or never.

    `is_open`: the stream stands. While `is_alone` says so no evidence is believed.
    """

    def __init__(
        self,
        network: Network,
        channel: Channel,
        now: Callable[[], float],
        broker: Broker,
        on_evidence: Callable[[Broker, str], None],
        had_stream: bool = False,
        is_alone: Callable[[], bool] = lambda: False,
    ) -> None:
        self.is_open = False
        self._is_alone = is_alone
        self._network = network
        self._channel = channel
        self._now = now
        self._broker = broker
        self._on_evidence = on_evidence
        self._evidence = Evidence(had_stream)

    @property
    def testimony(self) -> Testimony:
        return Testimony(self._broker, self._evidence.had_stream, self._evidence.verdict)

    async def run(self) -> None:
        evidence = self._evidence
        while evidence.verdict is None:
            await self._hold_stream()
            if not evidence.had_stream:
                await asyncio.sleep(FIRST_PAUSE_SECONDS)
                continue
            knock = await self._network.knock(self._channel.address, KNOCK_SECONDS)
            logger.info("broker %d: control stream lost; %s", self._broker.broker_id, knock.value)
            evidence.knocked(self._now(), knock)
            if self._is_alone():
                evidence.disbelieve()
            if evidence.verdict is None:
                await asyncio.sleep(PAUSE_SECONDS)
        self._on_evidence(self._broker, evidence.verdict)

    async def _hold_stream(self) -> None:
        """Returns when the stream has ended, or could not be opened."""
        try:
            ended = await self._channel.open(OPEN_SECONDS)
        except Refused as error:
            logger.debug("broker %d: no control stream: %s", self._broker.broker_id, error)
            return
        self._evidence.connected()
        self.is_open = True
        try:
            self._evidence.ended(await ended)
        finally:
            self.is_open = False
