"""A file of `MemoryDisk`, with what has been written and is not on the disk yet."""

import random
from dataclasses import dataclass, field

from barnabas_broker.disk.page_cache import Inode

Change = bytes | int
"""A write since the last flush: bytes appended, or the size the file was cut to."""

SECTOR = 512


@dataclass(eq=False)
class FaultyInode(Inode):
    """A file that keeps its unflushed writes apart, because a power loss may keep some of them."""

    changes: list[Change] = field(default_factory=list)
    unwritten: list[range] = field(default_factory=list)  # what a failed flush left behind
    rot: dict[int, int] = field(default_factory=dict)  # what was where a bit has changed

    @property
    def flushed_size(self) -> int:
        return min([self.common, *(lost.start for lost in self.unwritten if lost)])

    @property
    def sound(self) -> bytearray:
        if not self.rot:
            return self.data
        sound = bytearray(self.data)
        for position, byte in self.rot.items():
            sound[position] = byte
        return sound

    def append(self, data: bytes) -> None:
        super().append(data)
        self.changes.append(data)

    def cut(self, size: int) -> None:
        super().cut(size)
        self.changes.append(size)
        self.unwritten = [range(r.start, min(r.stop, size)) for r in self.unwritten]
        self.rot = {position: byte for position, byte in self.rot.items() if position < size}

    def flush(self) -> None:
        super().flush()
        self.changes.clear()
        for lost in self.unwritten:
            _zero(self.flushed, lost)

    def fail_to_flush(self) -> None:
        """Count the pages as clean, although only the file's length is on the disk."""
        self.unwritten.append(range(self.common, len(self.data)))
        self.flush()

    def evict(self) -> None:
        """Read from the disk again what a failed flush left behind."""
        for lost in self.unwritten:
            _zero(self.data, lost)
        self.unwritten.clear()
        self.cuts += 1

    def flip(self, position: int, bit: int) -> None:
        """Change a bit on the disk, and in the page cache, as when the page is read again."""
        self.rot.setdefault(position, self.data[position])
        for stored in (self.data, self.flushed):
            if position < len(stored):
                stored[position] ^= 1 << bit
        self.cuts += 1

    def flip_back(self) -> None:
        """Undo every `flip`."""
        for position, byte in self.rot.items():
            for stored in (self.data, self.flushed):
                if position < len(stored):
                    stored[position] = byte
        self.cuts += bool(self.rot)
        self.rot.clear()

    def lose_power(self, chance: random.Random) -> None:
        data = bytearray(self.flushed)
        survivors = chance.randrange(len(self.changes) + 1)
        for change in self.changes[:survivors]:
            _apply(data, change)
        if survivors < len(self.changes):
            _apply(data, _torn(self.changes[survivors], chance))
        if chance.random() < 0.5:
            _lose_sectors(data, self.common, self.flushed, chance)
        self.data, self.flushed, self.common = data, bytearray(data), len(data)
        self.changes.clear()
        self.unwritten.clear()
        self.rot = {at: byte for at, byte in self.rot.items() if at < len(data)}
        self.cuts += 1


def _zero(data: bytearray, lost: range) -> None:
    data[lost.start : lost.stop] = bytes(len(data[lost.start : lost.stop]))


def _apply(data: bytearray, change: Change) -> None:
    if isinstance(change, int):
        del data[change:]
    else:
        data += change


def _torn(change: Change, chance: random.Random) -> Change:
    """A part of a write; one of its ends is as likely to be zeros as to be missing."""
    if isinstance(change, int):
        return b""
    kept = chance.randrange(len(change) + 1)
    zeros = chance.choice([0, chance.randrange(len(change) - kept + 1)])
    return change[:kept] + bytes(zeros)


def _lose_sectors(data: bytearray, first: int, flushed: bytearray, chance: random.Random) -> None:
    """The disk writes sectors in an order of its own: some of the changed ones are missing."""
    for start in range(first - first % SECTOR, len(data), SECTOR):
        if chance.random() < 0.5:
            end = min(start + SECTOR, len(data))
            data[start:end] = flushed[start:end].ljust(end - start, b"\0")
