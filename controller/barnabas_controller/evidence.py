"""What counts as evidence that a peer's process is dead: the rule, on plain observations.

A process that dies takes its connections and its listening socket along; a process that is paused,
slow or overloaded keeps both, for the kernel keeps them. So a stream that ended, followed by a
refusal to connect again, is evidence. Whatever is only silent is none: a connection that stands, an
attempt that times out, a queue that is full, a wire that is cut. That waits for the ZooKeeper
session, as in Kafka.
"""

from dataclasses import dataclass

from barnabas.runtime import Knock

# Failures other than a refusal come from the network between: they must last.
FAILING_SECONDS = 0.3
FAILURES = 3


@dataclass
class Evidence:
    """One life of one peer, as one watcher sees it.

    `had_stream`: a stream to this life of the peer has been open. Without one a refusal says
    nothing: perhaps nobody ever listened at that address. `verdict` is None, or why the peer is
    taken for dead, and then final.
    """

    had_stream: bool = False
    verdict: str | None = None
    _ended: str = "its stream had ended"
    _failing_since: float | None = None
    _failures: int = 0

    def connected(self) -> None:
        self.had_stream = True
        self._stop_counting()

    def ended(self, reason: str) -> None:
        """The stream ended, whoever ended it."""
        self._ended = reason

    def knocked(self, now: float, knock: Knock) -> None:
        """An attempt to connect again, while no stream is open; `now` in seconds."""
        if not self.had_stream:
            return
        if knock is Knock.REFUSED:
            self.verdict = f"{self._ended}, and a new connection was refused"
        elif knock is Knock.FAILED:
            self._count(now)
        else:
            self._stop_counting()

    def disbelieve(self) -> None:
        """The fault may be the watcher's own: to be judged again by the next attempt."""
        self.verdict = None

    def _count(self, now: float) -> None:
        if self._failing_since is None:
            self._failing_since = now
        self._failures += 1
        lasted = now - self._failing_since
        if lasted >= FAILING_SECONDS and self._failures >= FAILURES:
            self.verdict = (
                f"{self._ended}, and {self._failures} attempts to connect failed in {lasted:.1f} s"
            )

    def _stop_counting(self) -> None:
        self._failing_since, self._failures = None, 0
