"""Finds positions that are not known, and checks known ones when a leader changes.

One loop, woken by an assignment, a reset or new metadata. After an unclean election the new leader
may lack records fetched from the old one; where the old epoch ends in its log tells (KIP-320).
"""

import asyncio
import logging
from collections.abc import Sequence

from barnabas.cluster import Cluster, Leader
from barnabas.cluster.by_leader import ask_leaders, list_offsets
from barnabas.consumer.buffer import FetchBuffer
from barnabas.consumer.config import ConsumerConfig
from barnabas.consumer.fetcher import Fetcher
from barnabas.consumer.positions import PartitionPosition, Positions, apply_epoch_end
from barnabas.errors import BarnabasError
from barnabas.messages.offsets import EpochPartition, OffsetForLeaderEpochRequest
from barnabas.runtime import TaskScope
from barnabas.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class PositionKeeper:
    """Resets and checks the positions of one consumer."""

    def __init__(
        self,
        config: ConsumerConfig,
        cluster: Cluster,
        positions: Positions,
        buffer: FetchBuffer,
        fetcher: Fetcher,
    ) -> None:
        self._timeout = config.default_api_timeout_ms / 1000
        self._isolation = config.isolation_code
        self._cluster = cluster
        self._positions = positions
        self._buffer = buffer
        self._fetcher = fetcher
        self._wakeup = asyncio.Event()
        self._settled = asyncio.Event()
        self._tasks = TaskScope("positions")

    def start(self) -> None:
        self._cluster.on_update(self.wake)
        self._tasks.spawn(self._run(), "positions")
        self.wake()

    async def close(self) -> None:
        await self._tasks.close()

    def wake(self) -> None:
        self._wakeup.set()

    async def settled(self) -> None:
        """Wait until every assigned partition has a position, or an error instead of one."""
        while any(not state.blocked for state in self._positions.unreset()):
            self._settled.clear()
            await self._settled.wait()

    async def _run(self) -> None:
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            unknown = [state for state in self._positions.unreset() if not state.blocked]
            unchecked = self._unchecked()
            try:
                if unknown:
                    await self._look_up(unknown)
                if unchecked:
                    await self._check(unchecked)
            except BarnabasError as error:
                self._raise_later([*unknown, *(state for state, _ in unchecked)], error)
            if unknown or unchecked:
                self._fetcher.wake()
            self._settled.set()

    async def _look_up(self, states: Sequence[PartitionPosition]) -> None:
        versions = [state.version for state in states]
        wanted = {s.topic_partition: s.reset_to for s in states if s.reset_to is not None}
        found = await list_offsets(self._cluster, wanted, self._isolation, self._timeout)
        for state, version in zip(states, versions, strict=True):
            if state.version == version:
                state.seek(found[state.topic_partition].offset)
                logger.info("%s: reading from offset %d", state.topic_partition, state.position)

    def _unchecked(self) -> list[tuple[PartitionPosition, int]]:
        """Partitions under a leader of a newer epoch than that of the last batch fetched."""
        found = []
        for tp, state in self._positions.states.items():
            leader = self._cluster.metadata.leader(tp)
            if leader is not None and not state.blocked and state.needs_check(leader.epoch):
                found.append((state, leader.epoch))
        return found

    async def _check(self, unchecked: Sequence[tuple[PartitionPosition, int]]) -> None:
        states = {state.topic_partition: (state, state.version) for state, _ in unchecked}
        asked_under: dict[TopicPartition, int] = {}

        def build(partitions: Sequence[tuple[TopicPartition, Leader]]) -> object:
            asked_under.update((tp, leader.epoch) for tp, leader in partitions)
            return OffsetForLeaderEpochRequest(
                partitions=[
                    EpochPartition(*tp, states[tp][0].fetched_epoch, leader.epoch)
                    for tp, leader in partitions
                ]
            )

        answers = await ask_leaders(self._cluster, states, build, self._timeout)
        for tp, answer in answers.items():
            state, version = states[tp]
            if state.version != version:
                continue
            error = apply_epoch_end(state, answer, asked_under[tp], self._positions.policy)
            if error is not None:
                self._buffer.add_failure(state, error)

    def _raise_later(self, states: Sequence[PartitionPosition], error: BarnabasError) -> None:
        """The application learns of it at its next poll; after that it is tried again."""
        for state in states:
            self._buffer.add_failure(state, error)
