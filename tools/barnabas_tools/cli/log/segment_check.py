"""Checks whether a broker can have written the files of a partition's folder; faults are text.

Reads Kafka's formats directly from the bytes, so that it shares no mistake with the code that wrote
them. Plain functions over bytes; `barnabas log verify` calls `check_partition`.
"""

import re
import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from barnabas_common.record.batch import BatchHeader, Buffer, CorruptBatch, check_crc, parse_header
from barnabas_common.record.transactional import marker_in

from barnabas_tools.cli.log.transaction_index_check import check_transaction_index

LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX = ".log", ".index", ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
EPOCH_FILE = "leader-epoch-checkpoint"
CLEANER_FILE = "cleaner-offset-checkpoint"
_SET_ASIDE = re.compile(r"\.[0-9a-f]{32}-(stray|delete)$")
_INDEX_ENTRY = struct.Struct(">ii")
_TIME_INDEX_ENTRY = struct.Struct(">qi")


class Batch(NamedTuple):
    """A batch's header, its position in the segment, and its fault, if any."""

    position: int
    header: BatchHeader
    fault: str | None


@dataclass
class Segment:
    """The content and the faults of one `.log` file."""

    base_offset: int
    batches: list[Batch] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@dataclass
class PartitionCheck:
    """One partition's folder: the counts of what was checked, and every fault."""

    directory: Path
    segments: int = 0
    batches: int = 0
    records: int = 0
    log_start_offset: int = 0
    log_end_offset: int = 0
    faults: list[str] = field(default_factory=list)


def check_partition(directory: Path) -> PartitionCheck:
    """Check every segment, its indexes, and the epoch checkpoint.

    Missing offsets are not faults where compaction may have removed records.
    """
    check, compacted = PartitionCheck(directory), is_compacted(directory)
    segments: list[Segment] = []
    for path in segment_files(directory):
        data = path.read_bytes()
        segment = scan(data, int(path.stem))
        segments.append(segment)
        faults = segment.faults + _check_indexes(path, segment)
        faults += _check_transaction_index(path, _aborted(data, segment), compacted)
        check.faults += [f"{path.name}: {fault}" for fault in faults]
    check.faults += check_order(segments, compacted)
    check.faults += check_epochs(segments, _read_epochs(directory, check.faults), compacted)
    batches = [batch.header for segment in segments for batch in segment.batches]
    check.segments, check.batches = len(segments), len(batches)
    check.records = sum(header.record_count for header in batches)
    check.log_start_offset = segments[0].base_offset if segments else 0
    check.log_end_offset = batches[-1].next_offset if batches else check.log_start_offset
    return check


def is_compacted(directory: Path) -> bool:
    """Whether `cleaner-offset-checkpoint` names the log, which then is or was compacted."""
    try:
        lines = (directory.parent / CLEANER_FILE).read_text().splitlines()[2:]
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return False
    topic, _, partition = _SET_ASIDE.sub("", directory.name).rpartition("-")
    return any(line.split()[:2] == [topic, partition] for line in lines)


def segment_files(directory: Path) -> list[Path]:
    """Return the `.log` files of a partition's folder, by base offset."""
    files = filter(is_segment, directory.glob(f"*{LOG_SUFFIX}"))
    return sorted(files, key=lambda path: int(path.stem))


def is_segment(path: Path) -> bool:
    """Whether a file's name is that of a segment: its base offset, then `.log`."""
    return path.suffix == LOG_SUFFIX and path.stem.isascii() and path.stem.isdigit()


def read_batches(data: Buffer) -> Iterator[Batch]:
    """Yield every whole batch; raises CorruptBatch with the position of an unreadable one."""
    size = len(data)
    position = 0
    while position < size:
        header = parse_header(data, position)
        if position + header.size > size:
            missing = position + header.size - size
            raise CorruptBatch(f"the last batch, at position {position}, lacks {missing} bytes")
        fault = None
        try:
            check_crc(data, position, header)
        except CorruptBatch as error:
            fault = str(error)
        yield Batch(position, header, fault)
        position += header.size


def scan(data: Buffer, base_offset: int) -> Segment:
    """Read the batches of a segment, with the faults inside and between them."""
    segment = Segment(base_offset)
    expected, epoch, end = base_offset, -1, 0
    try:
        for batch in read_batches(data):
            header, place = batch.header, f"position {batch.position}"
            end = batch.position + header.size
            if batch.fault:
                segment.faults.append(f"{place}: {batch.fault}")
            if header.base_offset < expected:
                segment.faults.append(f"{place}: offset {header.base_offset} after {expected - 1}")
            if header.partition_leader_epoch < epoch:
                segment.faults.append(
                    f"{place}: leader epoch {header.partition_leader_epoch} after {epoch}"
                )
            expected = max(expected, header.next_offset)
            epoch = max(epoch, header.partition_leader_epoch)
            segment.batches.append(batch)
    except CorruptBatch as error:
        segment.faults.append(f"position {end}: {error}")
    return segment


def check_order(segments: Sequence[Segment], compacted: bool = False) -> list[str]:
    """Return faults between batches of all segments: missing offsets, decreasing epochs."""
    faults: list[str] = []
    expected, epoch = (segments[0].base_offset if segments else 0), -1
    for segment in segments:
        if segment.base_offset < expected:
            faults.append(f"segment {segment.base_offset} begins before offset {expected}")
        for batch in segment.batches:
            header = batch.header
            if header.base_offset > expected and not compacted:
                faults.append(f"offsets {expected} to {header.base_offset - 1} are missing")
            expected = max(expected, header.next_offset)
        epochs = [batch.header.partition_leader_epoch for batch in segment.batches]
        if epochs and epochs[0] < epoch:
            faults.append(f"segment {segment.base_offset} falls back to leader epoch {epochs[0]}")
        epoch = max([epoch, *epochs])
    return faults


def check_epochs(
    segments: Sequence[Segment], checkpoint: Sequence[tuple[int, int]], compacted: bool = False
) -> list[str]:
    """Return faults of the epoch checkpoint: entries out of order, or wrong start offsets."""
    faults = [
        f"{EPOCH_FILE}: entry {later} does not follow {earlier}"
        for earlier, later in pairwise(checkpoint)
        if later[0] <= earlier[0] or later[1] < earlier[1]
    ]
    firsts: dict[int, int] = {}
    for segment in segments:
        for batch in segment.batches:
            firsts.setdefault(batch.header.partition_leader_epoch, batch.header.base_offset)
    starts = dict(checkpoint)
    log_start = segments[0].base_offset if segments else 0
    for epoch, first in firsts.items():
        start = starts.get(epoch)
        if start is None:
            faults.append(f"{EPOCH_FILE}: epoch {epoch}, from offset {first}, is not in it")
        elif start > first or (start != first and first > log_start and not compacted):
            faults.append(
                f"{EPOCH_FILE}: epoch {epoch} starts at offset {start},"
                f" its first batch has offset {first}"
            )
    return faults


def check_index(data: bytes, segment: Segment) -> list[str]:
    """Return faults of an offset index: an entry is a batch's last offset and position."""
    last_offsets = {batch.position: batch.header.last_offset for batch in segment.batches}
    faults: list[str] = []
    previous = (-1, -1)
    for number, entry in enumerate(_entries(data, _INDEX_ENTRY)):
        relative, position = entry
        if entry <= previous or position <= previous[1]:
            faults.append(f"entry {number} {entry} does not follow {previous}")
        if position not in last_offsets:
            faults.append(f"entry {number}: no batch begins at position {position}")
        elif last_offsets[position] != segment.base_offset + relative:
            faults.append(
                f"entry {number}: offset {segment.base_offset + relative}, but the batch at"
                f" position {position} ends with {last_offsets[position]}"
            )
        previous = (relative, position)
    return faults


def check_time_index(data: bytes, segment: Segment) -> list[str]:
    """Return faults of a time index: an entry is a batch's max timestamp and an offset in it."""
    ends = [batch.header.last_offset for batch in segment.batches]
    faults: list[str] = []
    previous = (-1, -1)
    for number, entry in enumerate(_entries(data, _TIME_INDEX_ENTRY)):
        timestamp, relative = entry
        offset = segment.base_offset + relative
        if timestamp < previous[0] or relative < previous[1]:
            faults.append(f"entry {number} {entry} does not follow {previous}")
        index = bisect_left(ends, offset)
        if index == len(ends) or segment.batches[index].header.base_offset > offset:
            faults.append(f"entry {number}: no batch holds offset {offset}")
        elif segment.batches[index].header.max_timestamp != timestamp:
            faults.append(
                f"entry {number}: timestamp {timestamp}, but the batch with offset {offset} has"
                f" {segment.batches[index].header.max_timestamp}"
            )
        previous = (timestamp, relative)
    return faults


def read_epoch_file(text: str) -> list[tuple[int, int]]:
    """Return the (epoch, start offset) entries; raises ValueError with the fault."""
    lines = text.split("\n")
    if lines[0].strip() != "0":
        raise ValueError(f"version {lines[0]!r} is not 0")
    count = int(lines[1])
    entries = [tuple(map(int, line.split())) for line in lines[2:] if line.strip()]
    if len(entries) != count or any(len(entry) != 2 for entry in entries):
        raise ValueError(f"{count} entries announced, {len(entries)} found")
    return [(epoch, start) for epoch, start in entries]


def _entries(data: bytes, form: struct.Struct) -> Iterator[tuple[int, int]]:
    """Return the entries before the zeros with which Kafka fills an active segment's index."""
    used = len(data) - len(data) % form.size
    while used and not any(data[used - form.size : used]):
        used -= form.size
    return form.iter_unpack(data[:used])


def _check_indexes(path: Path, segment: Segment) -> list[str]:
    faults: list[str] = []
    for suffix, form, check in (
        (INDEX_SUFFIX, _INDEX_ENTRY, check_index),
        (TIME_INDEX_SUFFIX, _TIME_INDEX_ENTRY, check_time_index),
    ):
        index = path.with_suffix(suffix)
        if not index.exists():
            faults.append(f"there is no {index.name}")
            continue
        data = index.read_bytes()
        if len(data) % form.size:
            faults.append(f"{index.name}: {len(data)} bytes are no whole number of entries")
        faults += [f"{index.name}: {fault}" for fault in check(data, segment)]
    return faults


def _aborted(data: Buffer, segment: Segment) -> dict[int, int]:
    """The producer id of each abort marker, by its offset."""
    found = {}
    for position, header, fault in segment.batches:
        if header.is_control and not fault:
            marker = marker_in(memoryview(data)[position : position + header.size])
            if marker is not None and not marker.commit:
                found[header.last_offset] = header.producer_id
    return found


def _check_transaction_index(path: Path, aborted: dict[int, int], compacted: bool) -> list[str]:
    """There is a file only where transactions were aborted."""
    index = path.with_suffix(TRANSACTION_INDEX_SUFFIX)
    if not index.exists():
        return []
    found = check_transaction_index(index.read_bytes(), aborted, compacted)
    return [f"{index.name}: {fault}" for fault in found]


def _read_epochs(directory: Path, faults: list[str]) -> list[tuple[int, int]]:
    try:
        return read_epoch_file((directory / EPOCH_FILE).read_text())
    except FileNotFoundError:
        return []
    except (ValueError, IndexError) as error:
        faults.append(f"{EPOCH_FILE}: {error}")
        return []
