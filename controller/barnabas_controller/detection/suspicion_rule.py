"""When a peer's process is suspected to have ended: the rule, on plain observations.

When a process ends, the kernel closes its connections and its listening socket; while it is paused,
slow or overloaded the kernel keeps both. So a peer is suspected when its stream has ended and a new
connection is refused. A peer that only does not answer (an open connection, an attempt that times
out, a full queue, a broken link) is not suspected: its ZooKeeper session decides, as in Kafka.
"""

from dataclasses import dataclass

from barnabas_common.runtime import ProbeResult

# A failure other than a refusal may come from the network, so it counts only if it lasts.
FAILING_SECONDS = 0.3
FAILURES = 3


@dataclass
class SuspicionRule:
    """One incarnation of one peer, as one detector observes it.

    `had_stream` says whether a stream to this incarnation has been open. Until then a refusal means
    nothing, because the peer may not have listened at that address yet. `suspicion` is the reason
    for which the peer is suspected, or None.
    """

    had_stream: bool = False
    suspicion: str | None = None
    _ended: str = "its stream had ended"
    _failing_since: float | None = None
    _failures: int = 0

    def connected(self) -> None:
        """A stream to the peer is open."""
        self.had_stream = True
        self._stop_counting()

    def ended(self, reason: str) -> None:
        """The stream ended; either side may have closed it."""
        self._ended = reason

    def probed(self, now: float, probe: ProbeResult) -> None:
        """A probe was made while no stream was open; `now` is in seconds."""
        if not self.had_stream:
            return
        if probe is ProbeResult.REFUSED:
            self.suspicion = f"{self._ended}, and a new connection was refused"
        elif probe is ProbeResult.FAILED:
            self._count(now)
        else:
            self._stop_counting()

    def retract(self) -> None:
        """Drop the suspicion, because the fault may be the detector's own."""
        self.suspicion = None

    def _count(self, now: float) -> None:
        if self._failing_since is None:
            self._failing_since = now
        self._failures += 1
        lasted = now - self._failing_since
        if lasted >= FAILING_SECONDS and self._failures >= FAILURES:
            self.suspicion = (
                f"{self._ended}, and {self._failures} attempts to connect failed in {lasted:.1f} s"
            )

    def _stop_counting(self) -> None:
        self._failing_since, self._failures = None, 0
