"""A coordinator's reads of a partition of its own topic: as the leader, and up to the log end.

Not up to the high watermark, which lags after an election: what is above it was perhaps
acknowledged, and may already be in every replica. Kafka's coordinators read the same.
"""

import asyncio
from contextlib import suppress
from typing import NamedTuple

from barnabas_common.errors import CorruptMessageError
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.replica.damaged_replicas import DamagedReplicas, first_damage
from barnabas_broker.replica.deadlines import Waiter
from barnabas_broker.replica.partition.partitions import Partitions

_LOOK_SECONDS = 0.5


class LogRange(NamedTuple):
    """Offsets from `start` to below `end`."""

    start: int
    end: int


class CoordinatorReads:
    """Raises KafkaError if this broker does not lead the partition under the given epoch."""

    def __init__(self, partitions: Partitions, damaged: DamagedReplicas) -> None:
        self._partitions = partitions
        self._damaged = damaged

    def log_range(self, key: TopicPartition, leader_epoch: int) -> LogRange:
        """Where the leader's log starts and ends now."""
        log = self._partitions.hosted(key).lead(leader_epoch).log
        return LogRange(log.log_start_offset, log.log_end_offset)

    def is_committed(self, key: TopicPartition, leader_epoch: int, end: int) -> bool:
        """Whether everything below `end` is committed."""
        return self._partitions.hosted(key).lead(leader_epoch).log.high_watermark >= end

    async def until_committed(
        self, key: TopicPartition, leader_epoch: int, end: int, whatever_happens: bool
    ) -> None:
        """Wait until everything below `end` is committed; unless `whatever_happens`, not while it
        cannot be for lack of replicas."""
        while True:
            partition = self._partitions.hosted(key)
            leadership = partition.lead(leader_epoch)
            too_few = len(leadership.isr.maximal) < leadership.min_in_sync
            if (too_few and not whatever_happens) or leadership.log.high_watermark >= end:
                return
            waiter: Waiter = asyncio.get_running_loop().create_future()
            partition.delayed_operations.park_consumer(waiter)
            try:
                # Only a move of the high watermark wakes it, not an ISR that shrinks.
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_SECONDS):
                        await waiter
            finally:
                partition.delayed_operations.leave_consumer(waiter)

    def read(
        self, key: TopicPartition, leader_epoch: int, offset: int, end: int, max_bytes: int
    ) -> bytes:
        """Whole batches from `offset` on, their checksums verified; at least one.

        Raises:
            CorruptMessageError: `offset` is damaged, and no other replica is in sync.
            KafkaStorageError: `offset` is damaged; another replica is about to lead.
        """
        leadership = self._partitions.hosted(key).lead(leader_epoch)
        log = leadership.log
        try:
            records = log.read(offset, max_bytes, end)
        except CorruptMessageError as error:
            raise self._damaged.found(leadership, offset, error.message) from error
        damage = first_damage(records, offset, at_least_one=True)
        if damage is None:
            return records
        if damage[0] > offset:
            return log.read(offset, max_bytes, damage[0])
        raise self._damaged.found(leadership, *damage)
