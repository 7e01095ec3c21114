"""Which leader epoch each offset of a log was written in (KIP-101, KIP-279).

One entry per epoch: its number and the first offset written in it; both rise strictly from entry
to entry. A leader answers from the cache where an epoch ended, and a follower truncates its log by
that answer. Plain data: `LeaderEpochFile` stores it as `leader-epoch-checkpoint`.
"""

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

UNDEFINED = -1
"""An epoch or an offset that is unknown."""


class EpochEntry(NamedTuple):
    """A leader epoch, and the first offset that was written in it."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """`end_offset` is the first offset after the records of `epoch` and earlier epochs."""

    epoch: int
    end_offset: int


_epoch = attrgetter("epoch")
_start_offset = attrgetter("start_offset")


class LeaderEpochCache:
    """`version` grows with every change; `LeaderEpochFile` compares it with what it has saved."""

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._entries: list[EpochEntry] = []
        self.version = 0
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)
        self.version = 0

    @property
    def entries(self) -> list[EpochEntry]:
        """A copy, ascending."""
        return list(self._entries)

    def latest_epoch(self) -> int | None:
        """The newest epoch; None if there is none."""
        return self._entries[-1].epoch if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record that `epoch` starts at `start_offset`; False if that changes nothing.

        Entries of the same or a later epoch, or with the same or a later start, contradict the new
        one. They are from leaders whose records were truncated, and are removed.
        """
        if self._entries:
            latest = self._entries[-1]
            if epoch == latest.epoch and start_offset >= latest.start_offset:
                return False
        while self._entries and (
            self._entries[-1].epoch >= epoch or self._entries[-1].start_offset >= start_offset
        ):
            self._entries.pop()
        self._entries.append(EpochEntry(epoch, start_offset))
        self.version += 1
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Where the requested epoch ended in this log.

        The answer names the requested epoch, or else the largest epoch below it in this log. In the
        second case the follower must truncate and ask again (KIP-279). Both numbers are -1 if the
        end is unknown.
        """
        latest = self.latest_epoch()
        if epoch == UNDEFINED or latest is None or epoch > latest:
            return EpochEnd(UNDEFINED, UNDEFINED)
        if epoch == latest:
            return EpochEnd(epoch, log_end_offset)
        following = bisect_right(self._entries, epoch, key=_epoch)
        known = self._entries[following - 1].epoch if following else epoch
        return EpochEnd(known, self._entries[following].start_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch of the record at `offset`, or None below the first entry."""
        following = bisect_right(self._entries, offset, key=_start_offset)
        return self._entries[following - 1].epoch if following else None

    def truncate_from_end(self, end_offset: int) -> bool:
        """Remove the epochs that start at `end_offset` or later; True if there were any."""
        count = len(self._entries)
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
        return self._note_change(len(self._entries) != count)

    def truncate_from_start(self, start_offset: int) -> bool:
        """Remove the epochs that ended by `start_offset`; the first remaining one starts there.

        Returns False if that changes nothing.
        """
        following = bisect_right(self._entries, start_offset, key=_start_offset)
        if following == 0:
            return False
        kept = EpochEntry(self._entries[following - 1].epoch, start_offset)
        changed = following > 1 or self._entries[0] != kept
        self._entries[:following] = [kept]
        return self._note_change(changed)

    def clear(self) -> None:
        """Remove all epochs."""
        self.truncate_from_end(0)

    def _note_change(self, changed: bool) -> bool:
        if changed:
            self.version += 1
        return changed
