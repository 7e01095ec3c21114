"""Damage in the committed batches of a log, found when it is opened or when it is read."""

from dataclasses import replace

import pytest
from barnabas_broker.log.errors import DamagedLogError
from barnabas_broker.log.producers.snapshot_file import SUFFIX as SNAPSHOT
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.damaged_replicas import first_damage
from barnabas_common.record.batch import batches

from tests.support.idempotent import sent
from tests.support.log_transactions import Writer
from tests.support.log_world import FOLDER, NOW, LogWorld, produced, read_all

MIB = 1 << 20
SEGMENT = f"{FOLDER}/{0:020}.log"


def _written() -> tuple[LogWorld, UnifiedLog]:
    """Return a log with ten committed batches of one record each."""
    world = LogWorld()
    log = world.open()
    for number in range(10):
        world.append(log, b"value %d" % number)
    log.flush()
    return world, log


def _spoil(world: LogWorld, offset: int) -> None:
    data = bytearray(world.disk.read_file(SEGMENT))
    end = next(p + h.size for p, h in batches(data) if h.last_offset == offset)
    data[end - 2] ^= 1
    world.disk.write_file(SEGMENT, bytes(data))


@pytest.mark.parametrize(
    "checkpoint",
    [
        LogCheckpoint(high_watermark=10, is_unbroken=True),
        LogCheckpoint(high_watermark=5, is_unbroken=True),
    ],
    ids=["all committed", "half of it"],
)
def test_where_no_power_was_lost_nothing_committed_is_cut_off(checkpoint: LogCheckpoint) -> None:
    world, _ = _written()
    _spoil(world, 4)
    before = world.disk.read_file(SEGMENT)
    for _ in range(2):
        with pytest.raises(DamagedLogError, match="damaged at offset 4, below its high watermark"):
            world.open(checkpoint)
        assert world.disk.read_file(SEGMENT) == before


def _expect_the_wrong_length_to_be_found(world: LogWorld, log: UnifiedLog) -> None:
    """Change the length of the first batch, and start after a kill."""
    log.flush()
    data = bytearray(world.disk.read_file(SEGMENT))
    data[8] ^= 1  # 16 MiB more
    world.disk.write_file(SEGMENT, bytes(data))
    with pytest.raises(DamagedLogError, match="damaged at offset 0: batch at byte 0: wrong length"):
        world.open(LogCheckpoint(is_unbroken=True))


@pytest.mark.parametrize("behind", [-30, -10, 10])
def test_a_wrong_length_is_told_from_a_torn_batch_by_what_follows(behind: int) -> None:
    """The batch that follows begins so many bytes behind the first 4 MiB that are read at once."""
    world = LogWorld()
    log = world.open(max_message_bytes=8 * MIB)
    overhead = len(produced(b"x" * (4 * MIB))) - 4 * MIB
    world.append(log, b"x" * (4 * MIB - overhead + behind))
    assert log.size_bytes == 4 * MIB + behind
    world.append(log, b"what follows")
    _expect_the_wrong_length_to_be_found(world, log)


def test_a_wrong_length_of_a_last_batch_that_is_read_in_parts_is_damage() -> None:
    world = LogWorld()
    log = world.open(max_message_bytes=8 * MIB)
    world.append(log, b"x" * (5 * MIB))
    _expect_the_wrong_length_to_be_found(world, log)


def test_later_segments_stay_too() -> None:
    world, log = _written()
    log.roll()
    world.append(log, b"in the second segment")
    log.flush()
    _spoil(world, 4)
    with pytest.raises(DamagedLogError):
        world.open(LogCheckpoint(high_watermark=11, is_unbroken=True))
    assert world.disk.exists(f"{FOLDER}/{10:020}.log")


@pytest.mark.parametrize(
    ("offset", "field"), [(4, "records"), (9, "records"), (4, "length"), (9, "length")]
)
def test_nor_what_may_have_been_committed_since_the_checkpoint(offset: int, field: str) -> None:
    """The death of a process leaves no other mark than a last batch that the file ends inside."""
    world, _ = _written()
    if field == "records":
        _spoil(world, offset)
    else:
        data = bytearray(world.disk.read_file(SEGMENT))
        position = next(p for p, h in batches(data) if h.base_offset == offset)
        data[position + 8] ^= 1  # 16 MiB more
        world.disk.write_file(SEGMENT, bytes(data))
    with pytest.raises(DamagedLogError, match=f"damaged at offset {offset}: batch at byte"):
        world.open(LogCheckpoint(high_watermark=2, is_unbroken=True))


@pytest.mark.parametrize("missing", [1, 20, 70])
def test_a_torn_last_batch_is_cut_off(missing: int) -> None:
    world, _ = _written()
    world.disk.write_file(SEGMENT, world.disk.read_file(SEGMENT)[:-missing])
    log = world.open(LogCheckpoint(high_watermark=2, is_unbroken=True))
    assert log.log_end_offset == 9
    assert log.cut_at_start


@pytest.mark.parametrize(
    "checkpoint",
    [
        LogCheckpoint(high_watermark=10, is_unbroken=True),
        LogCheckpoint(10, 0, 10, is_clean=True),
        LogCheckpoint(6, 0, 10, flushed_up_to=6),
    ],
    ids=["killed", "stopped", "power was lost"],
)
@pytest.mark.parametrize("left", [5, 0, None])
def test_a_log_whose_end_is_missing_is_damaged(checkpoint: LogCheckpoint, left: int | None) -> None:
    """Nothing is wrong with the batches that are there."""
    world, _ = _written()
    data = world.disk.read_file(SEGMENT)
    if left is None:
        world.disk.remove(SEGMENT)
    else:
        starts = [position for position, _ in batches(data)]
        world.disk.write_file(SEGMENT, data[: starts[left]])
    for _ in range(2):
        with pytest.raises(DamagedLogError, match=f"damaged at offset {left or 0}, below its"):
            world.open(checkpoint)


def test_a_wrong_high_watermark_is_recognized_after_a_clean_stop() -> None:
    world, _ = _written()
    assert world.open(LogCheckpoint(10, 0, 10_000, is_clean=True)).log_end_offset == 10


@pytest.mark.parametrize(
    "checkpoint",
    [LogCheckpoint(high_watermark=10), LogCheckpoint(6, 0, 10, flushed_up_to=4), LogCheckpoint()],
    ids=["power was lost", "some was flushed", "given up"],
)
def test_else_the_log_is_cut_at_the_damage(checkpoint: LogCheckpoint) -> None:
    world, _ = _written()
    _spoil(world, 4)
    log = world.open(checkpoint)
    assert log.log_end_offset == 4
    assert "CRC" in log.cut_at_start


def test_damage_is_found_in_what_was_read() -> None:
    world, log = _written()
    assert first_damage(read_all(log), 0, at_least_one=True) is None
    _spoil(world, 4)
    data = world.disk.read_file(SEGMENT)
    damage = first_damage(data, 0, at_least_one=True)
    assert damage is not None and damage[0] == 4
    assert first_damage(data, 0, at_least_one=True, batch_limit=4) is None
    assert first_damage(b"", 7, at_least_one=False) is None
    assert first_damage(b"", 7, at_least_one=True) == (7, "no whole batch starts there")


@pytest.mark.parametrize("bit", [0, 3, 7])
def test_damage_that_a_start_meets_while_it_reads_the_producers_is_kept_for_the_replica(
    bit: int,
) -> None:
    """No snapshot is left, so a segment below the recovery point is read too."""
    world = LogWorld()
    log = world.open()
    writer = Writer(log, 1)
    for _ in range(3):
        writer.send(b"v")
        writer.end(commit=True)
    log.roll()
    writer.send(b"v")
    writer.end(commit=True)
    log.flush()
    for name in world.names():
        if name.endswith(SNAPSHOT):
            world.disk.remove(f"{FOLDER}/{name}")
    data = bytearray(world.disk.read_file(SEGMENT))
    marker = next(p for p, h in batches(data) if h.last_offset == 3)
    data[marker + 50] ^= 1 << bit  # in its producer id
    world.disk.write_file(SEGMENT, bytes(data))
    again = world.open(LogCheckpoint(8, 0, 8, is_unbroken=True))
    assert again.damage is not None
    assert again.damage.offset == 3 and "CRC" in again.damage.fault
    assert world.disk.read_file(SEGMENT) == data, "nothing is cut before the role is known"
    again.truncate_to(again.data_end_below(3))
    assert (again.log_end_offset, again.producers.transactions.first_unstable_offset) == (3, 2)


def _in_segments(log_start_offset: int = 0) -> tuple[LogWorld, list[str]]:
    """Return a log of three segments with five batches each, and the names of their logs."""
    world = LogWorld()
    log = world.open()
    for number in range(15):
        if number and number % 5 == 0:
            log.roll()
        world.append(log, b"value %d" % number)
    log.maybe_increment_log_start_offset(log_start_offset)
    world.reopen_clean(log).close()
    return world, [f"{FOLDER}/{base:020}.log" for base in (0, 5, 10)]


CLOSED = LogCheckpoint(15, 0, 15, is_clean=True)
KILLED = LogCheckpoint(15, 0, 15, is_unbroken=True)


@pytest.mark.parametrize("checkpoint", [CLOSED, KILLED], ids=["stopped", "killed"])
@pytest.mark.parametrize(("number", "offset"), [(0, 0), (1, 5)])
@pytest.mark.parametrize("left", [0, 2, None])
def test_a_missing_segment_is_damage(
    checkpoint: LogCheckpoint, number: int, offset: int, left: int | None
) -> None:
    world, segments = _in_segments()
    data = world.disk.read_file(segments[number])
    if left is None:
        world.disk.remove(segments[number])
    else:
        starts = [position for position, _ in batches(data)]
        world.disk.write_file(segments[number], data[: starts[left]])
    log = world.open(checkpoint)
    assert log.damage is not None and log.misses_batches
    assert log.damage.offset == offset + (left or 0)
    assert log.log_end_offset == 15, "nothing is cut before the role is known"


def test_an_index_alone_shows_that_its_segment_is_missing_even_without_the_epochs() -> None:
    world, segments = _in_segments()
    world.disk.remove(segments[0])
    world.disk.remove(f"{FOLDER}/leader-epoch-checkpoint")
    log = world.open(KILLED)
    assert log.misses_batches and log.damage is not None and log.damage.offset == 0


def test_damage_below_the_log_start_counts_if_batches_behind_it_were_not_read() -> None:
    """Nothing behind a damaged header is read, also not the last batches of the producers."""
    world = LogWorld()
    log = world.open()
    for sequence in range(6):
        records = sent(b"%04d" % sequence * 2000, sequence=sequence)
        log.append_as_leader(records, 0, NOW)
    log.update_high_watermark(6)
    log.maybe_increment_log_start_offset(3)
    data = world.disk.look_into(FOLDER)[f"{0:020}.log"].data
    data[[position for position, _ in batches(bytes(data))][1] + 16] ^= 1
    log.truncate_to(5)
    assert log.damage is not None and log.damage.offset == 3


def test_gaps_of_compaction_and_what_was_deleted_are_not_missing() -> None:
    world, segments = _in_segments()
    assert not world.open(CLOSED).misses_batches
    world.disk.write_file(segments[1], b"")
    assert not world.open(replace(CLOSED, clean_offset=10)).misses_batches
    world, segments = _in_segments(log_start_offset=10)
    world.disk.write_file(segments[1], b"")
    assert not world.open(replace(CLOSED, log_start_offset=10)).misses_batches
    world, segments = _in_segments()
    world.disk.rename(segments[0], segments[0] + ".deleted")  # and then the process died
    log = world.open(KILLED)
    assert not log.misses_batches and log.log_start_offset == 5


def test_first_segments_of_which_no_file_is_left_are_missing_after_a_clean_stop() -> None:
    stopped = replace(CLOSED, is_unbroken=True)
    world, _ = _in_segments()
    for name in world.names():
        if name.startswith(f"{0:020}"):
            world.disk.remove(f"{FOLDER}/{name}")
    log = world.open(stopped)
    assert log.damage is not None and log.misses_batches
    assert (log.damage.offset, log.log_start_offset, log.log_end_offset) == (0, 5, 15)
    world.reopen_clean(log).close()
    assert not world.open(stopped).misses_batches, "it is the log now"


@pytest.mark.parametrize("is_emptied", [True, False])
def test_what_retention_deleted_before_a_clean_stop_is_not(is_emptied: bool) -> None:
    world, _ = _in_segments()
    log = world.open(CLOSED, retention_bytes=0 if is_emptied else 200)
    log.update_high_watermark(15)
    assert log.delete_old_segments(NOW) == (3 if is_emptied else 2)
    log.flush()
    log.close()
    again = world.open(replace(CLOSED, is_unbroken=True))
    assert (again.log_start_offset, again.misses_batches) == (15 if is_emptied else 10, False)
