"""Truncation: what is removed, what stays, and what is derived from the log's end."""

import pytest
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.errors import OffsetOutOfRangeError
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_world import FOLDER, NOW, LogWorld, read_all, values_in


def three_segments() -> tuple[LogWorld, UnifiedLog]:
    """Return a log with offsets 0 to 8 and epochs 0, 1, 2: a batch of two and one per segment."""
    world = LogWorld()
    log = world.open(index_interval_bytes=0)
    for epoch in range(3):
        if epoch:
            log.roll()
        world.append(log, b"%d" % (epoch * 3), b"%d" % (epoch * 3 + 1), epoch=epoch)
        world.append(log, b"%d" % (epoch * 3 + 2), epoch=epoch)
    return world, log


def values(log: UnifiedLog) -> list[int]:
    return [int(value or b"") for value in values_in(read_all(log))]


@pytest.mark.parametrize(
    ("offset", "end", "segments", "epochs"),
    [
        (8, 8, [0, 3, 6], [(0, 0), (1, 3), (2, 6)]),
        (6, 6, [0, 3, 6], [(0, 0), (1, 3)]),
        (5, 5, [0, 3], [(0, 0), (1, 3)]),
        (4, 3, [0, 3], [(0, 0)]),  # in the middle of a batch, which is removed whole
        (3, 3, [0, 3], [(0, 0)]),
        (2, 2, [0], [(0, 0)]),
        (0, 0, [0], []),
    ],
)
def test_everything_from_the_offset_on_goes(
    offset: int, end: int, segments: list[int], epochs: list[tuple[int, int]]
) -> None:
    world, log = three_segments()
    log.truncate_to(offset)
    assert log.log_end_offset == end and log.high_watermark == end
    assert log.segment_offsets == segments
    assert log.leader_epochs.entries == epochs
    assert values(log) == list(range(end))
    world.append(log, b"77", b"88", epoch=5)
    expected = [*range(end), 77, 88]
    assert values(log) == expected
    assert log.offset_for_timestamp(0) == (log.offset_of_max_timestamp())
    log = world.reopen_clean(log)
    assert values(log) == expected
    assert log.leader_epochs.entries == [*epochs, (5, end)]
    log = world.open()
    assert values(log) == expected
    assert log.leader_epochs.entries == [*epochs, (5, end)]


def test_nothing_to_cut_still_forgets_an_epoch_without_records() -> None:
    _, log = three_segments()
    log.assign_epoch(7, 9)
    log.truncate_to(9)
    assert log.latest_epoch() == 2
    assert log.log_end_offset == 9


def test_the_files_of_cut_segments_are_gone() -> None:
    world, log = three_segments()
    log.truncate_to(2)
    assert [name for name in world.names() if not name.startswith(f"{0:020d}")] == [
        "leader-epoch-checkpoint"
    ]


@pytest.mark.parametrize("is_reopened", [False, True])
def test_the_timestamps_of_what_was_cut_are_forgotten(is_reopened: bool) -> None:
    """Else a lookup would go to records that are not there, and retention would keep the rest."""
    world = LogWorld()
    log = world.open(index_interval_bytes=0)
    for later in (0, 1000, 2000):
        world.append(log, b"a", timestamp=NOW + later)
    log.truncate_to(1)
    assert log.offset_of_max_timestamp() == (NOW, 0, 0)
    assert log.offset_for_timestamp(NOW + 1) is None
    world.append(log, b"b", timestamp=NOW + 500)
    world.append(log, b"c", timestamp=NOW + 600)
    log = world.reopen_clean(log) if is_reopened else log
    assert log.offset_of_max_timestamp() == (NOW + 600, 2, 0)
    assert log.offset_for_timestamp(NOW + 1) == (NOW + 500, 1, 0)


def test_a_reader_goes_on_in_what_was_written_after_a_truncation() -> None:
    """Where it stopped, in bytes, there is nothing now, or the middle of a batch."""
    world = LogWorld()
    log = world.open()
    for value in (b"a", b"long" * 10, b"c"):
        world.append(log, value)
    for offset in range(3):  # one batch at a time
        log.read(offset, 1, log.log_end_offset)
    log.truncate_to(1)
    for value in (b"x", b"y", b"longer" * 10):
        world.append(log, value)
    for offset, value in ((2, b"y"), (3, b"longer" * 10)):
        assert values_in(log.read(offset, 1, log.log_end_offset)) == [value]


def test_starting_again_at_an_offset() -> None:
    world, log = three_segments()
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (100, 100, 100)
    assert log.leader_epochs.entries == []
    world.append(log, b"100", epoch=4)
    assert values(world.reopen_clean(log)) == [100]


def test_below_the_first_segment_the_log_starts_again() -> None:
    _, log = three_segments()
    log.truncate_fully_and_start_at(100)
    log.truncate_to(40)
    assert (log.log_start_offset, log.log_end_offset) == (40, 40)


def test_the_recovery_point_never_lies_above_the_end() -> None:
    _, log = three_segments()
    log.flush()
    assert log.recovery_point == 9
    plan = log.plan_flush()
    log.truncate_to(5)
    assert log.recovery_point == 5
    log.complete_flush(plan)
    assert log.recovery_point == 5, "a flush that began before the cut says nothing any more"


def test_the_high_watermark_stays_within_the_log() -> None:
    world, log = three_segments()
    log.update_high_watermark(100)
    assert log.high_watermark == 9
    log.update_high_watermark(4)
    assert log.high_watermark == 4
    assert not log.maybe_increment_high_watermark(4)
    assert log.maybe_increment_high_watermark(6)
    with pytest.raises(ValueError, match="above the log end"):
        log.maybe_increment_high_watermark(10)
    with pytest.raises(OffsetOutOfRangeError):
        log.maybe_increment_log_start_offset(7)
    assert log.maybe_increment_log_start_offset(6)
    assert not log.maybe_increment_log_start_offset(2)
    log.update_high_watermark(0)
    assert log.high_watermark == 6
    assert log.leader_epochs.entries == [(2, 6)]
    assert values(log) == [6, 7, 8]
    assert world.reopen_clean(log).log_start_offset == 6


def test_an_epoch_answers_with_the_end_of_the_log() -> None:
    _, log = three_segments()
    assert log.end_offset_for_epoch(2) == (2, 9)
    assert log.end_offset_for_epoch(1) == (1, 6)
    assert log.end_offset_for_epoch(3) == (-1, -1)


@pytest.mark.parametrize("seed", range(40))
def test_what_was_cut_and_written_over_does_not_come_back_with_the_power(seed: int) -> None:
    """An old sector under the new bytes would pass:

    the checksum covers neither offset nor epoch.
    """
    world = LogWorld(disk=MemoryDisk(seed))
    log = world.open()
    for number in range(20):
        world.append(log, b"old %2d" % number, epoch=1)
    log.flush()
    world.disk.sync_directory(FOLDER)
    log.truncate_to(5)
    for number in range(5, 20):
        world.append(log, b"new %2d" % number, epoch=3)
    assert isinstance(world.disk, MemoryDisk)
    world.disk.crash(keep_unflushed=False)
    found = values_in(read_all(world.open(LogCheckpoint(recovery_point=5))))
    written = [b"old %2d" % n for n in range(5)] + [b"new %2d" % n for n in range(5, 20)]
    assert found == written[: len(found)]
