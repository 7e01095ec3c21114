"""The log manager: its directories, their content from one start to the next, and deletion."""

import asyncio
import errno

import pytest
from barnabas_broker.disk.page_cache import disk_error
from barnabas_broker.log.errors import (
    DirectoryLockedError,
    InconsistentDirectoryError,
)
from barnabas_broker.server.session_file import SessionFile
from barnabas_common.errors import InconsistentTopicIdError, KafkaStorageError
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_manager_world import TOPIC_ID, ManagerWorld, append, settle
from tests.support.log_world import read_all, values_in

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
    await settle()
    assert renamed not in world.disk.list("/data")
    await manager.stop()


async def test_the_name_of_a_deleted_folder_fits_into_a_file_system() -> None:
    world = ManagerWorld()
    manager = await world.start()
    await world.open(manager, "n" * 249)
    await manager.delete(TopicPartition("n" * 249, 0))
    assert max(map(len, world.disk.list("/data"))) == 255
    await manager.stop()
