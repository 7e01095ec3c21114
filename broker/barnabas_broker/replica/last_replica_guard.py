"""When a leader begins to count only what is flushed, when it stops, and what it tells of it.

Asked by its `Leadership` at every turn of the ISR; the flushing itself is `last_replica.py`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.events import EventKind

from barnabas_broker.replica.in_sync import InSyncReplicas
from barnabas_broker.replica.last_replica import LastReplica, is_thin
from barnabas_broker.replica.purgatory import Waiting

if TYPE_CHECKING:
    from barnabas_broker.replica.leadership import LeaderEnvironment, Leadership

logger = logging.getLogger(__name__)


class LastReplicaGuard:
    """`last` is there while the ISR is thin, or about to be."""

    def __init__(
        self, leadership: Leadership, environment: LeaderEnvironment, waiting: Waiting
    ) -> None:
        self.last: LastReplica | None = None
        self._leadership = leadership
        self._environment = environment
        self._waiting = waiting

    def review(self) -> None:
        """Begin or end to count only what is durable, as the ISR has become thin or is not."""
        isr = self._leadership.isr
        if self._is_thin(min(len(isr.committed), len(isr.proposed or isr.committed))):
            self._begin(f"the ISR is {list(isr.committed)}")
            self._vouch()
            return
        if self.last is not None:
            self.end()
            self._environment.events.record(
                EventKind.LAST_REPLICA_RELIEVED,
                f"the ISR is {list(isr.committed)}",
                self._leadership.topic_partition,
            )
        self._waiting.flushed(self._leadership.log.log_end_offset)

    def allows(self, in_sync_count: int) -> bool:
        """Whether an ISR of this size may be asked for now; if not, a flush is on its way and
        `maybe_shrink_isr` is called again after it."""
        if self._is_thin(in_sync_count):
            self._begin(f"about to ask for an ISR of {in_sync_count}")
        return self.last is None or self.last.is_flushed

    def end(self) -> None:
        """The ISR is no longer thin, or the leader's epoch is over."""
        if self.last is not None:
            self.last.end()
            self.last = None

    def _is_thin(self, in_sync_count: int) -> bool:
        leader = self._leadership
        enabled = self._environment.flush_soon is not None
        return enabled and is_thin(in_sync_count, leader.min_in_sync, len(leader.replicas))

    def _begin(self, why: str) -> None:
        flush_soon, leader = self._environment.flush_soon, self._leadership
        if self.last is not None or flush_soon is None:
            return
        cause = f"{why}, fewer than {max(2, leader.min_in_sync)}"
        logger.info("%s: what is flushed counts from now on: %s", leader.topic_partition, cause)
        self._environment.events.record(
            EventKind.LAST_REPLICA_FLUSHING,
            cause,
            leader.topic_partition,
            log_end_offset=leader.log.log_end_offset,
            durable_end=leader.log.recovery_point,
        )
        self.last = LastReplica(leader.log, self._waiting, flush_soon, self._flushed)

    def _flushed(self) -> None:
        self._leadership.isr_changes.maybe_shrink_isr()
        self._vouch()
        self._leadership.advance_high_watermark()

    def _vouch(self) -> None:
        """Tell the controller, once, that the last replica's log is durable: by asking for the ISR
        there is. If this broker then loses power it has still everything."""
        last, leader = self.last, self._leadership
        isr = leader.isr
        if last is None or isr.in_flight:
            return
        if isr.committed != (self._environment.broker_id,):
            last.has_vouched = False
        elif last.is_flushed and not last.has_vouched:
            cause = f"all of the log is flushed, up to offset {leader.log.recovery_point}"
            leader.isr_changes.propose(InSyncReplicas(isr.committed, isr.committed), cause)
            last.has_vouched = leader.isr.in_flight
