"""A bit of a batch's leader epoch changes, and the next start reads it. No checksum covers it.

The log must not seem to have an epoch that it has not: an election by the logs would prefer it.
Below the checkpointed high watermark the epoch file has all epochs, and any one bit is noticed.
"""

from dataclasses import replace
from itertools import pairwise

import pytest
from barnabas_broker.log.checkpoint.checkpoint_file import encode_epochs
from barnabas_broker.log.errors import DamagedLogError
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint
from barnabas_broker.log.recovery.stored_epochs import FAR
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.record.batch import batches
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_world import FOLDER, LogWorld

EPOCH_AT = 12
EPOCHS = [1, 1, 1, 4, 4, 4]
BITS = range(32)
UNBROKEN = LogCheckpoint(high_watermark=len(EPOCHS), is_unbroken=True)


def written(segments: int = 1) -> tuple[LogWorld, list[tuple[str, int]]]:
    """Return a log of six batches of one record, and the file and position of each."""
    world = LogWorld()
    log = world.open()
    for number, epoch in enumerate(EPOCHS):
        if number and number % (len(EPOCHS) // segments) == 0:
            log.roll()
        log.assign_epoch(epoch, log.log_end_offset)
        log.epoch_file.write()
        world.append(log, b"%d" % number, epoch=epoch)
    log.flush()
    log.close()
    places = []
    for name in sorted(n for n in world.names() if n.endswith(".log")):
        path = f"{FOLDER}/{name}"
        places += [(path, position) for position, _ in batches(world.disk.read_file(path))]
    return world, places


def flip(world: LogWorld, place: tuple[str, int], bit: int) -> int:
    """Change a bit of a batch's epoch; returns the epoch that it has then."""
    disk, (path, position) = world.disk, place
    assert isinstance(disk, MemoryDisk)
    disk.flip(path, position + EPOCH_AT + 3 - bit // 8, bit % 8)
    (header,) = [h for p, h in batches(disk.read_file(path)) if p == position]
    return header.partition_leader_epoch


def truncated(world: LogWorld) -> UnifiedLog:
    """Open it as a replica outside the ISR does, which may truncate it."""
    log = world.open()
    assert log.leader_epochs.entries == [
        entry for entry in [(1, 0), (4, 3)] if entry[1] < log.log_end_offset
    ]
    return log


def refused(world: LogWorld, checkpoint: LogCheckpoint, number: int, epoch: int) -> None:
    """The start finds the damage and changes nothing; a replica outside the ISR truncates it."""
    before = {name: world.disk.read_file(f"{FOLDER}/{name}") for name in world.names()}
    for start in (checkpoint, checkpoint, replace(checkpoint, is_clean=True)):
        with pytest.raises(DamagedLogError, match=f"damaged at offset {number}") as raised:
            world.open(start)
        assert f"{epoch} at offset {number}" in str(raised.value)
        kept = {name: data for name, data in before.items() if name.endswith((".log", "point"))}
        assert kept == {name: world.disk.read_file(f"{FOLDER}/{name}") for name in kept}
    assert truncated(world).log_end_offset == number


@pytest.mark.parametrize("bit", BITS)
@pytest.mark.parametrize("number", range(len(EPOCHS)))
@pytest.mark.parametrize("segments", [1, 2, 3, 6])
def test_a_start_finds_it_and_changes_nothing(number: int, bit: int, segments: int) -> None:
    world, places = written(segments)
    epoch = flip(world, places[number], bit)
    refused(world, UNBROKEN, number, epoch)


@pytest.mark.parametrize("bit", BITS)
@pytest.mark.parametrize("number", range(len(EPOCHS)))
def test_above_the_high_watermark_it_finds_what_cannot_be_right_by_itself(
    number: int, bit: int
) -> None:
    """The epochs of the last batches need not be in the file yet: it is written while they are
    appended."""
    world, places = written()
    epoch = flip(world, places[number], bit)
    shown = [*EPOCHS[:number], epoch, *EPOCHS[number + 1 :]]
    falls = any(earlier > later for earlier, later in pairwise(shown))
    checkpoint = LogCheckpoint(is_unbroken=True, epochs_stored_below=0)
    if epoch >= 0 and not falls and epoch - 4 <= FAR:
        log = world.open(checkpoint)  # a little too high, and none follows: not recognized
        assert (log.log_end_offset, log.latest_epoch()) == (len(EPOCHS), max(shown))
    else:
        refused(world, checkpoint, number, epoch)


@pytest.mark.parametrize("bit", BITS)
def test_after_a_clean_shutdown_the_last_batch_is_compared_too(bit: int) -> None:
    """The others are not read."""
    world, places = written()
    epoch = flip(world, places[-1], bit)
    checkpoint = replace(UNBROKEN, is_clean=True, recovery_point=len(EPOCHS))
    if not 4 < epoch <= 4 + FAR:
        log = world.open(checkpoint)
        assert (log.log_end_offset, log.latest_epoch()) == (len(EPOCHS), 4)
    else:
        refused(world, checkpoint, len(EPOCHS) - 1, epoch)


@pytest.mark.parametrize("bit", range(10, 32))
def test_in_a_log_of_one_batch_it_is_found_too(bit: int) -> None:
    world = LogWorld()
    log = world.open()
    log.assign_epoch(1, 0)
    log.epoch_file.write()
    world.append(log, b"x", epoch=1)
    log.close()
    epoch = flip(world, (f"{FOLDER}/{0:020}.log", 0), bit)
    with pytest.raises(DamagedLogError, match=f"leader epoch {epoch} at offset 0"):
        world.open(LogCheckpoint(high_watermark=1, is_unbroken=True))


def test_an_epoch_that_the_file_has_may_be_far_above_the_one_before() -> None:
    """An election by the logs may have raised it by more."""
    world = LogWorld()
    log = world.open()
    for epoch in (1, 2 + 2 * FAR):
        log.assign_epoch(epoch, log.log_end_offset)
        log.epoch_file.write()
        world.append(log, b"x", epoch=epoch)
    log.close()
    for _ in range(2):
        log = world.open(LogCheckpoint(high_watermark=2, is_unbroken=True))
        assert (log.log_end_offset, log.latest_epoch()) == (2, 2 + 2 * FAR)
        log.close()
        world.disk.remove(log.epoch_file.path)  # then all epochs are from the batches


def test_new_epochs_that_the_file_has_not_yet_are_taken_over() -> None:
    """None of their batches is below the high watermark in the checkpoint."""
    world = LogWorld()
    log = world.open()
    log.assign_epoch(0, 0)
    log.epoch_file.write()
    stored = world.disk.read_file(log.epoch_file.path)
    for epoch in (0, 3, 9):
        world.append(log, b"x", epoch=epoch)
    log.close()
    world.disk.write_file(log.epoch_file.path, stored)
    log = world.open(LogCheckpoint(high_watermark=3, is_unbroken=True, epochs_stored_below=1))
    assert log.leader_epochs.entries == [(0, 0), (3, 1), (9, 2)]


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_file_that_several_batches_contradict_is_an_older_one(is_clean: bool) -> None:
    world = LogWorld()
    log = world.open()
    for number in range(4):
        world.append(log, b"x", epoch=3 if number > 1 else 1)
        if number == 0:
            stored = world.disk.read_file(log.epoch_file.path)
    log.close()
    world.disk.write_file(log.epoch_file.path, stored)
    log = world.open(LogCheckpoint(4 if is_clean else 0, 0, 4, is_clean, is_unbroken=True))
    assert log.leader_epochs.entries == [(1, 0), (3, 2)]
    assert log.log_end_offset == 4


@pytest.mark.parametrize("recovery_point", [0, len(EPOCHS)])
@pytest.mark.parametrize("entries", [[(1, 0), (5, 3)], [(0, 0), (4, 3)], [(1, 0), (4, 1)]])
def test_nor_does_one_wrong_number_in_the_file_accuse_several_batches(
    entries: list[tuple[int, int]], recovery_point: int
) -> None:
    """It must not stay either: the log would seem newer than it is."""
    world, _ = written()
    path = f"{FOLDER}/leader-epoch-checkpoint"
    world.disk.write_file(path, encode_epochs(entries))
    log = world.open(replace(UNBROKEN, recovery_point=recovery_point))
    assert log.leader_epochs.entries == [(1, 0), (4, 3)]
    assert log.damaged_epochs.endswith("in the file")


def test_two_wrong_batches_with_a_right_one_between_them_are_found() -> None:
    world, places = written()
    epoch = flip(world, places[2], 1)
    flip(world, places[5], 0)
    refused(world, UNBROKEN, 2, epoch)


def test_what_the_file_does_not_tell_of_contradicts_nothing() -> None:
    """A log start that was raised inside a segment moves the first entry."""
    world = LogWorld()
    log = world.open()
    for _ in range(10):
        world.append(log, b"x", epoch=2 * FAR)
    log.update_high_watermark(10)
    log.maybe_increment_log_start_offset(7)
    log.close()
    log = world.open(LogCheckpoint(0, 7, 10, is_unbroken=True))
    assert (log.log_start_offset, log.log_end_offset) == (7, 10)
    assert log.leader_epochs.entries == [(2 * FAR, 7)]
