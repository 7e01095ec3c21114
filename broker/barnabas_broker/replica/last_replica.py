"""The last replica standing must not forget: while the ISR is thin, only what is durable counts.

An acknowledgement usually rests on several page caches, which do not all lose power at once. When
the ISR has shrunk below `min.insync.replicas`, or to the leader alone, the others may fall behind,
and what the leader then loses with its power they may have to cut away too (KIP-966). So before a
smaller ISR may be committed the leader's log and its epochs are made durable, and as long as it
stays that thin an append counts only once it is flushed: for the high watermark, and for the
answer to `acks=1`.
"""

from collections.abc import Callable

from barnabas_broker.log.log import Log
from barnabas_broker.replica.purgatory import Waiting

FlushSoon = Callable[[Log, Callable[[], None]], None]
"""Make a log durable in the background, then call back in the event loop's turn."""


def is_thin(in_sync_count: int, min_in_sync: int, replica_count: int) -> bool:
    """Whether an ISR of this size no longer protects what its members' page caches hold.

    A partition with one replica is exempt: nobody else ever had its records.
    """
    return replica_count > 1 and in_sync_count < max(min_in_sync, 2)


class LastReplica:
    """Flushes a leader's log for as long as the ISR is thin, one flush at a time.

    Appends that arrive during a flush share the next one. `is_flushed` once everything is durable
    that the log held when this began, `has_vouched` once the controller was told; `on_flushed` is
    called after every flush.
    """

    def __init__(
        self, log: Log, waiting: Waiting, flush_soon: FlushSoon, on_flushed: Callable[[], None]
    ) -> None:
        self.is_flushed = False
        self.has_vouched = False
        self._log = log
        self._waiting = waiting
        self._flush_soon = flush_soon
        self._on_flushed = on_flushed
        self._held = log.log_end_offset
        self._flushing = False
        self._ended = False
        self.flush()

    @property
    def durable_end(self) -> int:
        """The end of what survives a power loss."""
        return self._log.recovery_point

    def flush(self) -> None:
        """Make durable what the log holds now; returns at once."""
        if not self._flushing:
            self._flushing = True
            self._flush_soon(self._log, self._flushed)

    def _flushed(self) -> None:
        self._flushing = False
        if self._ended or self._log.is_failed:
            return
        self.is_flushed = self.is_flushed or self.durable_end >= self._held
        self._waiting.flushed(self.durable_end)
        if self.durable_end < self._log.log_end_offset:
            self.flush()
        self._on_flushed()

    def end(self) -> None:
        """The ISR is no longer thin, or the leader's epoch is over."""
        self._ended = True
