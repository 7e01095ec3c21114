"""Damage in the committed batches of a log, found when it is opened or when it is read."""

import pytest
from barnabas_broker.log.errors import DamagedLogError
from barnabas_broker.log.recovery.log_loader import LogCheckpoint
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.damaged_replicas import first_damage
from barnabas_common.record.batch import batches

from tests.support.log_world import FOLDER, LogWorld, read_all

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
    "checkpoint",
    [
        LogCheckpoint(high_watermark=10),
        LogCheckpoint(high_watermark=4, is_unbroken=True),
        LogCheckpoint(),
    ],
    ids=["power was lost", "not committed", "given up"],
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
