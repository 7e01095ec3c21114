"""What a start knows about the previous incarnation: whether it was killed or lost power."""

import pytest
from barnabas_broker.disk.disk import Disk
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.disk.volatile_disk import VolatileDisk
from barnabas_broker.log.manager.log_directory import LogDirectory
from barnabas_broker.log.recovery.log_history import (
    HistoryNote,
    LogHistory,
    history_of,
    history_of_all,
)
from barnabas_simulator.disk import MemoryDisk


@pytest.mark.parametrize(
    ("note", "boot", "in_order", "since", "is_new"),
    [
        (None, "b", False, None, True),
        (HistoryNote("b", 17), "b", False, 17, False),  # kill -9
        (HistoryNote("a", 17), "b", False, None, False),  # power was lost
        (HistoryNote("a", 17), "b", True, 17, False),  # stopped cleanly, then switched off
        (HistoryNote("", 17), "", False, None, False),  # a system without a boot id
        (HistoryNote("", 17), "", True, 17, False),
    ],
)
def test_what_may_have_been_lost(
    note: HistoryNote | None, boot: str, in_order: bool, since: int | None, is_new: bool
) -> None:
    assert history_of(note, boot, in_order) == LogHistory(since, is_new)


def test_after_a_failed_flush_or_in_an_older_copy_something_may_have_been_lost() -> None:
    note = HistoryNote("b", 17)
    for in_order in (True, False):
        assert history_of(note, "b", in_order) == LogHistory(17, False)
        assert history_of(note, "b", in_order, has_failed_flush=True) == LogHistory(None, False)
        assert history_of(note, "b", in_order, is_outdated=True) == LogHistory(None, True)


@pytest.mark.parametrize(
    ("since", "broker"), [([17], 17), ([17, 20], 20), ([17, None], None), ([], None)]
)
def test_a_broker_is_as_durable_as_the_worst_of_its_directories(
    since: list[int | None], broker: int | None
) -> None:
    assert history_of_all([LogHistory(s, False) for s in since]).unbroken_since == broker


def lives(disk: Disk, path: str) -> LogDirectory:
    directory = LogDirectory(disk, path)
    directory.take_clean_shutdown()
    return directory


def test_a_killed_process_is_told_from_a_loss_of_power() -> None:
    disk = MemoryDisk()
    disk.make_directory("/data")
    first = lives(disk, "/data")
    assert first.history == LogHistory(None, is_new=True)
    first.write_history(17)
    disk.crash(keep_unflushed=True)
    assert lives(disk, "/data").history.unbroken_since == 17
    disk.crash(keep_unflushed=False)
    second = lives(disk, "/data")
    assert second.history == LogHistory(None, is_new=False)
    second.write_history(40)
    second.mark_clean_shutdown()
    disk.crash(keep_unflushed=False)
    assert lives(disk, "/data").history.unbroken_since == 40


def test_a_clean_stop_before_a_new_note_does_not_undo_a_loss() -> None:
    """A process that starts after a power loss may end in order before it is registered."""
    disk = MemoryDisk()
    disk.make_directory("/data")
    lives(disk, "/data").write_history(17)
    disk.crash(keep_unflushed=False)
    for _ in range(2):
        second = lives(disk, "/data")
        assert second.history == LogHistory(None, is_new=False)
        second.mark_clean_shutdown()
    third = lives(disk, "/data")
    third.write_history(40)
    third.mark_clean_shutdown()
    assert lives(disk, "/data").history.unbroken_since == 40


def test_on_files_a_note_is_found_again_and_a_damaged_one_is_none(tmp_path) -> None:  # type: ignore[no-untyped-def]
    disk, path = PosixDisk(), str(tmp_path)
    assert disk.boot_id(), "Linux tells"
    lives(disk, path).write_history(17)
    assert lives(disk, path).history.unbroken_since == 17
    (tmp_path / ".barnabas_history").write_text("boot.id=b\nunbroken.since=x\n")
    assert lives(disk, path).history == LogHistory(None, is_new=True)


def test_a_volatile_disk_loses_power_with_every_process(tmp_path) -> None:  # type: ignore[no-untyped-def]
    below, path = PosixDisk(), str(tmp_path)
    lives(VolatileDisk(below, lambda: 0), path).write_history(17)
    assert lives(VolatileDisk(below, lambda: 0), path).history == LogHistory(None, is_new=False)
