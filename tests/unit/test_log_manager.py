"""The log manager: its directories, their content from one start to the next, and failures."""

import asyncio
import errno
from typing import Any

import pytest
from barnabas_broker.disk.page_cache import disk_error
from barnabas_broker.log.errors import (
    DirectoryLockedError,
    InconsistentDirectoryError,
    LostLogError,
    UnusableLog,
)
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.server.session_file import SessionFile
from barnabas_common.errors import InconsistentTopicIdError, KafkaStorageError
from barnabas_common.runtime import InlineOffload
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_manager_world import TOPIC_ID, ManagerWorld, append
from tests.support.log_world import NOW, read_all, values_in

T0 = TopicPartition("t", 0)
MARKER = "/data/.kafka_cleanshutdown"


async def test_logs_come_back_with_all_that_is_known_of_them() -> None:
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager)
    append(log, b"a", b"b", epoch=3)
    append(log, b"c", epoch=4)
    log.update_high_watermark(2)
    log.maybe_increment_log_start_offset(2)
    manager = await world.restart(manager)
    again = manager.get(T0)
    assert again is not None and again is not log
    assert (again.log_start_offset, again.high_watermark, again.log_end_offset) == (2, 2, 3)
    assert again.leader_epochs.entries == [(4, 2)]
    assert again.recovery_point == 3 and again.topic_id == TOPIC_ID
    assert manager.get(TopicPartition("t", 1)) is None
    await manager.stop()


async def test_the_files_of_a_directory_are_kafkas() -> None:
    world = ManagerWorld()
    manager = await world.start()
    append(await world.open(manager, "b", 1), b"1", b"2")
    log = await world.open(manager, "a-x", 0)
    append(log, b"1")
    log.maybe_increment_log_start_offset(1)
    await manager.stop()
    assert world.text(MARKER) == '{"version":0,"brokerEpoch":-1}'
    assert world.text("/data/meta.properties") == (
        "#\nbroker.id=1\ncluster.id=cluster-a\nversion=0\n"
    )
    assert world.text("/data/recovery-point-offset-checkpoint") == "0\n2\na-x 0 1\nb 1 2\n"
    assert world.text("/data/replication-offset-checkpoint") == "0\n2\na-x 0 1\nb 1 2\n"
    assert world.text("/data/log-start-offset-checkpoint") == "0\n1\na-x 0 1\n"
    assert world.disk.list("/data/b-1") == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000002.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]


async def test_the_marker_of_a_clean_stop_is_gone_while_the_broker_runs() -> None:
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager)
    append(log, b"a")
    manager = await world.restart(manager)
    assert not world.disk.exists(MARKER)
    world.disk.crash(keep_unflushed=True)
    manager = await world.start()
    assert values_in(read_all(manager.logs()[0])) == [b"a"]
    await manager.stop()


async def test_a_directory_in_use_is_refused_until_it_is_free() -> None:
    world = ManagerWorld()
    manager = await world.start()
    with pytest.raises(DirectoryLockedError, match="/data is in use"):
        world.manager().lock_directories()
    await manager.stop()
    manager.unlock_directories()
    world.manager().lock_directories()


@pytest.mark.parametrize(
    ("broker_id", "cluster_id", "says"),
    [("2", "cluster-a", "broker.id 1, not 2"), ("1", "cluster-b", "cluster.id cluster-a, not")],
)
async def test_the_directory_of_another_is_refused(
    broker_id: str, cluster_id: str, says: str
) -> None:
    world = ManagerWorld()
    manager = await world.start()
    await manager.stop()
    manager.unlock_directories()
    world.settings = {"broker.id": broker_id, "log.dirs": "/data,/new"}
    manager = world.manager()
    manager.lock_directories()
    with pytest.raises(InconsistentDirectoryError, match=says):
        manager.check_identity(cluster_id)
    assert not world.disk.exists("/new/meta.properties")


async def test_the_directory_of_a_later_release_is_refused() -> None:
    world = ManagerWorld()
    manager = await world.start()
    await manager.stop()
    manager.unlock_directories()
    text = world.text("/data/meta.properties").replace("version=0", "version=2")
    world.disk.write_file("/data/meta.properties", text.encode())
    manager = world.manager()
    manager.lock_directories()
    with pytest.raises(InconsistentDirectoryError, match="another release.* version 2"):
        manager.check_identity("cluster-a")


def test_the_kept_session() -> None:
    world = ManagerWorld()
    manager = world.manager()
    manager.lock_directories()
    file = SessionFile(world.disk, manager.live_log_dirs)
    assert file.read() == []
    file.write(0x100A, b"\x00secret\xff")
    assert file.read() == [(0x100A, b"\x00secret\xff")]
    world.disk.write_file("/data/zookeeper.session", b"id=?\npassword=zz\n")
    assert file.read() == []
    world.disk.write_file("/data/zookeeper.session", b"")
    assert file.read() == []


def test_the_session_is_kept_in_a_directory_that_works() -> None:
    class HalfBroken(MemoryDisk):
        bad = ""

        def read_file(self, path: str) -> bytes:
            if self.bad and path.startswith(self.bad):
                raise disk_error(errno.EIO, path)
            return super().read_file(path)

        def write_file(self, path: str, data: bytes, *, private: bool = False) -> None:
            if self.bad and path.startswith(self.bad):
                raise disk_error(errno.EIO, path)
            super().write_file(path, data, private=private)

    disk = HalfBroken()
    world = ManagerWorld({"log.dirs": "/first,/second"}, disk)
    manager = world.manager()
    manager.lock_directories()
    file = SessionFile(disk, manager.live_log_dirs)
    file.write(1, b"earlier")
    disk.bad = "/first"
    file.write(2, b"later")
    assert file.read() == [(2, b"later")]
    disk.bad = ""
    assert file.read() == [(1, b"earlier"), (2, b"later")]  # both are closed
    file.write(3, b"last")
    assert file.read() == [(3, b"last")]
    disk.bad = "/"
    with pytest.raises(OSError):
        file.write(4, b"nowhere")


async def test_a_log_of_an_earlier_topic_of_that_name_is_refused() -> None:
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager)
    with pytest.raises(InconsistentTopicIdError):
        await manager.get_or_create(T0, "BBBBBBBBBBBBBBBBBBBBBQ", log.config, is_new=False)
    assert await manager.get_or_create(T0, None, log.config, is_new=False) is log
    await manager.stop()


async def test_settings_arrive_with_the_next_request() -> None:
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager)
    assert await world.open(manager, retention_ms="5") is log
    assert log.config.retention_ms == 5
    await manager.stop()


# ---- deletion


async def test_a_deleted_log_is_out_of_the_way_at_once_and_its_files_go_later() -> None:
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager, file_delete_delay_ms="0")
    append(log, b"old", b"old", epoch=5)
    await manager.checkpoint_high_watermarks()
    await manager.checkpoint_all_offsets()
    await manager.delete(T0)
    assert manager.get(T0) is None
    with pytest.raises(KafkaStorageError):
        log.read(0, 10, 1)
    assert "t 0" not in world.text("/data/replication-offset-checkpoint")
    assert "t 0" not in world.text("/data/recovery-point-offset-checkpoint")
    new = await world.open(manager)
    assert (new.log_end_offset, new.latest_epoch(), new.topic_id) == (0, None, TOPIC_ID)
    append(new, b"new")
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert [name for name in world.disk.list("/data") if name.endswith("-delete")] == []
    assert values_in(read_all(new)) == [b"new"]
    await manager.delete(TopicPartition("never", 0))
    await manager.stop()


async def test_the_files_of_a_deleted_log_stay_for_their_delay() -> None:
    world = ManagerWorld()
    manager = await world.start()
    await world.open(manager, file_delete_delay_ms="60000")
    await manager.delete(T0)
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert len([name for name in world.disk.list("/data") if name.endswith("-delete")]) == 1
    await manager.stop()


async def test_a_folder_to_be_deleted_is_not_loaded_and_goes_at_the_next_start() -> None:
    world = ManagerWorld()
    manager = await world.start()
    append(await world.open(manager), b"a")
    await manager.delete(T0)
    (renamed,) = [name for name in world.disk.list("/data") if name.endswith("-delete")]
    assert renamed.startswith("t-0.") and len(renamed) == len("t-0.") + 32 + len("-delete")
    await manager.stop()
    manager.unlock_directories()
    manager = await world.start()
    assert manager.logs() == []
    await _settle()
    assert renamed not in world.disk.list("/data")
    await manager.stop()


async def test_the_name_of_a_deleted_folder_fits_into_a_file_system() -> None:
    world = ManagerWorld()
    manager = await world.start()
    await world.open(manager, "n" * 249)
    await manager.delete(TopicPartition("n" * 249, 0))
    assert max(map(len, world.disk.list("/data"))) == 255
    await manager.stop()


# ---- several directories, and failures


async def test_logs_spread_over_the_directories() -> None:
    world = ManagerWorld({"log.dirs": "/a,/b/"})
    manager = await world.start()
    for partition in range(4):
        await world.open(manager, "t", partition)
    folders = [[n for n in world.disk.list(d) if n.startswith("t-")] for d in ("/a", "/b")]
    assert folders == [["t-0", "t-2"], ["t-1", "t-3"]]
    manager = await world.restart(manager)
    assert len(manager.logs()) == 4
    await manager.stop()


async def test_a_partition_in_two_directories_stops_the_start() -> None:
    world = ManagerWorld({"log.dirs": "/a,/b"})
    for path in ("/a/t-0", "/b/t-0"):
        world.disk.make_directory(path)
    with pytest.raises(UnusableLog, match="lies in both"):
        await world.start()


async def test_what_is_no_partition_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    world = ManagerWorld()
    for name in ("lost+found", "t-0.0123-stray", "-1", "t-x"):
        world.disk.make_directory(f"/data/{name}")
    manager = await world.start()
    assert manager.logs() == []
    assert len([r for r in caplog.records if "is not used" in r.message]) == 4
    await manager.stop()


@pytest.mark.parametrize("number", [0, 1])
async def test_a_directory_whose_identity_cannot_be_read_has_failed_at_the_start(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = ManagerWorld({"log.dirs": "/a,/b"})
    manager = await world.start()
    for partition in range(2):
        append(await world.open(manager, "t", partition), b"x")
    await manager.stop()
    manager.unlock_directories()
    read, failed = world.disk.read_file, ["/a", "/b"][number]

    def failing(path: str) -> bytes:
        if path == f"{failed}/meta.properties":
            raise disk_error(errno.EIO, path)
        return read(path)

    monkeypatch.setattr(world.disk, "read_file", failing)
    manager = await world.start()
    assert manager.live_log_dirs() == [["/b", "/a"][number]]
    (log,) = manager.logs()
    assert log.log_end_offset == 1
    with pytest.raises(KafkaStorageError, match="may be in a data directory that has failed"):
        await manager.get_or_create(TopicPartition("t", number), None, log.config, is_new=False)
    await manager.stop()


async def test_a_broker_without_a_directory_that_can_be_read_does_not_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = ManagerWorld()
    await (await world.start()).stop()

    def failing(path: str) -> bytes:
        raise disk_error(errno.EIO, path)

    monkeypatch.setattr(world.disk, "read_file", failing)
    manager = world.manager()
    with pytest.raises(OSError, match="/data/meta.properties"):
        manager.check_identity("cluster-a")


async def test_a_failed_directory_takes_its_logs_and_no_others() -> None:
    world = ManagerWorld({"log.dirs": "/a,/b"})
    manager = await world.start()
    lost, kept = await world.open(manager, "t", 0), await world.open(manager, "t", 1)
    world.disk.free_bytes = 0
    with pytest.raises(KafkaStorageError):
        append(lost, b"x")
    world.disk.free_bytes = None
    assert world.failures == [("/a", errno.ENOSPC)]
    assert manager.live_log_dirs() == ["/b"]
    assert manager.get(T0) is None and T0 in manager.offline_logs()
    append(kept, b"x")
    with pytest.raises(KafkaStorageError):
        await world.open(manager, "t", 0)
    with pytest.raises(KafkaStorageError):
        await manager.get_or_create(TopicPartition("u", 0), None, kept.config, is_new=False)
    assert (await world.open(manager, "u", 0)).directory == "/b/u-0"
    with pytest.raises(KafkaStorageError):
        await manager.delete(T0)
    with pytest.raises(KafkaStorageError, match="may be in a data directory that has failed"):
        await manager.delete(TopicPartition("u", 1))
    await manager.stop()
    assert world.disk.exists("/b/.kafka_cleanshutdown")
    assert not world.disk.exists("/a/.kafka_cleanshutdown")


async def test_a_failure_in_the_background_counts_too() -> None:
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager)
    append(log, b"x")
    await _settle()
    log.roll()
    world.disk.broken = True
    await _settle()
    assert world.failures == [("/data", errno.EIO)]
    assert manager.live_log_dirs() == []
    await manager.stop()


async def test_a_flush_goes_on_when_retention_takes_a_segment_away() -> None:
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager)
    append(log, b"a")
    log.roll()
    append(log, b"b")
    first = log.segments()[0]

    class TakingAway(InlineOffload):
        async def run(self, function: Any, *arguments: Any, **options: Any) -> Any:
            if not first.is_deleted:
                log.maybe_increment_log_start_offset(1)
                assert log.delete_old_segments(NOW) == 1
                first.mark_deleted()
                first.close()
            return await super().run(function, *arguments, **options)

    manager._background._offload = TakingAway()
    await manager.flush(log)
    assert log.recovery_point == log.log_end_offset == 2
    assert not world.failures


async def test_each_change_of_the_epochs_is_written_in_the_background() -> None:
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager)
    for epoch in (1, 2, 3):
        log.assign_epoch(epoch, 0)
        assert not log.epoch_file.is_durable
        await _settle()
        assert world.text("/data/t-0/leader-epoch-checkpoint") == f"0\n1\n{epoch} 0\n"
        assert log.epoch_file.is_durable


async def test_no_usable_directory_stops_the_start() -> None:
    world = ManagerWorld()
    world.disk.read_only = True
    with pytest.raises(OSError, match="Read-only"):
        world.manager().lock_directories()


async def test_a_log_of_an_unknown_topic_is_lost_and_does_not_stop_the_others() -> None:
    world = ManagerWorld()
    manager = await world.start()
    append(await world.open(manager, "t", 0), b"x")
    append(await world.open(manager, "t", 1), b"y")
    await manager.stop()
    manager.unlock_directories()
    world.disk.write_file("/data/t-0/partition.metadata", b"?")
    manager = await world.start()
    assert [log.topic_partition.partition for log in manager.logs()] == [1]
    assert "partition.metadata is malformed" in manager.lost.describe()[T0]
    with pytest.raises(LostLogError, match="its topic is unknown"):
        await manager.get_or_create(T0, None, manager.logs()[0].config, False, in_sync=True)
    assert world.disk.read_file("/data/t-0/partition.metadata") == b"?"
    log = await manager.get_or_create(T0, "id", manager.logs()[0].config, False)
    assert (log.log_start_offset, log.log_end_offset, log.topic_id) == (0, 0, "id")
    assert log.cut_at_start and not manager.lost
    await manager.stop()


async def test_damaged_checkpoints_cost_time_and_no_records() -> None:
    world = ManagerWorld()
    manager = await world.start()
    append(await world.open(manager), b"x")
    await manager.stop()
    manager.unlock_directories()
    world.disk.remove(MARKER)
    for name in ("recovery-point", "log-start", "replication"):
        world.disk.write_file(f"/data/{name}-offset-checkpoint", b"0\nmany\n")
    manager: LogManager = await world.start()
    assert values_in(read_all(manager.logs()[0])) == [b"x"]
    await manager.stop()


async def _settle() -> None:
    """Let background tasks run."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_disk_that_dies_before_the_stop_does_not_keep_the_broker_from_stopping() -> None:
    world = ManagerWorld({"log.dirs": "/a"})
    manager = await world.start()
    append(await world.open(manager), b"x")
    await _settle()
    world.disk.broken = True
    await manager.stop()
    manager.unlock_directories()
    world.disk.broken = False
    assert not world.disk.exists("/a/.kafka_cleanshutdown")
    manager = await world.start()
    assert manager.logs()[0].log_end_offset == 1
    await manager.stop()
