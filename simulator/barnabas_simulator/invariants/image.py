"""The logs as their bytes on disk show them, read without the broker that wrote them.

A `LogImage` is the batches of one replica's log. An update reads only the files' new bytes, so that
frequent updates are cheap. Batches are compared as `Batch`: offsets, epoch and checksum identify
the bytes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas_broker.log.manager.log_folders import parse_folder_name
from barnabas_common.record.batch import CorruptBatch, check_crc, parse_header
from barnabas_common.record.reader import read_batch
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.disk import MemoryDisk, Stored


class Batch(NamedTuple):
    base_offset: int
    last_offset: int
    epoch: int
    crc: int
    size: int


class _Place(NamedTuple):
    file: Stored
    position: int


class LogImage:
    """One replica's log, as stored in its files."""

    def __init__(self, disk: MemoryDisk, path: str) -> None:
        self.path = path
        self.batches: list[Batch] = []
        self.rebuilt = 0
        """How often it was re-read from the beginning, because a file was cut or replaced."""
        self._disk = disk
        self._places: list[_Place] = []
        self._files: list[Stored] = []
        self._cuts: list[int] = []
        self._read = 0

    @property
    def end(self) -> int:
        """The offset after the last whole batch."""
        return self.batches[-1].last_offset + 1 if self.batches else 0

    @property
    def durable_end(self) -> int:
        """The offset up to which a power loss leaves everything."""
        names = self._disk.look_into(self.path).items()
        durable = [file for n, file in names if self._disk.is_durable(f"{self.path}/{n}")]
        for batch, (file, position) in zip(self.batches, self._places, strict=True):
            is_named = any(file is other for other in durable)
            if not is_named or position + batch.size > file.flushed_size:
                return batch.base_offset
        return max(self.end, self.last_base)

    @property
    def last_base(self) -> int:
        """The base offset of the last segment: where an empty log ends."""
        names = sorted(n for n in self._disk.look_into(self.path) if n.endswith(".log"))
        return int(names[-1].removesuffix(".log")) if names else 0

    def update(self, segments: Sequence[int] | None = None) -> None:
        """Read what is new. `segments` are the base offsets of an open log; without them, for a
        broker that does not run, every `.log` file counts up to where recovery would stop."""
        stored = self._disk.look_into(self.path)
        if segments is None:
            names = sorted(name for name in stored if name.endswith(".log"))
        else:
            names = [f"{base:020d}.log" for base in segments]
        files = [stored[name] for name in names if name in stored]
        known = len(self._files)
        if files[:known] != self._files or [f.cuts for f in files[:known]] != self._cuts:
            self.batches, self._places, self._read, known = [], [], 0, 0
            self.rebuilt += 1
        for number in range(max(0, known - 1), len(files)):
            self._read = self._take(files[number], self._read if number == known - 1 else 0)
        self._files, self._cuts = files, [file.cuts for file in files]

    def _take(self, file: Stored, position: int) -> int:
        """Read a file from `position`; returns the end of its last whole batch."""
        data = file.data
        while position < len(data):
            try:
                header = parse_header(data, position)
                if position + header.size > len(data):
                    break
                check_crc(data, position, header)
            except CorruptBatch:
                break
            if self.batches and header.base_offset <= self.batches[-1].last_offset:
                break
            epoch = header.partition_leader_epoch
            self.batches.append(
                Batch(header.base_offset, header.last_offset, epoch, header.crc, header.size)
            )
            self._places.append(_Place(file, position))
            position += header.size
        return position

    def index_of(self, offset: int) -> int:
        """Return the index of the batch that holds `offset`, or of the first one above it."""
        low, high = 0, len(self.batches)
        while low < high:
            middle = (low + high) // 2
            if self.batches[middle].last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def between(self, start: int, end: int) -> list[Batch]:
        """Return the batches from `start` to `end`, exclusive."""
        if start >= end:
            return []
        return self.batches[self.index_of(start) : self.index_of(end)]

    def values(self, index: int) -> list[tuple[int, bytes]]:
        """Return the offsets and values of the records of one batch."""
        file, position = self._places[index]
        return [(r.offset, r.value or b"") for r in read_batch(file.data, position)]

    def value_at(self, offset: int) -> bytes | None:
        """Return the value of the record at `offset`, None if there is none."""
        index = self.index_of(offset)
        if index == len(self.batches):
            return None
        return dict(self.values(index)).get(offset)


class Images:
    """The images of every replica on every disk. Log directories are in the root of a disk."""

    def __init__(self, disks: dict[int, MemoryDisk]) -> None:
        self._disks = disks
        self._images: dict[tuple[int, str], LogImage] = {}

    def of(self, broker_id: int, path: str, segments: Sequence[int] | None = None) -> LogImage:
        """Return the image of the log in a folder, up to date."""
        image = self._images.get((broker_id, path))
        if image is None:
            image = self._images[broker_id, path] = LogImage(self._disks[broker_id], path)
        image.update(segments)
        return image

    def stored(self, partition: TopicPartition) -> dict[int, LogImage]:
        """Return each disk's image of a partition, whether its broker runs or not."""
        found = {}
        for broker_id, disk in self._disks.items():
            for root in disk.directories("/"):
                for folder in disk.directories(f"/{root}"):
                    if parse_folder_name(folder) == partition:
                        found[broker_id] = self.of(broker_id, f"/{root}/{folder}")
        return found
