"""The wait for the coordinator's word before a transaction's first batch is appended (KIP-890).

Between the coordinator's answer and the append, the transaction's marker may come, and even the
next transaction begin. So a wait has a guard, which a marker or an append of the producer voids.
"""

from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class VerificationGuard:
    """`lowest_sequence` is the lowest that waits under `producer_epoch`: an answer for a later
    batch may come first, and a producer without an entry may begin with any sequence."""

    producer_epoch: int
    lowest_sequence: int
    since_ms: int


NOT_NEEDED = VerificationGuard(-1, -1, -1)
"""For appends while `transaction.partition.verification.enable` is off."""


class Verifications:
    """The guards of one log's producers."""

    def __init__(self) -> None:
        self._guards: dict[int, VerificationGuard] = {}

    def begin(
        self, producer_id: int, producer_epoch: int, sequence: int, now_ms: int
    ) -> VerificationGuard:
        """The guard for a batch with this first sequence; all that wait share it."""
        guard = self._guards.get(producer_id)
        if guard is None:
            guard = VerificationGuard(producer_epoch, sequence, now_ms)
            self._guards[producer_id] = guard
        elif producer_epoch == guard.producer_epoch:
            guard.lowest_sequence = min(guard.lowest_sequence, sequence)
        elif producer_epoch > guard.producer_epoch:
            guard.producer_epoch, guard.lowest_sequence = producer_epoch, sequence
        return guard

    def holds(self, producer_id: int, guard: VerificationGuard | None) -> bool:
        """Whether nothing came between the request and the append."""
        if guard is None:
            return False
        return guard is NOT_NEEDED or self._guards.get(producer_id) is guard

    def end(self, producer_id: int) -> None:
        """A transactional batch or a marker of the producer was appended."""
        self._guards.pop(producer_id, None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget waits that came to no append."""
        for producer_id, guard in list(self._guards.items()):
            if now_ms - guard.since_ms >= expiration_ms:
                del self._guards[producer_id]
