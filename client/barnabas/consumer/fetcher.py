"""Keeps the buffer full: one loop for each broker, one fetch in flight each.

A partition is left out while its buffer is full, so memory is bounded and a slow application slows
the fetching. A fetch without such a partition must not wait at the broker: the partition may be
needed again long before the others have data.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from barnabas_common.errors import BarnabasError, CorruptMessageError, TransportError, error_for
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.fetch import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)
from barnabas_common.runtime import Service, TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster import Cluster
from barnabas.consumer.buffer import FetchBuffer
from barnabas.consumer.completed_fetch import CompletedFetch, advice, before_damage
from barnabas.consumer.config import ConsumerConfig
from barnabas.consumer.subscription_state import (
    RESET_TIMESTAMPS,
    FetchStep,
    SubscriptionState,
    TopicPartitionState,
    fetch_step,
)

logger = logging.getLogger(__name__)

# Seconds until the next fetch where the last one was empty, and the broker was not to wait.
_EMPTY_PAUSE = 0.01


class _Asked(NamedTuple):
    """The request about a partition, to recognize an outdated answer."""

    state: TopicPartitionState
    version: int
    offset: int
    broker_id: int
    leader_epoch: int


class _Plan(NamedTuple):
    """The next fetch of a broker. `held_back`: partitions left out as their buffers are full."""

    request: FetchRequest
    asked: dict[TopicPartition, _Asked]
    held_back: bool


class Fetcher:
    """All loops of one consumer, and their shared state."""

    def __init__(
        self,
        config: ConsumerConfig,
        cluster: Cluster,
        positions: SubscriptionState,
        buffer: FetchBuffer,
    ) -> None:
        self.config = config
        self.cluster = cluster
        self.positions = positions
        self.buffer = buffer
        self._tasks = TaskScope(config.client_id or "consumer")
        self._brokers: dict[int, BrokerFetcher] = {}
        # Set by the consumer; called when a position must be looked up.
        self.on_reset: Callable[[], None] = lambda: None

    def start(self) -> None:
        self.cluster.on_update(self.wake)
        self.wake()

    async def close(self) -> None:
        await self._tasks.close()

    def wake(self) -> None:
        """Let every loop check again: positions, leaders or buffer space have changed."""
        for broker_id in self.cluster.metadata.brokers:
            if broker_id not in self._brokers:
                broker = self._brokers[broker_id] = BrokerFetcher(broker_id, self)
                self._tasks.spawn(broker.run(), f"fetch-{broker_id}")
        for broker in self._brokers.values():
            broker.wakeup.set()
        metadata = self.cluster.metadata
        if any(metadata.leader(tp) is None for tp in self.positions.states):
            self.cluster.request_refresh()

    def on_answer(self, asked: _Asked, answer: FetchedPartition) -> None:
        """Apply one partition's part of a response."""
        state = asked.state
        if state.version != asked.version or state.fetch_offset != asked.offset:
            return  # an old leader may answer after the new one
        step = fetch_step(answer, self.positions.policy)
        if step is FetchStep.ACCEPT:
            self._accept(asked, answer)
        elif step is FetchStep.RESET:
            self._reset(asked)
        elif step is FetchStep.RETRY:
            self._retry(state, answer)
        else:
            message = f"{state.topic_partition} at offset {asked.offset}"
            if answer.error_code == ErrorCode.CORRUPT_MESSAGE:
                message += f": damaged {advice(asked.broker_id)}"
            self.buffer.add_failure(state, error_for(answer.error_code, message))

    def pause(self, state: TopicPartitionState) -> None:
        """Leave a partition out for a while, longer with each failure in a row."""
        state.failures += 1
        pause = self.cluster.backoff.seconds(state.failures)
        state.not_before = self.cluster.clock.monotonic() + pause

    def _accept(self, asked: _Asked, answer: FetchedPartition) -> None:
        state = asked.state
        state.high_watermark = answer.high_watermark
        state.log_start_offset = answer.log_start_offset
        state.failures = 0
        if not answer.records:
            return
        records, last, fault = before_damage(answer.records, asked.offset, answer.high_watermark)
        if last is None:
            self._corrupt(asked, fault)
            return
        aborted = [(one.producer_id, one.first_offset) for one in answer.aborted_transactions]
        epoch = asked.leader_epoch
        check_crcs, broker_id = self.config.check_crcs, asked.broker_id
        chunk = CompletedFetch(state, asked.offset, records, check_crcs, broker_id, epoch, aborted)
        state.fetched(last.next_offset, min(last.partition_leader_epoch, epoch), chunk.size)
        self.buffer.add(chunk)

    def _corrupt(self, asked: _Asked, reason: str) -> None:
        state = asked.state
        message = f"{state.topic_partition} at offset {state.fetch_offset}: {reason};"
        message += f" damaged {advice(asked.broker_id)}"
        self.buffer.add_failure(state, CorruptMessageError(message))

    def _reset(self, asked: _Asked) -> None:
        state = asked.state
        # The buffered records are still valid; reset once the application has read them.
        if state.buffered:
            self.pause(state)
            return
        policy = self.positions.policy
        logger.warning(
            "%s: offset %d is out of range; going to the %s offset",
            state.topic_partition, asked.offset, policy,
        )  # fmt: skip
        state.await_reset(RESET_TIMESTAMPS[policy])
        self.cluster.request_refresh()
        self.on_reset()

    def _retry(self, state: TopicPartitionState, answer: FetchedPartition) -> None:
        code = ErrorCode(answer.error_code)
        news = self.cluster.learn_leader(
            state.topic_partition, answer.current_leader_id, answer.current_leader_epoch
        )
        logger.info("fetching %s again: %s", state.topic_partition, code.name)
        # A leader epoch that a broker does not know may be one that all forgot: `lower_epochs.py`.
        if (code.stale_metadata or code is ErrorCode.UNKNOWN_LEADER_EPOCH) and not news:
            self.cluster.request_refresh()
        if not news:
            self.pause(state)


class BrokerFetcher:
    """The loop of one broker."""

    def __init__(self, broker_id: int, fetcher: Fetcher) -> None:
        self.wakeup = asyncio.Event()
        self._broker_id = broker_id
        self._fetcher = fetcher
        self._config = fetcher.config
        self._turn = 0

    async def run(self) -> None:
        while True:
            self.wakeup.clear()
            plan, pause = self._plan()
            if plan is None:
                await self._sleep(pause)
                continue
            answered = await self._fetch(plan)
            if not answered and plan.held_back:
                await self._sleep(max(self._config.fetch_max_wait_ms / 1000, _EMPTY_PAUSE))
            elif not answered and not (
                self._config.fetch_max_wait_ms and self._config.fetch_min_bytes
            ):
                await self._sleep(_EMPTY_PAUSE)

    def _plan(self) -> tuple[_Plan | None, float | None]:
        """The next fetch; or None, and how many seconds to wait (None: until woken)."""
        cluster = self._fetcher.cluster
        now = cluster.clock.monotonic()
        led = self._fetcher.positions.led_by(self._broker_id, cluster.metadata)
        if led:  # another one first each time, or a small `fetch_max_bytes` starves the last
            self._turn = (self._turn + 1) % len(led)
            led = led[self._turn :] + led[: self._turn]
        full = self._fetcher.buffer.size >= self._config.fetch_max_bytes
        asked: dict[TopicPartition, _Asked] = {}
        partitions: list[FetchPartition] = []
        pause: float | None = None
        held_back = False
        for state, epoch in led:
            if not state.known or state.blocked or state.paused or state.needs_check(epoch):
                continue
            if now < state.not_before:
                wait = state.not_before - now
                pause = wait if pause is None else min(pause, wait)
            elif full or not state.fetchable(now, self._config.max_partition_fetch_bytes):
                held_back = True
            else:
                tp = state.topic_partition
                asked[tp] = _Asked(state, state.version, state.fetch_offset, self._broker_id, epoch)
                partitions.append(self._question(state, epoch))
        if not partitions:
            return None, pause
        return _Plan(self._request(partitions, held_back), asked, held_back), None

    def _question(self, state: TopicPartitionState, leader_epoch: int) -> FetchPartition:
        return FetchPartition(
            *state.topic_partition,
            fetch_offset=state.fetch_offset,
            current_leader_epoch=leader_epoch,
            max_bytes=self._config.max_partition_fetch_bytes,
        )

    def _request(self, partitions: list[FetchPartition], held_back: bool) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=0 if held_back else self._config.fetch_max_wait_ms,
            min_bytes=self._config.fetch_min_bytes,
            max_bytes=self._config.fetch_max_bytes,
            isolation_level=self._config.isolation_code,
            partitions=partitions,
        )

    async def _fetch(self, plan: _Plan) -> bool:
        """Send the fetch; True if it returned records or errors."""
        try:
            channel = self._fetcher.cluster.channel(self._broker_id, Service.DATA)
            timeout = (self._config.request_timeout_ms + plan.request.max_wait_ms) / 1000
            response: FetchResponse = await channel.call(plan.request, timeout)
        except BarnabasError as error:
            self._on_lost(plan, error)
            return True
        if response.error_code != ErrorCode.NONE:
            self._on_lost(plan, error_for(response.error_code))
            return True
        brought = False
        for answer in response.partitions:
            asked = plan.asked.get(TopicPartition(answer.topic, answer.partition))
            if asked is not None:
                self._fetcher.on_answer(asked, answer)
            brought = brought or bool(answer.records) or answer.error_code != ErrorCode.NONE
        return brought

    def _on_lost(self, plan: _Plan, error: BarnabasError) -> None:
        logger.info("broker %d did not answer a fetch: %s", self._broker_id, error)
        if isinstance(error, TransportError):
            self._fetcher.cluster.note_failure(self._broker_id)
        else:
            self._fetcher.cluster.request_refresh()
        for asked in plan.asked.values():
            self._fetcher.pause(asked.state)

    async def _sleep(self, seconds: float | None) -> None:
        """Wait until woken, at most `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self.wakeup.wait()
        except TimeoutError:
            pass
