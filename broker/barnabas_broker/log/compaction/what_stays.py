"""What a pass keeps, and why (Kafka's `Cleaner.cleanInto`). Pure decisions.

Of each key the newest record stays. A tombstone goes in two phases (KIP-534): the first pass that
keeps it writes a delete horizon into its batch, and a pass after that horizon removes it. Until
then every reader that lags less can learn that the key is gone.

A batch whose records all go is removed too, unless it carries the last state of a producer, or
ends where the pass ends: offsets must not be lost there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from barnabas_common.record.batch import BatchHeader

from barnabas_broker.config.key import MAX_LONG
from barnabas_broker.log.compaction.offset_map import OffsetMap
from barnabas_broker.log.compaction.transactions import LastBatch, is_last_of_producer


class Fate(StrEnum):
    """What happens to a record."""

    NEWEST = "the newest of its key"
    AFTER_THE_MAP = "above the offsets that this pass looked at"
    SUPERSEDED = "a later record has its key"
    TOMBSTONE_EXPIRED = "a tombstone past its delete horizon"
    NO_KEY = "it has no key"


STAYS = frozenset({Fate.NEWEST, Fate.AFTER_THE_MAP})


@dataclass(frozen=True)
class PassRules:
    """What holds for a whole pass. `upper_bound` is its first uncleanable offset."""

    offsets: OffsetMap
    now_ms: int
    delete_retention_ms: int
    upper_bound: int
    producers: Mapping[int, LastBatch] = field(default_factory=dict)

    @property
    def new_delete_horizon_ms(self) -> int:
        """It is an int64; with the longest `delete.retention.ms` tombstones stay forever."""
        return min(self.now_ms + self.delete_retention_ms, MAX_LONG)

    def horizon_has_passed(self, header: BatchHeader) -> bool:
        """Whether the tombstones or the marker of this batch may go."""
        horizon = header.delete_horizon_ms
        return horizon is not None and horizon <= self.now_ms

    def stays_without_records(self, header: BatchHeader) -> bool:
        """Whether the batch's header stays if all its records go."""
        return header.next_offset == self.upper_bound or is_last_of_producer(header, self.producers)


def fate(record: Any, offsets: OffsetMap, tombstones_expired: bool) -> Fate:
    """What happens to a record of a batch that is neither a marker nor aborted.

    `record` has the attributes offset, key and value.
    """
    offset, key = record.offset, record.key
    if offset > offsets.latest_offset:
        return Fate.AFTER_THE_MAP
    if key is None:
        return Fate.NO_KEY
    if offset < offsets.get(key):
        return Fate.SUPERSEDED
    if tombstones_expired and record.value is None:
        return Fate.TOMBSTONE_EXPIRED
    return Fate.NEWEST
