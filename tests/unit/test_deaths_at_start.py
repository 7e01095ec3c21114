"""A broker dies at any change of the disk that its start makes; the next start misses nothing."""

from collections.abc import Callable

import pytest
from barnabas_broker.log.index.transaction_index import AbortedTxn
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint
from barnabas_broker.log.unified_log import UnifiedLog

from tests.support.log_transactions import Writer, commit_all, indexed
from tests.support.log_world import FOLDER, NOW, LogWorld, read_all, values_in
from tests.support.mortal_disk import Killed, MortalDisk

PER_SEGMENT = 4
SEGMENTS = 4
END = PER_SEGMENT * SEGMENTS


def written(seed: int = 0) -> tuple[LogWorld, MortalDisk, UnifiedLog]:
    """Return a flushed log; each segment has an aborted transaction, a committed one and their
    markers. The batches of segment `n` have the time NOW + n."""
    disk = MortalDisk(seed)
    world = LogWorld(disk=disk)
    log = world.open(index_interval_bytes=0)
    one, two = Writer(log, 1), Writer(log, 2)
    for number in range(SEGMENTS):
        if number:
            log.roll()
        one.send(b"%d" % (number * PER_SEGMENT), timestamp=NOW + number)
        one.end(commit=False)
        two.send(b"%d" % (number * PER_SEGMENT + 2), timestamp=NOW + number)
        two.end(commit=True)
    commit_all(log)
    log.flush()
    return world, disk, log


ABORTED = [
    AbortedTxn(1, n * PER_SEGMENT, n * PER_SEGMENT + 1, n * PER_SEGMENT + 2)
    for n in range(SEGMENTS)
]


def file(base: int, suffix: str) -> str:
    return f"{FOLDER}/{base:020d}{suffix}"


def spoil(disk: MortalDisk, path: str, position: int) -> None:
    data = bytearray(disk.read_file(path))
    data[position] ^= 1
    disk.write_file(path, bytes(data))


def assert_complete(log: UnifiedLog, segments: int = SEGMENTS) -> None:
    """Whether readers find all of the first segments of the log, and nothing else."""
    end = segments * PER_SEGMENT
    assert log.log_end_offset == end
    assert len(values_in(read_all(log))) == end
    assert indexed(log) == ABORTED[:segments]
    for number in range(segments):
        found = log.offset_for_timestamp(NOW + number)
        assert found is not None and found.offset == number * PER_SEGMENT


def without(*suffixes: str) -> Callable[[MortalDisk], None]:
    """Remove index files of the first two segments."""

    def remove(disk: MortalDisk) -> None:
        for base in (0, PER_SEGMENT):
            for suffix in suffixes:
                disk.remove(file(base, suffix))
        disk.sync_directory(FOLDER)

    return remove


def with_a_wrong_transaction_index(disk: MortalDisk) -> None:
    spoil(disk, file(PER_SEGMENT, ".txnindex"), 1)


def die_at_every_change(
    prepare: Callable[[MortalDisk], None],
    checkpoint: LogCheckpoint,
    keep_unflushed: bool,
    check: Callable[[UnifiedLog], None],
) -> None:
    """Die in the first start at each of its changes, then at the same one in the second start."""
    for changes in range(10_000):
        world, disk, _ = written(seed=changes)
        prepare(disk)
        disk.crash(keep_unflushed)
        deaths = 0
        for first in (checkpoint, LogCheckpoint(checkpoint.recovery_point, 0, END)):
            disk.changes_left = changes
            try:
                world.open(first)
            except Killed:
                deaths += 1
            disk.crash(keep_unflushed)
        for _ in range(2):
            check(world.open(LogCheckpoint(checkpoint.recovery_point, 0, END)))
            disk.crash(keep_unflushed)
        if not deaths:
            assert changes > 3, "the start made changes"
            return
    raise AssertionError("the start does not end")


@pytest.mark.parametrize("keep_unflushed", [True, False], ids=["killed", "power lost"])
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize(
    "prepare",
    [
        without(".index"),
        without(".timeindex"),
        without(".index", ".timeindex", ".txnindex"),
        with_a_wrong_transaction_index,
    ],
    ids=["no index", "no time index", "no indexes", "wrong transaction index"],
)
def test_indexes_that_are_rebuilt_in_part_are_rebuilt_again(
    prepare: Callable[[MortalDisk], None], is_clean: bool, keep_unflushed: bool
) -> None:
    checkpoint = LogCheckpoint(END, 0, END, is_clean)
    die_at_every_change(prepare, checkpoint, keep_unflushed, assert_complete)


@pytest.mark.parametrize("keep_unflushed", [True, False], ids=["killed", "power lost"])
def test_what_is_above_the_recovery_point_is_rebuilt_again(keep_unflushed: bool) -> None:
    checkpoint = LogCheckpoint(PER_SEGMENT, 0, 0)
    die_at_every_change(lambda _: None, checkpoint, keep_unflushed, assert_complete)


@pytest.mark.parametrize("keep_unflushed", [True, False], ids=["killed", "power lost"])
def test_a_log_that_is_being_cut_has_no_gap(keep_unflushed: bool) -> None:
    """Power was lost, and flushed batches are damaged: the log ends before the first of them."""

    def damage(disk: MortalDisk) -> None:
        disk.remove(file(PER_SEGMENT, ".index"))
        disk.sync_directory(FOLDER)
        spoil(disk, file(PER_SEGMENT, ".log"), 45)

    def ends_before(log: UnifiedLog) -> None:
        assert_complete(log, segments=1)

    die_at_every_change(damage, LogCheckpoint(END, 0, END), keep_unflushed, ends_before)


def test_a_time_index_that_lacks_its_last_entry_is_rebuilt() -> None:
    world, disk, _ = written()
    disk.write_file(file(0, ".timeindex"), b"")
    assert_complete(world.open(LogCheckpoint(END, 0, END)))


def test_the_indexes_of_a_segment_that_was_sealed_after_its_flush_are_rebuilt() -> None:
    """Its batches survive a power loss, the entries saved since may not. Without those of
    transactions `read_committed` readers would get what was aborted."""
    disk = MortalDisk(0)
    world = LogWorld(disk=disk)
    log = world.open()
    one = Writer(log, 1)
    one.send(b"0")
    one.end(commit=False)
    commit_all(log)
    log.flush()
    log.roll()
    disk.sync_directory(FOLDER)
    disk.write_file(file(0, ".txnindex"), b"")
    log = world.open(LogCheckpoint(2, 0, 2))
    assert log.segment_offsets == [0, 2]
    assert indexed(log) == [AbortedTxn(1, 0, 1, 2)]
