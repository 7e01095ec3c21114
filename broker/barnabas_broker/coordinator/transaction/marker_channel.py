"""Sends the markers of decided transactions to the leaders, until all are written.

A broker gets one request at a time. What is decided while it is on its way shares the next one.
After a failure the leaders are looked up again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from barnabas_common.errors import KafkaError, TransportError
from barnabas_common.messages.sentinels import NO_LEADER
from barnabas_common.messages.transactions import WriteTxnMarkersResponse
from barnabas_common.runtime import Address, Channel, Clock, Network, Service, TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.transaction.markers import (
    Errand,
    PendingMarkers,
    plan,
    request_of,
    settle,
)
from barnabas_broker.replica.metadata_cache import MetadataCache

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.1
_REQUEST_SECONDS = 30.0

MayExist = Callable[[TopicPartition], Awaitable[bool]]
"""Whether a partition that is not in the metadata exists, or that cannot be known now."""


class MarkerChannel:
    """`completed(pending)` is called when a transaction has all its markers, `fenced(pending)` when
    a newer producer or coordinator finishes it. `listener` is the one on which brokers connect to
    each other."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        cache: MetadataCache,
        listener: str,
        may_exist: MayExist,
        completed: Callable[[PendingMarkers], None],
        fenced: Callable[[PendingMarkers], None],
    ) -> None:
        self._network = network
        self._clock = clock
        self._cache = cache
        self._listener = listener
        self._may_exist = may_exist
        self._on_completed = completed
        self._on_fenced = fenced
        self._pending: dict[str, PendingMarkers] = {}
        self._busy: set[int] = set()
        self._channels: dict[int, Channel] = {}
        self._later: asyncio.TimerHandle | None = None
        self._soon = False
        self._looking: asyncio.Task[None] | None = None
        self._tasks = TaskScope("transaction markers")
        self._closed = False

    async def close(self) -> None:
        """Send nothing more; the next coordinator does."""
        self._closed = True
        self._pending.clear()
        if self._later is not None:
            self._later.cancel()
        await self._tasks.close()
        for channel in self._channels.values():
            await channel.close()

    def add(self, pending: PendingMarkers) -> None:
        """Send the markers of a transaction; earlier ones of its transactional id are replaced.

        What is added in one turn of the loop is planned together: a coordinator that takes over may
        have thousands.
        """
        self._pending[pending.decided.transactional_id] = pending
        if not self._soon:
            self._soon = True
            asyncio.get_running_loop().call_soon(self._send_now)

    def drop(self, transactional_id: str) -> None:
        """Another broker coordinates."""
        self._pending.pop(transactional_id, None)

    def missing(self, transactional_id: str) -> frozenset[TopicPartition] | None:
        """The partitions without their marker; None if the transaction is not decided."""
        pending = self._pending.get(transactional_id)
        return None if pending is None else frozenset(pending.missing)

    # ---- sending

    def _send_what_can_be_sent(self) -> None:
        if self._closed:
            return
        todo = plan(self._pending.values(), self._leader_of, self._clock.monotonic())
        for pending in [item for item in self._pending.values() if not item.missing]:
            self._pending.pop(pending.decided.transactional_id)
            self._on_completed(pending)
        for broker_id, errands in todo.errands.items():
            if broker_id not in self._busy:
                self._busy.add(broker_id)
                self._tasks.spawn(self._send(broker_id, errands), f"to broker {broker_id}")
        if todo.doubtful and (self._looking is None or self._looking.done()):
            self._looking = self._tasks.spawn(self._look_for(todo.doubtful), "unknown partitions")
        if todo.waiting:
            self._send_later()

    async def _look_for(self, partitions: Sequence[TopicPartition]) -> None:
        """No marker is needed where the topic is gone; the others are looked for again later."""
        for partition in partitions:
            exists = await self._may_exist(partition) or self._leader_of(partition) is not None
            for pending in self._pending.values():
                pending.looked_for(partition, exists)
        self._send_what_can_be_sent()

    def _send_now(self) -> None:
        self._soon = False
        self._send_what_can_be_sent()

    def _send_later(self) -> None:
        if self._later is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._later = loop.call_later(_RETRY_SECONDS, self._send_again)

    def _send_again(self) -> None:
        self._later = None
        self._send_what_can_be_sent()

    def _leader_of(self, partition: TopicPartition) -> int | None:
        state = self._cache.partition(*partition)
        if state is None:
            return None
        address = self._cache.address_of(state.leader, self._listener)
        return NO_LEADER if address is None else state.leader

    async def _send(self, broker_id: int, errands: Sequence[Errand]) -> None:
        again = True
        try:
            again = await self._exchange(broker_id, errands)
        except (TransportError, KafkaError) as error:
            logger.debug("transaction markers to broker %d, again: %s", broker_id, error)
        except Exception:
            logger.exception(
                "sending transaction markers to broker %d failed; they are sent again", broker_id
            )
        # Not in a `finally`: that would also run in a task that is thrown away with its loop.
        self._busy.discard(broker_id)
        self._send_later()
        if not again:
            self._send_what_can_be_sent()

    async def _exchange(self, broker_id: int, errands: Sequence[Errand]) -> bool:
        """Send one request; returns whether some of it must be sent again."""
        address = self._cache.address_of(broker_id, self._listener)
        if address is None:
            return True
        channel = await self._channel(broker_id, address)
        current = [errand for errand in errands if self._is_current(errand.pending)]
        if not current:
            return False
        response: WriteTxnMarkersResponse = await channel.call(
            request_of(current), _REQUEST_SECONDS
        )
        fenced, again = settle(current, response)
        for pending in fenced:
            if self._is_current(pending):
                self.drop(pending.decided.transactional_id)
                self._on_fenced(pending)
        return again

    def _is_current(self, pending: PendingMarkers) -> bool:
        return self._pending.get(pending.decided.transactional_id) is pending

    async def _channel(self, broker_id: int, address: Address) -> Channel:
        known = self._channels.get(broker_id)
        if known is not None and known.address == address:
            return known
        self._channels[broker_id] = self._network.connect(address, Service.REPLICA)
        if known is not None:
            await known.close()
        return self._channels[broker_id]
