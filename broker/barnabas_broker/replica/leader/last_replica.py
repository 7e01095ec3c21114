"""The last replica standing: while the ISR is too small, only flushed records count (KIP-966).

An acknowledged record is usually in several page caches, which do not all lose power together. When
the ISR has shrunk below `min.insync.replicas`, or to the leader alone, the other replicas may fall
behind. If the leader then loses records in a power loss, the others may have to truncate theirs
too. Therefore the leader flushes its log and its epochs before a smaller ISR may be committed. As
long as the ISR is that small, an append counts only once it is flushed: for the high watermark, and
for the answer to `acks=1`.
"""

from collections.abc import Callable
from enum import Enum, auto

from barnabas_common.events import EventKind

from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.leader.durability import Durability
from barnabas_broker.replica.leader.environment import FlushSoon, LeaderEnvironment
from barnabas_broker.replica.leader.high_watermark import Hold, Progress, what_holds
from barnabas_broker.replica.leader.in_sync import InSyncReplicas, effective_min_in_sync


class Phase(Enum):
    """How far the leader of an ISR that requires flushing has come."""

    NOT_REQUIRED = auto()  # the ISR is large enough: unflushed records count too
    FLUSHING = auto()  # records from before the ISR required flushing are not flushed yet
    FLUSHED = auto()  # those records are flushed: a smaller ISR may be proposed
    REPORTED = auto()  # the controller has been asked to record that they are flushed


def isr_requires_flush(in_sync_count: int, min_in_sync: int, replica_count: int) -> bool:
    """Whether an ISR of this size no longer protects the records in its members' page caches.

    A partition with one replica is exempt: no other broker ever had its records.
    """
    return replica_count > 1 and in_sync_count < max(min_in_sync, 2)


def what_holds_last_replica(progress: Progress, log_end_offset: int) -> Hold:
    """Like `what_holds`, for a leader whose `progress.end_offset` is the end of what is flushed."""
    slowest = min(progress.awaited.values(), default=log_end_offset)
    if (
        progress.high_watermark < log_end_offset
        and progress.in_sync_count >= progress.min_in_sync
        and slowest >= progress.end_offset
    ):
        return Hold(
            "the ISR is so small that only flushed records count,"
            f" and what is flushed ends at offset {progress.end_offset}"
        )
    return what_holds(progress._replace(end_offset=log_end_offset))


class LastReplicaStanding(Durability):
    """Flushes the log for as long as the ISR requires it, one flush at a time.

    Appends that arrive during a flush share the next one. `on_flushed` is called after every flush.
    """

    def __init__(
        self,
        log: UnifiedLog,
        replica_count: int,
        environment: LeaderEnvironment,
        flush_soon: FlushSoon,
        on_flushed: Callable[[], None],
    ) -> None:
        super().__init__(log)
        self.phase = Phase.NOT_REQUIRED
        self._replica_count = replica_count
        self._environment = environment
        self._flush_soon = flush_soon
        self._on_flushed = on_flushed
        self._required_end = 0
        self._flush_in_flight = False

    @property
    def end_offset(self) -> int:
        if self.phase is Phase.NOT_REQUIRED:
            return self._log.log_end_offset
        return self._log.recovery_point

    def appended(self) -> None:
        if self.phase is not Phase.NOT_REQUIRED:
            self._flush()

    def review(self, isr: InSyncReplicas) -> str:
        """Start or stop requiring flushes, as the committed and the proposed ISR demand.

        A request to confirm the present ISR shows the controller that the last replica's log is
        flushed: if this broker loses power after that, it still has every record.
        """
        if not self._requires_flush(min(len(isr.committed), len(isr.proposed or isr.committed))):
            self._relieve(isr)
            return ""
        self._require(f"the ISR is {list(isr.committed)}")
        if isr.in_flight:
            return ""
        if isr.committed != (self._environment.broker_id,):
            if self.phase is Phase.REPORTED:
                self.phase = Phase.FLUSHED
            return ""
        if self.phase is not Phase.FLUSHED:
            return ""
        return f"all of the log is flushed, up to offset {self._log.recovery_point}"

    def confirming(self) -> None:
        self.phase = Phase.REPORTED

    def prepare_to_shrink_to(self, in_sync_count: int) -> bool:
        """Begin the flush that so small an ISR requires; True if the ISR may shrink already.

        If not, the caller tries again when `on_flushed` is called.
        """
        if self._requires_flush(in_sync_count):
            self._require(f"about to ask for an ISR of {in_sync_count}")
        return self.phase is not Phase.FLUSHING

    def what_holds(self, progress: Progress) -> Hold:
        return what_holds_last_replica(progress, self._log.log_end_offset)

    def end(self) -> None:
        self.phase = Phase.NOT_REQUIRED

    @property
    def _min_in_sync(self) -> int:
        return effective_min_in_sync(self._log.config.min_insync_replicas, self._replica_count)

    def _requires_flush(self, in_sync_count: int) -> bool:
        return isr_requires_flush(in_sync_count, self._min_in_sync, self._replica_count)

    def _require(self, why: str) -> None:
        if self.phase is not Phase.NOT_REQUIRED:
            return
        self.phase, self._required_end = Phase.FLUSHING, self._log.log_end_offset
        self._environment.events.record(
            EventKind.LAST_REPLICA_FLUSHING,
            f"{why}, fewer than {max(2, self._min_in_sync)}",
            self._log.topic_partition,
            log_end_offset=self._required_end,
            durable_end=self._log.recovery_point,
        )
        self._flush()

    def _relieve(self, isr: InSyncReplicas) -> None:
        if self.phase is not Phase.NOT_REQUIRED:
            self.phase = Phase.NOT_REQUIRED
            self._environment.events.record(
                EventKind.LAST_REPLICA_RELIEVED,
                f"the ISR is {list(isr.committed)}",
                self._log.topic_partition,
            )

    def _flush(self) -> None:
        if not self._flush_in_flight:
            self._flush_in_flight = True
            self._flush_soon(self._log, self._flushed)

    def _flushed(self) -> None:
        self._flush_in_flight = False
        if self.phase is Phase.NOT_REQUIRED or self._log.is_failed:
            return
        durable_end = self._log.recovery_point
        if self.phase is Phase.FLUSHING and durable_end >= self._required_end:
            self.phase = Phase.FLUSHED
        if durable_end < self._log.log_end_offset:
            self._flush()
        self._on_flushed()
