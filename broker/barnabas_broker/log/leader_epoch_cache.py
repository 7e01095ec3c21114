"""Which leader epoch each offset of a log was written in (KIP-101, KIP-279).

One entry per epoch: its number and the first offset written in it. The log keeps it in step with
its batches; a leader answers from it where an epoch ended, a follower cuts its log by the answer.
Plain data: `LeaderEpochFile` keeps it on disk as `leader-epoch-checkpoint`.

Epochs and start offsets both rise strictly from entry to entry.
"""

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

UNDEFINED = -1
"""Stands for an epoch, and for an offset, that nobody knows."""


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """`end_offset` is the first offset after all that was written up to and in `epoch`."""

    epoch: int
    end_offset: int


_epoch = attrgetter("epoch")
_start_offset = attrgetter("start_offset")


class LeaderEpochCache:
    """`version` grows with every change, so that who saves the entries knows what is new."""

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
        return self._entries[-1].epoch if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` writes from `start_offset` on; whether that was news.

        Entries that contradict the new one were written by leaders whose records are gone, and are
        dropped: those of the same or a later epoch, or with the same or a later start.
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

        The epoch in the answer is the requested one, or the largest below it that this log has: the
        asker must then truncate and ask again (KIP-279). Both are -1 when this log cannot know.
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
        """The epoch that wrote `offset`, or None below the first entry."""
        following = bisect_right(self._entries, offset, key=_start_offset)
        return self._entries[following - 1].epoch if following else None

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget epochs that start at `end_offset` or later; whether there were any."""
        count = len(self._entries)
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
        return self._note_change(len(self._entries) != count)

    def truncate_from_start(self, start_offset: int) -> bool:
        """Forget epochs that ended by `start_offset`; the first that is left then starts there."""
        following = bisect_right(self._entries, start_offset, key=_start_offset)
        if following == 0:
            return False
        kept = EpochEntry(self._entries[following - 1].epoch, start_offset)
        changed = following > 1 or self._entries[0] != kept
        self._entries[:following] = [kept]
        return self._note_change(changed)

    def clear(self) -> bool:
        """Forget everything; whether there was anything."""
        changed = bool(self._entries)
        self._entries.clear()
        return self._note_change(changed)

    def _note_change(self, changed: bool) -> bool:
        if changed:
            self.version += 1
        return changed
