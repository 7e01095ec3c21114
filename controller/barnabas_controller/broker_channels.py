"""Control requests on their way: one queue, one request in flight, per broker.

So every broker sees the controller's decisions in the order they were made. A request is sent again
until the broker has answered or is gone from ZooKeeper: each is harmless when received twice.

The stream is held open also between requests: its end is how a broker's death is noticed.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial

from barnabas.errors import KafkaError, TransportError
from barnabas.messages import SERVICES
from barnabas.messages.control import LeaderAndIsrRequest
from barnabas.runtime import Channel, Message, PausePoint, Pauses, Runtime, Service, TaskScope

from barnabas_controller.config import ControllerConfig
from barnabas_controller.lifeline import Lifeline
from barnabas_controller.request_batch import ControlRequest
from barnabas_controller.znodes import Broker

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.1

# broker id, what was asked, what was answered; called on the event loop, must only enqueue
OnResponse = Callable[[int, ControlRequest, Message], None]
# which life of a broker is dead, and why that is believed; the same holds
OnEvidence = Callable[[Broker, str], None]


class BrokerChannels:
    """The channels to all registered brokers; `send` and the rest are called by the controller.

    `own_id` is the controller's own broker, whose stream to itself proves nothing.
    """

    def __init__(
        self,
        runtime: Runtime,
        config: ControllerConfig,
        on_response: OnResponse,
        on_evidence: OnEvidence,
        own_id: int = -1,
    ) -> None:
        self._runtime = runtime
        self._config = config
        self._on_response = on_response
        self._on_evidence = on_evidence
        self._own_id = own_id
        self._queues: dict[int, _BrokerQueue] = {}
        self._lifelines: dict[int, Lifeline] = {}

    def add(self, broker: Broker, had_stream: bool = False) -> None:
        """Start sending to a broker that registered.

        `had_stream`: this broker has had a stream to it, in this life of it, before it became
        controller.
        """
        endpoint = broker.endpoint(self._config.inter_broker_listener)
        if endpoint is None:
            logger.error(
                "broker %d has no listener %s: it cannot be told anything",
                broker.broker_id,
                self._config.inter_broker_listener,
            )
            return
        network = self._runtime.network
        channel = network.connect(endpoint.address, Service.CONTROL)
        timeout = self._config.request_timeout
        pauses = self._runtime.pauses
        queue = _BrokerQueue(broker.broker_id, channel, timeout, self._on_response, pauses)
        self._queues[broker.broker_id] = queue
        if self._config.suspects_on_evidence:
            lifeline = Lifeline(
                network,
                channel,
                self._runtime.clock.monotonic,
                broker,
                self._on_evidence,
                had_stream,
                partial(self._has_lost_all_but, broker.broker_id),
            )
            self._lifelines[broker.broker_id] = lifeline
            queue.watch(lifeline)

    def _has_lost_all_but(self, broker_id: int) -> bool:
        """Whether there are others, and not one stream to them stands: then it is more likely the
        controller that is cut off than all of them that died at once. It must not take what they
        lead: it could not tell them, and would have nobody in sync. Those that died before, one
        by one, say nothing of that."""
        others = [
            lifeline
            for other, lifeline in self._lifelines.items()
            if other not in (broker_id, self._own_id)
            and lifeline.testimony.had_stream
            and lifeline.testimony.verdict is None
        ]
        return bool(others) and not any(lifeline.is_open for lifeline in others)

    def unreachable(self, broker_ids: Iterable[int]) -> list[int]:
        """Those to whose present life the stream ended and has not been opened again.

        That alone is no evidence of death. But of a machine that lost its power nothing else is
        known until its session ends, so nobody should hand over to such a one.
        """
        return [broker_id for broker_id in broker_ids if self._has_lost(broker_id)]

    def _has_lost(self, broker_id: int) -> bool:
        lifeline = self._lifelines.get(broker_id)
        return lifeline is not None and lifeline.testimony.had_stream and not lifeline.is_open

    async def remove(self, broker_id: int) -> None:
        """Drop a broker and all it was still to be told."""
        self._lifelines.pop(broker_id, None)
        queue = self._queues.pop(broker_id, None)
        if queue is not None:
            await queue.close()

    def send(self, broker_id: int, request: ControlRequest) -> None:
        """Queue a request; dropped if the broker is gone."""
        queue = self._queues.get(broker_id)
        if queue is not None:
            queue.put(request)

    async def close(self) -> None:
        for broker_id in list(self._queues):
            await self.remove(broker_id)


class _BrokerQueue:
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
        self._requests: asyncio.Queue[ControlRequest] = asyncio.Queue()
        self._scope = TaskScope(f"control of broker {broker_id}")
        self._scope.spawn(self._run(), "sender")

    def watch(self, lifeline: Lifeline) -> None:
        self._scope.spawn(lifeline.run(), "lifeline")

    def put(self, request: ControlRequest) -> None:
        self._requests.put_nowait(request)

    async def _run(self) -> None:
        while True:
            request = await self._requests.get()
            if self._pauses is not None and isinstance(request, LeaderAndIsrRequest):
                point = PausePoint.CONTROLLER_BEFORE_LEADER_AND_ISR
                await self._pauses.at(point, self._broker_id)
            response = await self._until_answered(request)
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

    async def close(self) -> None:
        await self._scope.close()
        await self._channel.close()
