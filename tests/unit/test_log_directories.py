"""The log manager: several directories, some of which fail, and logs that cannot be used."""

import errno
from typing import Any

import pytest
from barnabas_broker.disk.page_cache import disk_error
from barnabas_broker.log.errors import (
    LostLogError,
    UnusableLog,
)
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_common.errors import KafkaStorageError
from barnabas_common.runtime import InlineOffload
from barnabas_common.topic_partition import TopicPartition

from tests.support.log_manager_world import ManagerWorld, append, settle
from tests.support.log_world import NOW, read_all, values_in

T0 = TopicPartition("t", 0)
MARKER = "/data/.kafka_cleanshutdown"


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


async def test_a_log_whose_directory_fails_while_it_is_deleted_is_not_created_elsewhere() -> None:
    """The folder is still there, and two of one name would stop the next start."""
    world = ManagerWorld({"log.dirs": "/a,/b"})
    manager = await world.start()
    append(await world.open(manager), b"x")
    world.disk.failing.add("/a")
    with pytest.raises(KafkaStorageError):
        await manager.delete(T0)
    with pytest.raises(KafkaStorageError, match="/a"):
        await world.open(manager)
    await manager.stop()
    manager.unlock_directories()
    world.disk.repair()
    manager = await world.start()
    assert [log.topic_partition for log in manager.logs()] == [T0]
    await manager.stop()


async def test_a_failure_in_the_background_counts_too() -> None:
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager)
    append(log, b"x")
    await settle()
    log.roll()
    world.disk.broken = True
    await settle()
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
        await settle()
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


async def test_a_disk_that_dies_before_the_stop_does_not_keep_the_broker_from_stopping() -> None:
    world = ManagerWorld({"log.dirs": "/a"})
    manager = await world.start()
    append(await world.open(manager), b"x")
    await settle()
    world.disk.broken = True
    await manager.stop()
    manager.unlock_directories()
    world.disk.broken = False
    assert not world.disk.exists("/a/.kafka_cleanshutdown")
    manager = await world.start()
    assert manager.logs()[0].log_end_offset == 1
    await manager.stop()
