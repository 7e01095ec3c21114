"""A pass over a log: which records stay and where, and what readers and the next start see."""

import asyncio

import pytest
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.errors import InvalidRecordError
from barnabas_common.record.batch import batches
from barnabas_common.record.reader import read_batch
from barnabas_common.topic_partition import TopicPartition

from tests.support.compacted import compact, newest, put, records_in, seal
from tests.support.log_manager_world import ManagerWorld
from tests.support.log_world import NOW, produced, read_all, values_in

NAME = TopicPartition("t", 0)
DAY = 86_400_000


@pytest.fixture
def world() -> ManagerWorld:
    return ManagerWorld({"log.cleaner.enable": "false", "log.segment.delete.delay.ms": "0"})


async def opened(world: ManagerWorld, **topic: str) -> tuple[LogManager, UnifiedLog]:
    manager = await world.start()
    return manager, await world.open(manager, cleanup_policy="compact", **topic)


async def filled(world: ManagerWorld, **topic: str) -> tuple[LogManager, UnifiedLog]:
    """Return a log with two keys and five records in two sealed segments."""
    manager, log = await opened(world, **topic)
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    log.roll()
    put(log, (b"a", b"3"))
    put(log, (b"c", b"1"))
    seal(log)
    return manager, log


async def test_the_newest_record_of_each_key_stays_at_its_offset(world: ManagerWorld) -> None:
    manager, log = await filled(world)
    report = await compact(manager, log, world.passes)
    assert records_in(log) == [(1, b"b", b"1"), (3, b"a", b"3"), (4, b"c", b"1")]
    assert (log.log_start_offset, log.log_end_offset) == (0, 5)
    assert (report.first_dirty_offset, report.end_offset) == (0, 5)
    assert (report.counts.records_before, report.counts.records_after) == (5, 3)
    assert (report.counts.segments_before, report.counts.segments_after) == (2, 1)
    assert log.segment_offsets == [0, 5]


async def test_the_checkpoint_has_the_first_dirty_offset(world: ManagerWorld) -> None:
    manager, log = await filled(world)
    await compact(manager, log, world.passes)
    assert world.text("/data/cleaner-offset-checkpoint") == "0\n1\nt 0 5\n"
    await manager.delete(NAME)
    assert world.text("/data/cleaner-offset-checkpoint") == "0\n0\n"


async def test_the_dirty_part_is_described(world: ManagerWorld) -> None:
    manager, log = await filled(world)
    assert manager.cleaner.dirty_percent(log) == 100
    await compact(manager, log, world.passes)
    assert manager.cleaner.dirty_percent(log) == 0
    assert manager.cleaner.dirty_percent(await world.open(manager, "plain")) == -1


async def test_the_old_files_are_removed_and_nothing_else_is_left(world: ManagerWorld) -> None:
    manager, log = await filled(world)
    await compact(manager, log, world.passes)
    await asyncio.sleep(0.01)
    names = {name.partition(".")[2] for name in world.disk.list("/data/t-0")}
    files = {"log", "index", "timeindex", "snapshot"}
    assert names <= {*files, "metadata", "", "leader-epoch-checkpoint"}
    assert len([name for name in world.disk.list("/data/t-0") if name.endswith(".log")]) == 2


async def test_a_start_finds_the_compacted_log(world: ManagerWorld) -> None:
    manager, log = await filled(world)
    await compact(manager, log, world.passes)
    before = read_all(log)
    manager = await world.restart(manager)
    log = await world.open(manager, cleanup_policy="compact")
    assert read_all(log) == before
    assert manager.cleaner.dirty(log).first_dirty_offset == 5


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_a_batch_keeps_its_codec_and_its_header(world: ManagerWorld, codec: str) -> None:
    manager, log = await opened(world)
    pairs = [(b"%d" % (number % 7), b"v" * number) for number in range(50)]
    put(log, *pairs, compression=codec, epoch=3)
    seal(log)
    before = next(batches(read_all(log)))[1]
    expected = newest(records_in(log))
    await compact(manager, log, world.passes)
    after = next(batches(read_all(log)))[1]
    assert records_in(log) == expected
    changed = {"batch_length", "crc", "record_count"}
    assert {f for f in before._fields if getattr(before, f) != getattr(after, f)} == changed


async def test_timestamps_stay(world: ManagerWorld) -> None:
    manager, log = await opened(world)
    put(log, (b"a", b"1"), (b"b", None), (b"a", b"2"), (b"c", b"x"), timestamp=1000)
    seal(log)
    await compact(manager, log, world.passes)
    data = read_all(log)
    assert [(r.offset, r.timestamp) for r in read_batch(data)] == [(1, 1001), (2, 1002), (3, 1003)]
    assert next(batches(data))[1].delete_horizon_ms == NOW + DAY


async def test_a_tombstone_goes_in_two_phases(world: ManagerWorld) -> None:
    manager, log = await opened(world, delete_retention_ms="1000", segment_bytes="200")
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    put(log, (b"b", b"1"))
    seal(log)
    await compact(manager, log, world.passes)
    assert records_in(log) == [(1, b"a", None), (2, b"b", b"1")]
    world.clock.now_ms += 999
    put(log, (b"c", b"1"))
    seal(log)
    await compact(manager, log, world.passes)
    assert (1, b"a", None) in records_in(log), "its delete horizon has not passed"
    world.clock.now_ms += 1
    put(log, (b"d", b"1"))
    seal(log)
    await compact(manager, log, world.passes)
    assert [key for _, key, _ in records_in(log)] == [b"b", b"c", b"d"]


async def test_tombstones_stay_forever_with_the_longest_retention(world: ManagerWorld) -> None:
    manager, log = await opened(world, delete_retention_ms=str(2**63 - 1))
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", None), timestamp=NOW + 5)
    seal(log)
    await compact(manager, log, world.passes)
    world.clock.now_ms += 1000 * DAY
    put(log, (b"c", b"1"))
    seal(log)
    await compact(manager, log, world.passes)
    assert records_in(log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    assert [record.timestamp for record in read_batch(log.read(2, 1, 3))] == [NOW + 5]


async def test_the_active_segment_and_recent_records_stay(world: ManagerWorld) -> None:
    manager, log = await opened(world, min_compaction_lag_ms="1000")
    put(log, (b"a", b"1"), timestamp=NOW - 5000)
    put(log, (b"a", b"2"), timestamp=NOW - 4000)
    log.roll()
    put(log, (b"a", b"3"), timestamp=NOW - 500)
    log.roll()
    put(log, (b"a", b"4"))
    log.flush()
    await compact(manager, log, world.passes)
    assert [value for _, _, value in records_in(log)] == [b"2", b"3", b"4"]


async def test_readers_pass_the_gaps(world: ManagerWorld) -> None:
    manager, log = await opened(world, index_interval_bytes="0")
    for number in range(30):
        put(log, (b"k%d" % (number % 3), b"%d" % number))
    seal(log)
    put(log, (b"z", b"end"))
    await compact(manager, log, world.passes)
    for offset in range(log.log_end_offset):
        data = log.read(offset, 1, log.log_end_offset)
        first = next(batches(data))[1]
        assert first.last_offset >= offset
        assert first.base_offset in (27, 28, 29, 30)
    assert log.offset_for_timestamp(NOW) == (NOW, 27, 0)


async def test_readers_go_on_in_the_compacted_log_where_they_stopped(world: ManagerWorld) -> None:
    manager, log = await opened(world)
    for number in range(6):
        put(log, (b"a", b"%d" % number), (b"key %d" % number, b"x"))
    seal(log)
    for offset in range(0, 12, 2):  # one batch at a time
        log.read(offset, 1, log.log_end_offset)
    await compact(manager, log, world.passes)
    for offset in range(2, 10, 2):
        (kept,) = values_in(log.read(offset, 1, log.log_end_offset))
        assert kept == b"x", "the other record is superseded"


async def test_the_end_of_the_last_batch_stays(world: ManagerWorld) -> None:
    """Kafka keeps the header of the batch with which a pass ends, so that no offset is lost."""
    manager = await world.start()
    log = await world.open(manager)
    put(log, (b"a", b"1"))
    put(log, (None, b"1"), (None, b"2"))
    seal(log)
    log.config = world.config.log_config({"cleanup.policy": "compact"})
    await compact(manager, log, world.passes)
    headers = [header for _, header in batches(read_all(log))]
    assert [(h.base_offset, h.last_offset, h.record_count) for h in headers] == [
        (0, 0, 1),
        (1, 2, 0),
    ]


async def test_a_map_that_is_too_small_takes_several_passes(
    world: ManagerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, log = await opened(world)
    for number in range(40):
        put(log, (b"%d" % (number % 20), b"%d" % number))
    seal(log)
    expected = newest(records_in(log))
    monkeypatch.setattr("barnabas_broker.log.manager.log_cleaner.slots_within", lambda *_: 7)
    passes = 0
    while manager.cleaner.dirty(log).cleanable_bytes and passes < 20:
        first_dirty = manager.cleaner.dirty(log).first_dirty_offset
        assert (await compact(manager, log, world.passes)).end_offset > first_dirty
        passes += 1
    assert passes > 3
    assert records_in(log) == expected


async def test_a_record_without_a_key_is_refused(world: ManagerWorld) -> None:
    _, log = await opened(world)
    with pytest.raises(InvalidRecordError, match="no key"):
        log.append_as_leader(produced(b"v"), 0, NOW)
    assert log.log_end_offset == 0


async def test_records_without_a_key_from_before_go(world: ManagerWorld) -> None:
    manager = await world.start()
    log = await world.open(manager)
    put(log, (None, b"1"), (b"a", b"1"))
    seal(log)
    manager.configure("t", lambda _: world.config.log_config({"cleanup.policy": "compact"}))
    await compact(manager, log, world.passes)
    assert records_in(log) == [(1, b"a", b"1")]


async def test_retention_leaves_a_compacted_log_alone(world: ManagerWorld) -> None:
    _, log = await filled(world, retention_ms="1", retention_bytes="1")
    assert log.delete_old_segments(NOW + DAY) == 0
    log.config = world.config.log_config({"cleanup.policy": "compact,delete", "retention.ms": "1"})
    assert log.delete_old_segments(NOW + DAY) > 0


async def test_a_truncation_lowers_the_checkpoint(world: ManagerWorld) -> None:
    manager, log = await filled(world)
    await compact(manager, log, world.passes)
    log.truncate_to(4)
    assert world.text("/data/cleaner-offset-checkpoint") == "0\n1\nt 0 4\n"
    put(log, (b"c", b"2"))
    seal(log)
    await compact(manager, log, world.passes)
    assert records_in(log) == [(1, b"b", b"1"), (3, b"a", b"3"), (4, b"c", b"2")]


async def with_a_gap_at_its_end(world: ManagerWorld) -> tuple[LogManager, UnifiedLog]:
    """Records at 0 and 9; those of 1 to 8, of epochs 0, 1 and 2, are gone."""
    manager, log = await opened(world)
    put(log, (b"keeps", b"1"))
    for offset in range(1, 9):
        put(log, (b"goes", b"%d" % offset), epoch=offset // 3)
        if offset == 4:
            log.roll()
    log.roll()
    put(log, (b"goes", b"9"), epoch=3)
    seal(log)
    await compact(manager, log, world.passes)
    assert [offset for offset, _, _ in records_in(log)] == [0, 9]
    return manager, log


@pytest.mark.parametrize("offset", range(1, 10))
async def test_a_truncation_into_a_gap_ends_the_log_there(world: ManagerWorld, offset: int) -> None:
    """Offsets below it may be committed: they must not be given out again, by no later leader."""
    manager, log = await with_a_gap_at_its_end(world)
    epochs = [entry for entry in log.leader_epochs.entries if entry.start_offset < offset]
    log.update_high_watermark(offset)
    log.truncate_to(offset)
    assert (log.high_watermark, log.log_end_offset) == (offset, offset)
    assert log.leader_epochs.entries == epochs
    manager = await world.restart(manager)
    log = await world.open(manager, cleanup_policy="compact")
    assert (log.high_watermark, log.log_end_offset) == (offset, offset)
    assert log.leader_epochs.entries == epochs
    put(log, (b"new", b"1"), epoch=7)
    assert [one for one, _, _ in records_in(log)] == [0, offset]


@pytest.mark.parametrize("power_loss", [False, True])
@pytest.mark.parametrize("offset", range(1, 10))
async def test_a_log_that_was_truncated_into_a_gap_ends_there_after_a_crash(
    world: ManagerWorld, offset: int, power_loss: bool
) -> None:
    manager, log = await with_a_gap_at_its_end(world)
    await manager.checkpoint_all_offsets()
    log.truncate_to(offset)
    world.disk.crash(keep_unflushed=not power_loss)
    manager = await world.start()
    log = await world.open(manager, cleanup_policy="compact")
    assert not log.cut_at_start
    assert log.log_end_offset == offset
    await manager.stop()


@pytest.mark.parametrize("start", range(1, 9))
async def test_a_follower_reaches_the_end_of_a_log_that_was_truncated_into_a_gap(
    world: ManagerWorld, start: int
) -> None:
    """Wherever in the gap its own log ends."""
    manager, log = await with_a_gap_at_its_end(world)
    log.truncate_to(8)
    copy = await world.open(manager, "copy", cleanup_policy="compact")
    for number in range(start):
        put(copy, (b"keeps" if number == 0 else b"goes", b"%d" % number), epoch=number // 3)
    while copy.log_end_offset < log.log_end_offset:
        copy.append_as_follower(log.read(copy.log_end_offset, 1 << 20, log.log_end_offset))
    assert copy.log_end_offset == 8
    last = copy.leader_epochs.latest_epoch()
    assert last is not None and log.end_offset_for_epoch(last) == (last, 8)
