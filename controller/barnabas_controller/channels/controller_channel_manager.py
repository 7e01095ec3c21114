"""Sends control requests: one queue and one request in flight for each broker.

So every broker receives the controller's decisions in order. A request is sent again until the
broker answers or is no longer registered; receiving it twice does no harm. Requests are numbered,
because an abandoned connection may deliver one after later ones.

A failure detector holds the stream open between requests, because its end shows a failure.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count

from barnabas_common.errors import KafkaError, TransportError
from barnabas_common.messages import SERVICES
from barnabas_common.messages.control import LeaderAndIsrRequest
from barnabas_common.runtime import (
    Channel,
    Message,
    PausePoint,
    Pauses,
    Runtime,
    Service,
    TaskScope,
)

from barnabas_controller.channels.request_batch import ControlRequest
from barnabas_controller.config import ControllerConfig
from barnabas_controller.detection.failure_detector import FailureDetector
from barnabas_controller.store.znodes import Broker

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.1

# Receives broker id, request and response. It is called on the event loop and must only enqueue.
OnResponse = Callable[[int, ControlRequest, Message], None]
# Receives the suspected incarnation of a broker, and the reason. It must only enqueue, too.
OnSuspicion = Callable[[Broker, str], None]


class ControllerChannelManager:
    """The channels to all registered brokers.

    `own_id` is the controller's own broker, whose stream to itself proves nothing.
    """

    def __init__(
        self,
        runtime: Runtime,
        config: ControllerConfig,
        on_response: OnResponse,
        on_suspicion: OnSuspicion,
        own_id: int = -1,
    ) -> None:
        self._runtime = runtime
        self._config = config
        self._on_response = on_response
        self._on_suspicion = on_suspicion
        self._own_id = own_id
        self._numbers = count(1)
        self._senders: dict[int, _RequestSender] = {}
        self._failure_detectors: dict[int, FailureDetector] = {}

    def add(self, broker: Broker, had_stream: bool = False) -> None:
        """Start sending to a registered broker.

        `had_stream` says whether the controller's broker had a stream to this incarnation before it
        was elected; then a refused connection is a suspicion from the start.
        """
        listener = self._config.inter_broker_listener
        endpoint = broker.endpoint(listener)
        if endpoint is None:
            logger.error("broker %d has no listener %s to connect to", broker.broker_id, listener)
            return
        network = self._runtime.network
        channel = network.connect(endpoint.address, Service.CONTROL)
        timeout = self._config.request_timeout
        pauses = self._runtime.pauses
        sender = _RequestSender(broker.broker_id, channel, timeout, self._on_response, pauses)
        self._senders[broker.broker_id] = sender
        if self._config.suspects_on_evidence:
            detector = FailureDetector(
                network,
                channel,
                self._runtime.clock.monotonic,
                broker,
                self._on_suspicion,
                had_stream,
                partial(self._has_lost_all_but, broker.broker_id),
            )
            self._failure_detectors[broker.broker_id] = detector
            sender.watch(detector)

    def _has_lost_all_but(self, broker_id: int) -> bool:
        """Whether there are other brokers and no stream to them is open.

        The controller is then more likely to be isolated than all of them are to have failed
        together. It must not move their leaderships: its requests would not reach them, and no
        replica would be in sync. Brokers that failed earlier do not count.
        """
        others = [
            detector
            for other, detector in self._failure_detectors.items()
            if other not in (broker_id, self._own_id)
            and detector.observation.had_stream
            and detector.observation.suspicion is None
        ]
        return bool(others) and not any(detector.is_open for detector in others)

    def unreachable(self, broker_ids: Iterable[int]) -> list[int]:
        """The brokers whose stream has ended and has not been opened again in this incarnation.

        That alone is no suspicion. But a machine that lost power shows nothing else until its
        session ends, so no leadership should move to such a broker.
        """
        return [broker_id for broker_id in broker_ids if self._has_lost(broker_id)]

    def is_connected(self, broker_id: int) -> bool:
        """Whether the control stream to a broker is open; False if streams are not watched."""
        detector = self._failure_detectors.get(broker_id)
        return detector is not None and detector.is_open

    def _has_lost(self, broker_id: int) -> bool:
        detector = self._failure_detectors.get(broker_id)
        return detector is not None and detector.observation.had_stream and not detector.is_open

    async def move(self, broker: Broker) -> None:
        """Send to the new address of a broker, beginning with what it has not answered yet."""
        sender = self._senders.get(broker.broker_id)
        await self.remove(broker.broker_id)
        self.add(broker)
        for request in sender.unanswered() if sender is not None else ():
            self.send(broker.broker_id, request)

    async def remove(self, broker_id: int) -> None:
        """Drop a broker, if it is known, with its queued requests and its failure detector."""
        self._failure_detectors.pop(broker_id, None)
        sender = self._senders.pop(broker_id, None)
        if sender is not None:
            await sender.close()

    def send(self, broker_id: int, request: ControlRequest) -> None:
        """Queue a request; it is dropped if the broker is not registered."""
        sender = self._senders.get(broker_id)
        if sender is not None:
            request.number = next(self._numbers)
            sender.requests.put_nowait(request)

    async def close(self) -> None:
        """Drop all brokers."""
        for broker_id in list(self._senders):
            await self.remove(broker_id)


class _RequestSender:
    """One broker's queue and the task that empties it."""

    def __init__(
        self,
        broker_id: int,
        channel: Channel,
        timeout: float,
        on_response: OnResponse,
        pauses: Pauses | None,
    ) -> None:
        self._broker_id = broker_id
        self._channel = channel
        self._timeout = timeout
        self._pauses = pauses
        self._on_response = on_response
        self.requests: asyncio.Queue[ControlRequest] = asyncio.Queue()
        self._in_flight: list[ControlRequest] = []
        self._scope = TaskScope(f"control of broker {broker_id}")
        self._scope.spawn(self._run(), "sender")

    def watch(self, detector: FailureDetector) -> None:
        """Run the detector until this broker is dropped."""
        self._scope.spawn(detector.run(), "failure detector")

    async def _run(self) -> None:
        while True:
            request = await self.requests.get()
            self._in_flight = [request]
            if self._pauses is not None and isinstance(request, LeaderAndIsrRequest):
                point = PausePoint.CONTROLLER_BEFORE_LEADER_AND_ISR
                await self._pauses.at(point, self._broker_id)
            response = await self._until_answered(request)
            self._in_flight.clear()
            self._on_response(self._broker_id, request, response)

    async def _until_answered(self, request: ControlRequest) -> Message:
        failures = 0
        while True:
            try:
                return await self._channel.call(request, self._timeout)
            except TransportError as error:
                failures += 1
                level = logging.WARNING if failures == 1 else logging.DEBUG
                name = type(request).__name__
                logger.log(level, "%s to broker %d, again: %s", name, self._broker_id, error)
            except KafkaError as error:  # the broker failed to handle it, and would again
                logger.error("%s to broker %d: %s", type(request).__name__, self._broker_id, error)
                return SERVICES[Service.CONTROL][type(request)](error_code=int(error.code))
            await asyncio.sleep(RETRY_SECONDS)

    def unanswered(self) -> list[ControlRequest]:
        """Take the requests that the broker has not answered, in order; after `close`."""
        requests, self._in_flight = self._in_flight, []
        while not self.requests.empty():
            requests.append(self.requests.get_nowait())
        return requests

    async def close(self) -> None:
        await self._scope.close()
        await self._channel.close()
