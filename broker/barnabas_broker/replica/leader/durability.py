"""Which part of a leader's log counts: plain Kafka's rule, which other rules may override."""

from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.leader.high_watermark import Hold, Progress, what_holds
from barnabas_broker.replica.leader.in_sync import InSyncReplicas


class Durability:
    """Plain Kafka: all of the log counts, flushed or not, because several page caches hold it.

    `LastReplicaStanding` gives other answers while the ISR is too small for that.
    """

    def __init__(self, log: UnifiedLog) -> None:
        self._log = log

    @property
    def end_offset(self) -> int:
        """The end of what counts: the high watermark does not pass it, and the answer to `acks=1`
        waits until it has passed the records."""
        return self._log.log_end_offset

    def appended(self) -> None:
        """The log has grown."""

    def review(self, _isr: InSyncReplicas) -> str:
        """The ISR or its minimum may have changed.

        Returns why the controller should confirm the ISR, or an empty text if it need not.
        """
        return ""

    def confirming(self) -> None:
        """The confirmation that `review` asked for is in flight."""

    def prepare_to_shrink_to(self, _in_sync_count: int) -> bool:
        """Whether an ISR of this size may be proposed now; if not, starts what must come first."""
        return True

    def what_holds(self, progress: Progress) -> Hold:
        """Why the high watermark is below the log end."""
        return what_holds(progress)

    def end(self) -> None:
        """The leader epoch is over."""
