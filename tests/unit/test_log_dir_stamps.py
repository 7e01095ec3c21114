"""Which data directories are older copies: the decision, and the files that it uses."""

import errno

import pytest
from barnabas_broker.disk.page_cache import disk_error
from barnabas_broker.log.recovery.log_history import HistoryNote, LogHistory, history_of
from barnabas_broker.server.log_dir_stamps import (
    LogDirStamps,
    are_ahead,
    outdated_directories,
)
from barnabas_common.events import EventLog

from tests.support.log_manager_world import ManagerWorld


def test_a_directory_behind_the_znode_is_an_older_copy() -> None:
    assert outdated_directories({"/a": 7, "/b": 9}, 9) == ["/a"]


def test_a_znode_that_is_behind_or_missing_accuses_no_one() -> None:
    assert outdated_directories({"/a": 7}, 3) == []
    assert outdated_directories({"/a": 7}, None) == []
    assert outdated_directories({}, 9) == []


def test_a_znode_that_is_behind_by_more_than_a_crash_leaves_shows_an_older_zookeeper() -> None:
    assert are_ahead({"/a": 7, "/b": 9}, 7)
    assert not are_ahead({"/a": 8}, 7), "a crash between the two writes"
    assert not are_ahead({"/a": 3}, 7)
    assert not are_ahead({"/a": 9}, None) and not are_ahead({}, 7)


def test_an_older_copy_counts_as_a_disk_that_lost_something() -> None:
    note = HistoryNote("boot", 5)
    assert history_of(note, "boot", True) == LogHistory(5, is_new=False)
    assert history_of(note, "boot", True, is_outdated=True) == LogHistory(None, is_new=True)


async def test_a_directory_whose_stamp_cannot_be_read_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = ManagerWorld({"log.dirs": "/a,/b"})
    manager = await world.start()
    await manager.write_history(1)
    await manager.stop()
    manager.unlock_directories()
    read = world.disk.read_file

    def failing(path: str) -> bytes:
        if path == "/a/.barnabas_stamp":
            raise disk_error(errno.EIO, path)
        return read(path)

    monkeypatch.setattr(world.disk, "read_file", failing)
    manager = world.manager()
    events = EventLog(1, world.clock.wall_ms)
    await LogDirStamps(manager, lambda: None, 1, 5.0, events).compare()
    assert manager.live_log_dirs() == ["/b"]
