"""The way of ISR changes to the controller: one AlterPartition in flight per broker (KIP-497).

Changes wait here while a request is out and then travel together. Nothing times out: a change that
cannot be delivered is sent again until a controller answers it, if only to say that it is stale.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from barnabas.error_code import ErrorCode
from barnabas.errors import TransportError
from barnabas.messages.control import (
    AlteredPartition,
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from barnabas.runtime import Address, Channel, Network, PausePoint, Pauses, Service, TaskScope
from barnabas.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

RETRY_PAUSE = 0.05

OnAnswer = Callable[[AlteredPartition], None]


class Verdict(Enum):
    """What an answer means for the proposed ISR."""

    COMMITTED = auto()
    ROLL_BACK = auto()  # refused for a reason that may pass: back to the committed ISR
    AWAIT_LEADER_AND_ISR = auto()  # this leader is behind: what is new is on its way
    RETRY = auto()


_VERDICTS = {
    ErrorCode.NONE: Verdict.COMMITTED,
    ErrorCode.OPERATION_NOT_ATTEMPTED: Verdict.ROLL_BACK,
    ErrorCode.INELIGIBLE_REPLICA: Verdict.ROLL_BACK,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.AWAIT_LEADER_AND_ISR,
    ErrorCode.UNKNOWN_TOPIC_ID: Verdict.AWAIT_LEADER_AND_ISR,
    ErrorCode.FENCED_LEADER_EPOCH: Verdict.AWAIT_LEADER_AND_ISR,
    ErrorCode.INVALID_UPDATE_VERSION: Verdict.AWAIT_LEADER_AND_ISR,
    ErrorCode.INVALID_REQUEST: Verdict.AWAIT_LEADER_AND_ISR,
}


def verdict(error_code: int) -> Verdict:
    """What follows from a partition's error code in an AlterPartition response."""
    return _VERDICTS.get(ErrorCode(error_code), Verdict.RETRY)


@dataclass(frozen=True)
class AlterPartitionContext:
    """Who asks, and where the controller is; `timeout` in seconds."""

    network: Network
    broker_id: int
    broker_epoch: Callable[[], int]
    controller_address: Callable[[], Address | None]
    timeout: float
    pauses: Pauses | None = None


class AlterPartitions:
    """Collects ISR changes and brings them to the controller."""

    def __init__(self, context: AlterPartitionContext) -> None:
        self._context = context
        self._pending: dict[TopicPartition, tuple[AlterPartitionItem, OnAnswer]] = {}
        self._tasks = TaskScope("alter-partition")
        self._running = False
        self._closed = False
        self._channel: Channel | None = None

    def submit(self, item: AlterPartitionItem, on_answer: OnAnswer) -> bool:
        """Have a change sent; False if one of the same partition is still on its way."""
        key = TopicPartition(item.topic, item.partition)
        if self._closed or key in self._pending:
            return False
        self._pending[key] = (item, on_answer)
        if not self._running:
            self._running = True
            self._tasks.spawn(self._send_all(), "send")
        return True

    async def close(self) -> None:
        """Stop sending; nobody is answered any more."""
        self._closed = True
        await self._tasks.close()
        if self._channel is not None:
            await self._channel.close()

    async def _send_all(self) -> None:
        try:
            while self._pending:
                if not await self._send_once():
                    await asyncio.sleep(RETRY_PAUSE)
        finally:
            self._running = False

    async def _send_once(self) -> bool:
        """One request with all that is pending; False if some of it must be sent again."""
        channel = await self._controller_channel()
        if channel is None:
            return False
        context = self._context
        if context.pauses is not None:
            await context.pauses.at(PausePoint.LEADER_BEFORE_ALTER_PARTITION)
        request = AlterPartitionRequest(
            context.broker_id,
            context.broker_epoch(),
            [item for item, _ in self._pending.values()],
        )
        try:
            response: AlterPartitionResponse = await channel.call(request, context.timeout)
        except TransportError as error:
            logger.info("cannot reach the controller for an ISR change: %s", error)
            return False
        if response.error_code:
            code = ErrorCode(response.error_code).name
            logger.info("the controller at %s refuses ISR changes: %s", channel.address, code)
            return False
        return self._deliver(response.partitions, request)

    def _deliver(self, answers: list[AlteredPartition], request: AlterPartitionRequest) -> bool:
        answered = 0
        for answer in answers:
            key = TopicPartition(answer.topic, answer.partition)
            if key not in self._pending or verdict(answer.error_code) is Verdict.RETRY:
                continue
            answered += 1
            _, on_answer = self._pending.pop(key)
            on_answer(answer)
        return answered == len(request.partitions)

    async def _controller_channel(self) -> Channel | None:
        """The channel to the controller this broker knows of; a new one when that changes."""
        address = self._context.controller_address()
        if self._channel is not None and self._channel.address != address:
            await self._channel.close()
            self._channel = None
        if address is None:
            return None
        if self._channel is None:
            self._channel = self._context.network.connect(address, Service.CONTROL)
        return self._channel
