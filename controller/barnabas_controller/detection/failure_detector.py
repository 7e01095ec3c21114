"""Holds a control stream open and probes the address when the stream ends.

The controller has one detector for every registered broker, and every other broker one for the
controller's broker. `SuspicionRule` decides what the observations mean.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from barnabas_common.errors import NotApplied
from barnabas_common.runtime import Channel, Network

from barnabas_controller.detection.suspicion_rule import SuspicionRule
from barnabas_controller.store.znodes import Broker

logger = logging.getLogger(__name__)

OPEN_SECONDS = 5.0
# Linux needs 3 s to find out that a host on its own network does not answer.
PROBE_TIMEOUT_SECONDS = 4.0
PAUSE_SECONDS = 0.05
# The broker may still be starting until a stream has been open once.
FIRST_PAUSE_SECONDS = 0.2


class PeerObservation(NamedTuple):
    """What a detector has observed of one incarnation of a broker."""

    broker: Broker
    had_stream: bool = False
    suspicion: str | None = None


class FailureDetector:
    """Watches one incarnation of one broker.

    `is_open` says whether the stream is open. `now` returns seconds. While `is_isolated` returns
    True, no suspicion is raised.
    """

    def __init__(
        self,
        network: Network,
        channel: Channel,
        now: Callable[[], float],
        broker: Broker,
        on_suspicion: Callable[[Broker, str], None],
        had_stream: bool = False,
        is_isolated: Callable[[], bool] = lambda: False,
    ) -> None:
        self.is_open = False
        self._is_isolated = is_isolated
        self._network = network
        self._channel = channel
        self._now = now
        self._broker = broker
        self._on_suspicion = on_suspicion
        self._rule = SuspicionRule(had_stream)

    @property
    def observation(self) -> PeerObservation:
        return PeerObservation(self._broker, self._rule.had_stream, self._rule.suspicion)

    async def run(self) -> None:
        """Hold the stream and probe until the broker is suspected; then call `on_suspicion`."""
        rule = self._rule
        while rule.suspicion is None:
            await self._hold_stream()
            if not rule.had_stream:
                await asyncio.sleep(FIRST_PAUSE_SECONDS)
                continue
            probe = await self._network.probe(self._channel.address, PROBE_TIMEOUT_SECONDS)
            logger.info("broker %d: control stream lost; %s", self._broker.broker_id, probe.value)
            rule.probed(self._now(), probe)
            if self._is_isolated():
                rule.retract()
            if rule.suspicion is None:
                await asyncio.sleep(PAUSE_SECONDS)
        self._on_suspicion(self._broker, rule.suspicion)

    async def _hold_stream(self) -> None:
        """Return when the stream has ended or could not be opened."""
        try:
            ended = await self._channel.open(OPEN_SECONDS)
        except NotApplied as error:
            logger.debug("broker %d: no control stream: %s", self._broker.broker_id, error)
            return
        self._rule.connected()
        self.is_open = True
        try:
            self._rule.ended(await ended)
        finally:
            self.is_open = False
