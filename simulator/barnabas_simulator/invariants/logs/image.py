"""The logs as their bytes on disk show them, read without the broker that wrote them.

A `LogImage` is the batches of one replica's log. An update reads only the files' new bytes, so that
frequent updates are cheap. Batches are compared as `Batch`: offsets, epoch and checksum identify
the bytes.
"""

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from barnabas_broker.log.manager.log_folders import parse_folder_name
from barnabas_broker.log.segment.segment import Segment
from barnabas_broker.log.segment.segment_files import CLEANED_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX
from barnabas_common.record.batch import BatchHeader, Buffer, CorruptBatch, check_crc, parse_header
from barnabas_common.record.reader import Record, read_batch
from barnabas_common.record.sequence import last_sequence_of
from barnabas_common.record.transactional import marker_in
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.disk import MemoryDisk, Stored
from barnabas_simulator.invariants.logs.held import Held
from barnabas_simulator.labels import key_of, label_of


class Sequenced(NamedTuple):
    """What an idempotent producer wrote into the header of a batch."""

    producer_id: int
    producer_epoch: int
    first_sequence: int
    last_sequence: int


class InTransaction(NamedTuple):
    """A part of a producer's transaction: records, or the marker that ends it.

    `commit` is None of records. The epoch of a marker may be higher than that of the records.
    """

    producer_id: int
    producer_epoch: int
    commit: bool | None
    coordinator_epoch: int = -1


class Batch(NamedTuple):
    """`delete_horizon_ms`: when compaction may remove its tombstones, None unless it was set.
    `sequenced`: None unless a producer with an id sent it, with sequences of -1 if a coordinator
    wrote it. `transaction`: None unless it is transactional."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int
    size: int
    delete_horizon_ms: int | None = None
    sequenced: Sequenced | None = None
    transaction: InTransaction | None = None


class Entry(NamedTuple):
    """One record."""

    offset: int
    label: bytes
    timestamp: int


class _Content:
    """What has been read of one file, until bytes are taken from it."""

    def __init__(self, base_offset: int, file: Stored) -> None:
        self.base_offset = base_offset
        self.file = file
        self.cuts = file.cuts
        self.batches: list[Batch] = []
        self.positions: list[int] = []
        self.taken = 0
        """How many of the batches are in the image."""
        self._read = 0
        self._entries: dict[int, list[Entry]] = {}

    def read_on(self) -> None:
        """Read to the end of the last whole batch."""
        data = self.file.sound
        while self._read < len(data):
            try:
                header = parse_header(data, self._read)
                if self._read + header.size > len(data):
                    break
                check_crc(data, self._read, header)
            except CorruptBatch:
                break
            if self.batches and header.base_offset <= self.batches[-1].last_offset:
                break
            self.batches.append(
                Batch(
                    header.base_offset,
                    header.last_offset,
                    header.partition_leader_epoch,
                    header.crc,
                    header.size,
                    header.delete_horizon_ms,
                    _sequenced(header),
                    _transaction(header, data, self._read),
                )
            )
            self.positions.append(self._read)
            self._read += header.size

    def entries(self, index: int) -> list[Entry]:
        found = self._entries.get(index)
        if found is None:
            records = read_batch(self.file.sound, self.positions[index])
            found = [Entry(r.offset, label_of(r), r.timestamp) for r in records]
            self._entries[index] = found
        return found


def _sequenced(header: BatchHeader) -> Sequenced | None:
    if header.producer_id < 0 or header.is_control:
        return None
    return Sequenced(
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        last_sequence_of(header),
    )


def _transaction(header: BatchHeader, data: Buffer, position: int) -> InTransaction | None:
    if not header.is_transactional:
        return None
    producer = (header.producer_id, header.producer_epoch)
    if not header.is_control:
        return InTransaction(*producer, None)
    marker = marker_in(memoryview(data)[position : position + header.size].tobytes())
    return None if marker is None else InTransaction(*producer, *marker)


def _base(name: str) -> int:
    return int(name.partition(".")[0])


def _in_use(segments: Sequence[Segment], stored: Mapping[str, Stored]) -> list[str]:
    """The files of an open log. A segment learns its new name after all its files have it."""
    names = (posixpath.basename(segment.path) for segment in segments)
    return [name if name in stored else name.removesuffix(SWAP_SUFFIX) for name in names]


def _found_at_start(stored: Mapping[str, Stored]) -> list[str]:
    """The files of a log once a start has completed or undone the replacement of a segment."""
    unfinished = [_base(name) for name in stored if name.endswith(CLEANED_SUFFIX)]
    names = {_base(name): name for name in stored if name.endswith(LOG_SUFFIX)}
    for name in sorted(stored):
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX) and _base(name) < min(unfinished, default=inf):
            content = _Content(_base(name), stored[name])
            content.read_on()
            end = content.batches[-1].last_offset + 1 if content.batches else 0
            names = {base: old for base, old in names.items() if not _base(name) <= base < end}
            names[_base(name)] = name
    return [names[base] for base in sorted(names)]


class LogImage:
    """One replica's log, as stored in its files. `held`: what the log of a compacted topic has had,
    None of another topic."""

    def __init__(self, disk: MemoryDisk, path: str, is_compacted: bool = False) -> None:
        self.path = path
        self.batches: list[Batch] = []
        self.held = Held() if is_compacted else None
        self._disk = disk
        self._places: list[tuple[_Content, int]] = []
        self._contents: list[_Content] = []
        self._segments: list[tuple[Segment, str]] = []
        self.version = 0
        """Grows with each change of `batches`."""

    @property
    def end(self) -> int:
        """The offset after the last whole batch."""
        return self.batches[-1].last_offset + 1 if self.batches else 0

    @property
    def durable_end(self) -> int:
        """The offset up to which a power loss leaves everything."""
        # The next start completes the replacement that a `.swap` file is for.
        flushed = {
            id(file): file.flushed_size
            for name, file in self._disk.durable_files(self.path).items()
            if name.endswith((LOG_SUFFIX, LOG_SUFFIX + SWAP_SUFFIX))
        }
        for batch, (content, index) in zip(self.batches, self._places, strict=True):
            if content.positions[index] + batch.size > flushed.get(id(content.file), 0):
                return batch.base_offset
        return max(self.end, self.last_base)

    @property
    def last_base(self) -> int:
        """The base offset of the last segment: where an empty log ends."""
        names = sorted(n for n in self._disk.look_into(self.path) if n.endswith(LOG_SUFFIX))
        return int(names[-1].removesuffix(LOG_SUFFIX)) if names else 0

    def update(self, segments: Sequence[Segment] | None = None) -> None:
        """Read what is new. `segments` are those of an open log; without them, for a broker that
        does not run, the files count that a start would find, up to where recovery would stop."""
        named = [(segment, segment.path) for segment in segments or ()]
        first = max(0, len(self._contents) - 1)  # all files but the last are complete
        only_grew = bool(named) and named == self._segments and not self._was_cut()
        if not only_grew and self._find_files(segments):
            first = 0
        self._segments = named
        for content in self._contents[first:]:
            content.read_on()
            self._take(content)

    def _was_cut(self) -> bool:
        return any(content.cuts != content.file.cuts for content in self._contents)

    def _find_files(self, segments: Sequence[Segment] | None) -> bool:
        """Look for the files again. Returns whether some were cut or replaced."""
        stored = self._disk.look_into(self.path)
        names = _found_at_start(stored) if segments is None else _in_use(segments, stored)
        files = {name: stored[name] for name in names if name in stored}
        known = self._contents
        grew_only = len(known) <= len(files) and all(
            content.file is file and content.cuts == file.cuts
            for content, file in zip(known, files.values(), strict=False)
        )
        if not grew_only:
            self._begin_again(files.values())
        kept = {id(content.file): content for content in self._contents}
        self._contents = [
            kept.get(id(file)) or _Content(_base(name), file) for name, file in files.items()
        ]
        return not grew_only

    def _begin_again(self, files: Collection[Stored]) -> None:
        """Some files were cut or replaced: keep what was read of the others."""
        if self.held is not None:
            self.held.truncate(self._truncated_to(files))
        self.version += 1
        self.batches, self._places = [], []
        self._contents = [one for one in self._contents if one.cuts == one.file.cuts]
        for content in self._contents:
            content.taken = 0

    def _truncated_to(self, files: Collection[Stored]) -> int:
        """What a truncation or a power loss since the last update has left of the log, at least."""
        present = {id(file) for file in files}
        if not any(id(content.file) in present for content in self._contents):
            return 0
        for number, content in enumerate(self._contents):
            if id(content.file) in present and content.cuts != content.file.cuts:
                now = _Content(content.base_offset, content.file)
                now.read_on()
                for before, after in zip(content.batches, now.batches, strict=False):
                    if before != after:
                        return before.base_offset
                left = len(now.batches)
                if left < len(content.batches):
                    return content.batches[left].base_offset
                if any(id(later.file) not in present for later in self._contents[number + 1 :]):
                    return max([content.base_offset, *(b.last_offset + 1 for b in now.batches)])
        return self.end

    def _take(self, content: _Content) -> None:
        for index in range(content.taken, len(content.batches)):
            batch = content.batches[index]
            if self.batches and batch.base_offset <= self.batches[-1].last_offset:
                break
            self.version += 1
            self.batches.append(batch)
            self._places.append((content, index))
            content.taken = index + 1
            if self.held is not None:
                self.held.add((one.offset, one.label) for one in content.entries(index))

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

    def entries(self, index: int) -> list[Entry]:
        """Return the records of one batch."""
        content, number = self._places[index]
        return content.entries(number)

    def records(self, index: int) -> list[Record]:
        """The records of one batch as they are, read from the file at each call."""
        content, number = self._places[index]
        return read_batch(content.file.sound, content.positions[number])

    def entries_between(self, start: int, end: int) -> Iterator[Entry]:
        """The records from `start` to `end`, exclusive."""
        for index in range(self.index_of(start), len(self.batches)):
            if self.batches[index].base_offset >= end:
                return
            yield from (one for one in self.entries(index) if start <= one.offset < end)

    def label_at(self, offset: int) -> bytes | None:
        """Return the label of the record at `offset`, None if there is none."""
        index = self.index_of(offset)
        if index == len(self.batches) or self.batches[index].base_offset > offset:
            return None
        return next((one.label for one in self.entries(index) if one.offset == offset), None)

    def has_later(self, key: bytes, offset: int, end: int) -> bool:
        """Whether a record of this key is above `offset` and below `end`."""
        return any(key_of(one.label) == key for one in self.entries_between(offset + 1, end))


class Images:
    """The images of every replica on every disk. Log directories are in the root of a disk."""

    def __init__(self, disks: dict[int, MemoryDisk], compacted: Collection[str] = ()) -> None:
        self._disks = disks
        self._compacted = compacted
        self._images: dict[tuple[int, str], LogImage] = {}

    def of(self, broker_id: int, path: str, segments: Sequence[Segment] | None = None) -> LogImage:
        """Return the image of the log in a folder, up to date."""
        image = self._images.get((broker_id, path))
        if image is None:
            name = parse_folder_name(path.rpartition("/")[2])
            is_compacted = name is not None and name.topic in self._compacted
            image = LogImage(self._disks[broker_id], path, is_compacted)
            self._images[broker_id, path] = image
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
