"""The truth about a compacted partition: its committed records by key, and its tombstones.

Compaction may take a record only if a later one of its key is committed, or if it is a tombstone
whose delete horizon has passed.
"""

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass

from barnabas_simulator.invariants.logs.image import LogImage
from barnabas_simulator.labels import is_tombstone, key_of


@dataclass(frozen=True)
class CompactedTopic:
    """What the checker must know of a topic that is compacted. `latest_ms` is the latest time that
    any broker's clock can show or have shown, `most_skew_ms` by how much one was wrong at most."""

    delete_retention_ms: int
    latest_ms: Callable[[], int] = lambda: 0
    most_skew_ms: Callable[[], int] = lambda: 0


class KeyedRecords:
    """`labels` of the committed records by offset; also of those that only a client was told of.
    `horizons`: the earliest delete horizon under which any log has had a tombstone."""

    def __init__(self, topic: CompactedTopic) -> None:
        self.topic = topic
        self.labels: dict[int, bytes] = {}
        self.horizons: dict[int, int] = {}
        self._offsets: dict[bytes, list[int]] = {}

    def note(self, offset: int, label: bytes) -> None:
        """A record is committed."""
        key = key_of(label)
        if key is not None and offset not in self.labels:
            self.labels[offset] = label
            insort(self._offsets.setdefault(key, []), offset)

    def forget_from(self, offset: int) -> None:
        """An excused loss: what is above is not committed any more."""
        self.labels = {at: label for at, label in self.labels.items() if at < offset}
        for offsets in self._offsets.values():
            del offsets[bisect_left(offsets, offset) :]

    def is_newest(self, offset: int, label: bytes) -> bool:
        """Whether no later record of its key is known, and it is no tombstone."""
        key = key_of(label)
        newest = self._offsets.get(key, [offset])[-1] if key is not None else offset
        return newest <= offset and not is_tombstone(label)

    def missing_from(
        self, image: LogImage, high_watermark: int, log_end: int, bound: int
    ) -> int | None:
        """The offset of a committed record that a log lacks, although it may not be gone.

        Looks at the newest record of each key in the readable part of the log. It may be gone if a
        later one of its key is there, or has not been copied yet: the leader had it. The later one
        may be a tombstone that has expired. Where the log starts is no excuse: in no run does
        retention delete anything.
        `bound` is the highest high watermark of any replica: nothing above it may replace another.
        """
        for key, offsets in self._offsets.items():
            known = bisect_left(offsets, high_watermark)
            if not known:
                continue
            newest = offsets[known - 1]
            found = image.label_at(newest)
            if found is not None and found != self.labels[newest]:
                return newest
            if (
                found is None
                and not any(at >= log_end or image.label_at(at) for at in offsets[known:])
                and not any(self._has_expired(at) for at in offsets[known - 1 :])
                and not image.has_later(key, newest, bound)
            ):
                return newest
        return None

    def _has_expired(self, offset: int) -> bool:
        """Whether a tombstone may be gone by now."""
        horizon = self.horizons.get(offset)
        return horizon is not None and horizon <= self.topic.latest_ms()

    def see_horizons(self, image: LogImage) -> str | None:
        """Note the delete horizons in a log; returns what is wrong with one, None if nothing.

        A horizon is `delete.retention.ms` after a pass that came after the tombstone.
        """
        for index, batch in enumerate(image.batches):
            horizon = batch.delete_horizon_ms
            if horizon is None:
                continue
            for record in image.entries(index):
                if is_tombstone(record.label):
                    known = self.horizons.setdefault(record.offset, horizon)
                    self.horizons[record.offset] = min(known, horizon)
                    waits = horizon - record.timestamp + self.topic.most_skew_ms()
                    if waits < self.topic.delete_retention_ms:
                        return f"{record} may go at {horizon}, {waits} ms after it was sent"
        return None
