"""Opening a log after a crash: a torn or corrupt tail is truncated, and this is reported."""

import logging

import pytest
from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.errors import UnknownTopicIdError
from barnabas_broker.log.log_context import HostedLog, LogHost
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_world import NOW, LogWorld, produced, read_all, values_in


def written(segments: int = 3, per_segment: int = 4) -> tuple[LogWorld, UnifiedLog]:
    """Return a killed log of one-record batches, with one leader epoch per segment."""
    world = LogWorld()
    log = world.open(index_interval_bytes=0)
    for segment in range(segments):
        if segment:
            log.roll()
        for number in range(per_segment):
            world.append(log, b"%d" % (segment * per_segment + number), epoch=segment)
    return world, log


def segment_file(world: LogWorld, base: int, suffix: str = ".log") -> str:
    return f"{world.folder}/{base:020d}{suffix}"


def spoil(disk: Disk, path: str, position: int) -> None:
    data = bytearray(disk.read_file(path))
    data[position] ^= 0xFF
    disk.write_file(path, bytes(data))


def cut(disk: Disk, path: str, by: int) -> None:
    file = disk.open(path)
    file.truncate(file.size() - by)
    file.close()


def values(log: UnifiedLog) -> list[int]:
    return [int(value or b"") for value in values_in(read_all(log))]


def test_a_killed_broker_loses_nothing_it_wrote() -> None:
    world, log = written()
    again = world.open(LogCheckpoint(recovery_point=5, high_watermark=7))
    assert values(again) == list(range(12))
    assert again.leader_epochs.entries == log.leader_epochs.entries
    assert (again.recovery_point, again.high_watermark) == (5, 7)


@pytest.mark.parametrize("by", [1, 30, 65])
def test_a_torn_batch_is_cut_off_and_said_so(by: int, caplog: pytest.LogCaptureFixture) -> None:
    world, _ = written()
    cut(world.disk, segment_file(world, 8), by)
    log = world.open()
    assert values(log) == list(range(11))
    report = caplog.records[-1]
    assert report.levelno == logging.ERROR
    assert "t-0: CORRUPT, the log now ends at offset 11" in report.message
    world.append(log, b"11", epoch=9)
    assert values(world.open()) == list(range(12))


def test_zeros_at_the_end_are_cut_off() -> None:
    world, _ = written()
    world.disk.open(segment_file(world, 8)).append([bytes(4096)])
    assert values(world.open()) == list(range(12))


def test_what_follows_a_corrupt_batch_goes_with_all_later_segments() -> None:
    world, _ = written()
    spoil(world.disk, segment_file(world, 4), 100)
    log = world.open()
    assert values(log) == [0, 1, 2, 3, 4]
    assert log.segment_offsets == [0, 4]
    assert log.leader_epochs.entries == [(0, 0), (1, 4)]
    assert segment_file(world, 8).rpartition("/")[2] not in world.names()


def test_below_the_recovery_point_nothing_is_read() -> None:
    world, _ = written()
    spoil(world.disk, segment_file(world, 0), 100)
    assert world.open(LogCheckpoint(recovery_point=5)).log_end_offset == 12
    assert world.open(LogCheckpoint(recovery_point=0)).log_end_offset == 1


def test_a_segment_that_does_not_continue_the_one_before_goes() -> None:
    world, log = written()
    cut(world.disk, segment_file(world, 4), log.size_bytes // 12)
    log = world.open()
    assert values(log) == list(range(7))
    assert log.segment_offsets == [0, 4]


@pytest.mark.parametrize(("clean_offset", "end"), [(None, 7), (0, 12)])
def test_only_in_a_compacted_log_is_a_gap_below_the_recovery_point_no_loss(
    clean_offset: int | None, end: int
) -> None:
    world, log = written()
    cut(world.disk, segment_file(world, 4), log.size_bytes // 12)
    checkpoint = LogCheckpoint(recovery_point=8, clean_offset=clean_offset)
    assert world.open(checkpoint).log_end_offset == end


class SavingLater(LogHost):
    """A host of logs that never saves the epochs."""

    def epochs_changed(self, log: HostedLog) -> None:
        pass


def test_the_recovery_point_does_not_pass_epochs_that_are_not_saved() -> None:
    world = LogWorld(host=SavingLater())
    log = world.open()
    world.append(log, b"a", epoch=1)
    plan = log.plan_flush()
    plan.run()
    log.complete_flush(plan)
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 1


def test_indexes_are_rebuilt() -> None:
    world, log = written()
    log.flush()
    log.close()
    before = {n: world.disk.read_file(f"{world.folder}/{n}") for n in world.names() if "index" in n}
    for name in before:
        world.disk.remove(f"{world.folder}/{name}")
    world.disk.write_file(f"{world.folder}/{99:020d}.index", b"an index without a log")
    log = world.open(LogCheckpoint(12, 0, 12, is_clean=True))
    assert values(log) == list(range(12))
    log.close()
    after = {n: world.disk.read_file(f"{world.folder}/{n}") for n in world.names() if "index" in n}
    assert after == before


@pytest.mark.parametrize("data", [b"odd", bytes(80), b"\0\0\0\1\x7f\0\0\0"])
def test_an_index_that_cannot_be_right_is_rebuilt_even_after_a_clean_stop(data: bytes) -> None:
    world, log = written()
    log.flush()
    log.close()
    for base in (0, 8):
        world.disk.write_file(segment_file(world, base, ".index"), data)
    log = world.open(LogCheckpoint(12, 0, 12, is_clean=True))
    assert values(log) == list(range(12))
    assert values_in(log.read(2, 10, 12)) == [b"2"]


@pytest.mark.parametrize("content", [b"0\n7\nrubbish\n", None, b"", b"0\n0\n"])
def test_a_damaged_or_missing_epoch_file_is_rebuilt_from_the_batches(content: bytes | None) -> None:
    world, log = written()
    log.flush()
    log.close()
    path = f"{world.folder}/leader-epoch-checkpoint"
    intact = world.disk.read_file(path)
    if content is None:
        world.disk.remove(path)
    else:
        world.disk.write_file(path, content)
    log = world.open(LogCheckpoint(12, 0, 12, is_clean=True))
    assert log.leader_epochs.entries == [(0, 0), (1, 4), (2, 8)]
    log.flush()
    log.close()
    assert world.disk.read_file(path) == intact


def test_epochs_beyond_the_end_of_the_log_are_forgotten() -> None:
    world, log = written()
    log.assign_epoch(8, 12)
    assert world.open().leader_epochs.entries[-1] == (2, 8)


def test_a_stale_epoch_file_does_not_outlive_the_batches_it_speaks_of() -> None:
    world, _ = written()
    path = f"{world.folder}/leader-epoch-checkpoint"
    world.disk.write_file(path, b"0\n3\n0 0\n1 4\n7 6\n")
    log = world.open(LogCheckpoint(recovery_point=5))
    assert log.leader_epochs.entries == [(0, 0), (1, 4), (2, 8)]


def test_the_log_start_offset_is_kept() -> None:
    world, _ = written()
    log = world.open(LogCheckpoint(log_start_offset=6, high_watermark=2))
    assert (log.log_start_offset, log.high_watermark) == (6, 6)
    assert log.leader_epochs.entries == [(1, 6), (2, 8)]


def test_a_log_that_ends_below_its_start_begins_again_there() -> None:
    world, _ = written()
    log = world.open(LogCheckpoint(log_start_offset=50))
    assert (log.log_start_offset, log.log_end_offset, log.segment_offsets) == (50, 50, [50])
    assert log.leader_epochs.entries == []


def test_leftovers_are_removed() -> None:
    world, _ = written()
    for name in (f"{0:020d}.log.deleted", "leader-epoch-checkpoint.tmp", "a.staged"):
        world.disk.write_file(f"{world.folder}/{name}", b"?")
    assert values(world.open()) == list(range(12))
    assert not [name for name in world.names() if name.endswith(("d", "p")) and "." in name]


def test_after_a_clean_stop_the_log_goes_on_as_if_it_had_not_stopped() -> None:
    through, stopped = LogWorld(), LogWorld()
    one, other = (
        world.open(index_interval_bytes=150, segment_bytes=700) for world in (through, stopped)
    )
    for number in range(40):
        for world, log in ((through, one), (stopped, other)):
            world.append(log, b"%d" % number, epoch=number // 10, timestamp=NOW + number)
        if number % 7 == 0:
            other = stopped.reopen_clean(other)
    assert read_all(one) == read_all(other)
    assert one.segment_offsets == other.segment_offsets
    one.flush()
    one.close()
    other.flush()
    other.close()
    for name in through.names():
        if not name.endswith(".timeindex"):  # every stop writes the largest timestamp
            path = f"{through.folder}/{name}"
            assert through.disk.read_file(path) == stopped.disk.read_file(path), name


def test_the_topic_id_is_kept_and_a_log_with_a_malformed_one_is_not_opened() -> None:
    world, log = written()
    assert log.topic_id is None
    log.set_topic_id("AAAAAAAAAAAAAAAAAAAAAQ")
    path = f"{world.folder}/partition.metadata"
    assert world.disk.read_file(path) == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    assert world.open().topic_id == "AAAAAAAAAAAAAAAAAAAAAQ"
    world.disk.write_file(path, b"version: 0")
    with pytest.raises(UnknownTopicIdError):
        world.open()


def test_batches_larger_than_one_read_are_recovered() -> None:
    world = LogWorld()
    log = world.open(max_message_bytes=1 << 27)
    for _ in range(3):
        log.append_as_leader(produced(bytes(5 << 20)), 0, NOW)
    assert world.open().log_end_offset == 3


@pytest.mark.parametrize("flushed_again", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_segment_sealed_after_it_was_flushed_knows_its_timestamps_after_a_power_cut(
    seed: int, flushed_again: bool
) -> None:
    """A lost time index reads as zeros, so that retention would treat the segment as very old."""
    world = LogWorld(disk=MemoryDisk(seed))
    log = world.open(segment_bytes=150)
    world.append(log, b"first")
    world.append(log, b"second")
    log.flush()
    world.append(log, b"third")  # in a new segment, which seals the first
    if flushed_again:
        log.flush()
    world.disk.crash(keep_unflushed=False)
    reopened = world.open(LogCheckpoint(log.recovery_point, 0, log.recovery_point, False))
    assert reopened.delete_old_segments(NOW) == 0
    assert reopened.log_start_offset == 0
    assert reopened.log_end_offset >= 2


def test_a_segment_that_began_during_a_flush_is_made_durable_by_the_next() -> None:
    world = LogWorld()
    log = world.open()
    world.append(log, b"0")
    plan = log.plan_flush()
    plan.run()
    log.roll()  # the flush is on another thread, and knows nothing of the new file
    world.append(log, b"1")
    log.complete_flush(plan)
    assert log.recovery_point == 1
    log.flush()
    world.disk.crash(keep_unflushed=False)
    assert values(world.open(LogCheckpoint(log.recovery_point, 0, 2))) == [0, 1]
