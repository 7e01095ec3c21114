"""Sends ISR changes to the controller: one AlterPartition in flight per broker (KIP-497).

Changes that arrive while a request is in flight are sent together in the next one. Nothing times
out: a change is sent again until a controller answers it, even if only to refuse it as stale. While
no controller can be reached, the changes are also offered to the `IsrWriter`.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from barnabas_common.errors import TransportError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog
from barnabas_common.messages.control import (
    AlteredPartition,
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from barnabas_common.runtime import (
    Address,
    Channel,
    Network,
    PausePoint,
    Pauses,
    Service,
    TaskScope,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.replica.leader.isr_changes import AlterPartitionOutcome, outcome_of
from barnabas_broker.replica.leader.isr_writer import IsrWriter

logger = logging.getLogger(__name__)

RETRY_PAUSE_SECONDS = 0.05
WRITE_PAUSE_SECONDS = 0.5

OnAnswer = Callable[[AlteredPartition, str], None]
"""Called with the answer, and who gave it, for humans: empty for the controller."""


@dataclass(frozen=True)
class AlterPartitionContext:
    """The sender of the requests, and the address of the controller.

    Once no controller has answered for `patience`, changes go to the `isr_writer` too. `timeout`
    and `patience` are in seconds.
    """

    network: Network
    broker_id: int
    broker_epoch: Callable[[], int]
    controller_address: Callable[[], Address | None]
    timeout: float
    pauses: Pauses | None = None
    isr_writer: IsrWriter | None = None
    patience: float = 0.0
    events: EventLog = field(default_factory=EventLog)


class AlterPartitionManager:
    """Collects ISR changes and sends them to the controller."""

    def __init__(self, context: AlterPartitionContext) -> None:
        self._context = context
        self._pending: dict[TopicPartition, tuple[AlterPartitionItem, OnAnswer]] = {}
        self._instead: dict[TopicPartition, AlterPartitionItem] = {}
        self._tasks = TaskScope("alter-partition")
        self._running = self._writing = False
        self._closed = False
        self._channel: Channel | None = None
        self._failure = ""
        self._silent_since: float | None = None
        self._unreachable = False

    def submit(self, item: AlterPartitionItem, on_answer: OnAnswer) -> bool:
        """Have a change sent; False if one of the same partition is still in flight."""
        key = TopicPartition(item.topic, item.partition)
        if self._closed or key in self._pending:
            return False
        self._pending[key] = (item, on_answer)
        if not self._running:
            self._running = True
            self._tasks.spawn(self._send_all(), "send")
        if self._context.isr_writer is not None and not self._writing:
            self._writing = True
            self._tasks.spawn(self._write_overdue(self._context.isr_writer), "write")
        return True

    def write_instead(self, item: AlterPartitionItem) -> None:
        """Have the writer write this instead of the change in flight, if no controller answers.

        The two exclude each other: both expect the same partition epoch.
        """
        key = TopicPartition(item.topic, item.partition)
        if self._context.isr_writer is not None and key in self._pending:
            self._instead[key] = item

    async def close(self) -> None:
        """Stop sending; pending changes get no answer."""
        self._closed = True
        await self._tasks.close()
        if self._channel is not None:
            await self._channel.close()

    async def _send_all(self) -> None:
        try:
            while self._pending:
                if not await self._send_once():
                    await asyncio.sleep(RETRY_PAUSE_SECONDS)
        finally:
            self._running = False
            self._silent_since = None

    async def _write_overdue(self, writer: IsrWriter) -> None:
        """Pass the changes to the writer for as long as no controller answers."""
        try:
            while self._pending:
                await asyncio.sleep(WRITE_PAUSE_SECONDS)
                if self._silent_since is not None and self._silence() >= self._context.patience:
                    self._report_silence()
                    await self._write(writer)
        finally:
            self._writing = False

    async def _write(self, writer: IsrWriter) -> None:
        asked = [item for item, _ in self._pending.values()]
        items = [self._instead.get(key, item) for key, (item, _) in self._pending.items()]
        for result in await writer.write(items, self._what_is_silent()):
            self._settle(result.answer, asked, result.source)

    def _report_silence(self) -> None:
        if not self._unreachable:
            self._unreachable = True
            self._context.events.record(
                EventKind.CONTROLLER_UNREACHABLE,
                f"an ISR change has had no answer for {self._silence():.1f} s",
                controller_address=str(self._context.controller_address()),
            )

    def _heard(self) -> None:
        """A controller has answered."""
        self._silent_since = None
        if self._unreachable:
            self._unreachable = False
            self._context.events.record(
                EventKind.CONTROLLER_REACHABLE, "it answered a request for an ISR change"
            )

    def _silence(self) -> float:
        return asyncio.get_running_loop().time() - (self._silent_since or 0.0)

    def _what_is_silent(self) -> str:
        address = self._context.controller_address()
        last = f", last known at {address}," if address is not None else ""
        return f"the controller{last} cannot be reached, silent for {self._silence():.1f} s"

    async def _send_once(self) -> bool:
        """Send one request with all pending changes; False if some must be sent again."""
        if self._silent_since is None:
            self._silent_since = asyncio.get_running_loop().time()
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
            self._log_failure(f"cannot reach the controller for an ISR change: {error}")
            return False
        if response.error_code:
            code = ErrorCode(response.error_code).name
            self._log_failure(f"the controller at {channel.address} refuses ISR changes: {code}")
            if response.error_code != ErrorCode.NOT_CONTROLLER:
                self._heard()
            return False
        self._failure = ""
        self._heard()
        return self._deliver(response.partitions, request)

    def _log_failure(self, failure: str) -> None:
        """Log a failure once, however often it is repeated."""
        if failure != self._failure:
            self._failure = failure
            logger.info("%s", failure)

    def _deliver(self, answers: list[AlteredPartition], request: AlterPartitionRequest) -> bool:
        settled = [self._settle(answer, request.partitions) for answer in answers]
        return settled.count(True) == len(request.partitions)

    def _settle(
        self, answer: AlteredPartition, asked: Sequence[AlterPartitionItem], source: str = ""
    ) -> bool:
        """Pass an answer on; False if its change must be sent again, or is no longer pending."""
        key = TopicPartition(answer.topic, answer.partition)
        item, on_answer = self._pending.get(key, (None, None))
        if on_answer is None or not any(item is one for one in asked):
            return False
        if outcome_of(answer.error_code) is AlterPartitionOutcome.RETRY:
            return False
        del self._pending[key]
        instead = self._instead.pop(key, None)
        if instead is not None and source:
            source = f"{instead.cause}; {source}"
        on_answer(answer, source)
        return True

    async def _controller_channel(self) -> Channel | None:
        """The channel to the controller in the metadata cache; a new one when that changes."""
        address = self._context.controller_address()
        if self._channel is not None and self._channel.address != address:
            await self._channel.close()
            self._channel = None
        if address is None:
            return None
        if self._channel is None:
            self._channel = self._context.network.connect(address, Service.CONTROL)
        return self._channel
