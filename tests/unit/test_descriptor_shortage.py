"""A lack of file descriptors (EMFILE) fails no disk, loses nothing, and leaves no trace."""

import asyncio
import errno
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from barnabas_broker.disk.disk import Disk, FlushFailed, is_out_of_descriptors
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.log.errors import OutOfDescriptorsError
from barnabas_broker.log.index.transaction_index import AbortedTxn, TransactionIndex
from barnabas_broker.log.manager import descriptor_shortage, log_background_work
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.producers.snapshot_file import SUFFIX
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.server import connection_watch
from barnabas_broker.server.connection_watch import is_full
from barnabas_broker.server.descriptors import (
    FEWEST_CONNECTIONS,
    OWN,
    DescriptorShares,
    TooFewDescriptors,
    count_segments,
    share_descriptors,
)
from barnabas_common.errors import KafkaStorageError
from barnabas_common.events import EventKind, EventLog
from barnabas_common.runtime import InlineOffload, Runtime
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk

from tests.support.idempotent import sent
from tests.support.log_manager_world import ManagerWorld, append
from tests.support.log_world import FOLDER, LogWorld, produced, read_all, values_in
from tests.support.scarce_disk import ScarceDisk

T0 = TopicPartition("t", 0)
MAX_INT = 2**31 - 1


# Which errors count


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
def test_the_process_or_the_machine_may_have_no_descriptor_left(code: int) -> None:
    assert is_out_of_descriptors(OSError(code, "no more"))


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EIO, "broken"), OSError(errno.ENOSPC, "full"), FlushFailed(errno.EMFILE, "?")],
)
def test_a_failing_disk_is_something_else(error: OSError) -> None:
    assert not is_out_of_descriptors(error)


# How descriptors are shared


@pytest.mark.parametrize(
    ("limit", "segments", "wanted", "connections"),
    [
        (1024, 0, MAX_INT, 512),  # half, where the logs are small
        (1024, 300, MAX_INT, 1024 - OWN - 600),  # room for as many segments again
        (1024, 500, MAX_INT, FEWEST_CONNECTIONS),
        (20_000, 100, MAX_INT, 10_000),
        (20_000, 100, 50, 50),
        (1024, 0, 9_000, 512),
        (1024, 500, 5, 5),
    ],
)
def test_the_shares(limit: int, segments: int, wanted: int, connections: int) -> None:
    assert share_descriptors(limit, segments, wanted) == DescriptorShares(limit, connections)


def test_too_few_descriptors_are_named_with_the_need() -> None:
    with pytest.raises(TooFewDescriptors, match=r"is 300, and at least 612 are needed: 500 for"):
        share_descriptors(300, 500, MAX_INT)


def test_the_segments_of_all_directories_are_counted(tmp_path) -> None:  # type: ignore[no-untyped-def]
    for name in ("a/t-0/00000000000000000000.log", "a/t-0/00000000000000000007.log", "b/u-1/0.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "a/t-0/00000000000000000000.index").touch()
    assert count_segments([f"{tmp_path}/a", f"{tmp_path}/b", f"{tmp_path}/none"]) == 3


@pytest.mark.parametrize(
    ("was_full", "connections", "expected"),
    [(False, 99, False), (False, 100, True), (True, 90, True), (True, 89, False)],
)
def test_full_listeners_are_not_reported_with_every_connection(
    was_full: bool, connections: int, expected: bool
) -> None:
    assert is_full(was_full, connections, limit=100) is expected


async def test_a_watch_that_could_not_look_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_watch, "_INTERVAL", 0.001)
    looks: list[OSError | tuple[int, int] | None] = [
        (10, 10), OSError(errno.EMFILE, "no more"), (5, 10), None,
    ]  # fmt: skip

    def count() -> tuple[int, int] | None:
        seen = looks.pop(0)
        if isinstance(seen, OSError):
            raise seen
        return seen

    events = EventLog(1, lambda: 0)
    watch = connection_watch.ConnectionWatch(events, InlineOffload(), count)
    watch.start()
    async with asyncio.timeout(5):
        while looks:
            await asyncio.sleep(0.001)
    await watch.close()
    kinds = [event.kind for event in events.since(0)]
    assert kinds == [EventKind.CONNECTION_LIMIT_REACHED, EventKind.CONNECTION_LIMIT_RELIEVED]


# One log


def three_segments(**config: object) -> tuple[LogWorld, ScarceDisk, UnifiedLog]:
    """Return a log with offsets 0 to 8: three batches per segment, one epoch per segment."""
    disk = ScarceDisk(MemoryDisk())
    world = LogWorld(disk=disk)  # type: ignore[arg-type]
    log = world.open(index_interval_bytes=0, **config)
    for epoch in range(3):
        if epoch:
            log.roll()
        for number in range(3):
            world.append(log, b"%d" % (epoch * 3 + number), epoch=epoch)
    return world, disk, log


def values(log: UnifiedLog) -> list[int]:
    return [int(value or b"") for value in values_in(read_all(log))]


def without_snapshots(world: LogWorld) -> list[str]:
    """The log's files but those that only save a start the reading of the log."""
    return [name for name in world.names() if not name.endswith(SUFFIX)]


def append_and_roll(log: UnifiedLog) -> None:
    log.roll()
    log.append_as_leader(produced(b"9"), 2, 0)


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (append_and_roll, range(10)),
        (lambda log: log.truncate_to(7), range(7)),
        (lambda log: log.truncate_to(4), range(4)),
        (lambda log: log.truncate_to(1), range(1)),
        (lambda log: log.truncate_to(0), range(0)),
        (lambda log: log.truncate_fully_and_start_at(50), range(0)),
        (lambda log: log.read(1, 10, 9), range(9)),
        (lambda log: log.offset_for_timestamp(0), range(9)),
    ],
)
@pytest.mark.parametrize("left", range(8))
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_log_is_as_it_was_or_as_it_shall_be(
    work: Callable[[UnifiedLog], None], expected: range, left: int, is_killed: bool
) -> None:
    world, disk, log = three_segments()
    names = without_snapshots(world)
    disk.left = left
    try:
        work(log)
    except OutOfDescriptorsError as error:
        assert error.code.retriable
        disk.left = None
        assert values(log) in (list(range(9)), list(expected))
        if values(log) == list(range(9)) and work is not append_and_roll:
            assert without_snapshots(world) == names
        if is_killed:
            log = world.open()
            assert values(log) in (list(range(9)), list(expected))
        if values(log) != list(expected) or log.log_end_offset not in (expected.stop, 50):
            work(log)
    disk.left = None
    assert not log.is_failed
    assert values(log) == list(expected)
    end = log.log_end_offset
    log.append_as_leader(produced(b"77"), 5, 0)
    log.roll()
    assert log.log_end_offset == end + 1
    assert values(log) == [*expected, 77]
    assert values(world.reopen_clean(log)) == [*expected, 77]
    assert values(world.open()) == [*expected, 77]


def test_the_index_of_a_segment_that_could_not_be_rolled_goes_on() -> None:
    world, disk, log = three_segments()
    for left in range(5):
        disk.left = left
        with pytest.raises(KafkaStorageError):
            log.roll()
        disk.left = 0  # an append without a roll needs no descriptor
        world.append(log, b"%d" % (9 + left), epoch=2)
    disk.left = None
    log.roll()
    world.append(log, b"14", epoch=2)
    assert values(log) == list(range(15))
    assert log.segment_offsets == [0, 3, 6, 14]
    assert values(world.reopen_clean(log)) == list(range(15))


def test_a_flush_that_must_come_first_is_not_left_out() -> None:
    world, disk, log = three_segments(flush_messages=1)
    log.roll()
    disk.left = 0
    with pytest.raises(OutOfDescriptorsError):
        log.append_as_leader(produced(b"9"), 2, 0)
    disk.left = None
    world.append(log, b"10", epoch=2)
    assert log.recovery_point == log.log_end_offset and not log.is_failed


def test_a_retry_is_not_answered_before_it_is_flushed() -> None:
    _, disk, log = three_segments(flush_messages=1)
    log.roll()
    batch = sent(b"9")
    disk.left = 0
    for _ in range(2):
        with pytest.raises(OutOfDescriptorsError):
            log.append_as_leader(batch, 2, 0)
        assert log.recovery_point == 9 and log.log_end_offset == 10
    disk.left = None
    assert log.append_as_leader(batch, 2, 0).first_offset == 9
    assert log.recovery_point == log.log_end_offset == 10


def test_the_name_of_an_index_that_could_not_be_made_durable_is_later() -> None:
    memory = MemoryDisk()
    disk = ScarceDisk(memory)
    disk.make_directory(FOLDER)
    index = TransactionIndex(disk, f"{FOLDER}/0.txnindex")  # type: ignore[arg-type]
    index.add(AbortedTxn(1, 0, 1, 0))
    index.save()
    disk.left = 1  # for the file, not for its directory
    with pytest.raises(OSError):
        index.sync()
    disk.left = None
    index.sync()
    memory.crash(keep_unflushed=False)
    assert memory.exists(index.path)


@pytest.mark.parametrize("left", range(8))
def test_a_log_that_could_not_start_again_knows_its_producers(left: int) -> None:
    world, disk, log = three_segments()
    log.append_as_leader(sent(b"9", b"10"), 2, 0)
    disk.left = left
    try:
        log.truncate_fully_and_start_at(50)
    except OutOfDescriptorsError:
        if log.log_end_offset == 11:
            assert log.append_as_leader(sent(b"9", b"10"), 2, 0).first_offset == 9
    disk.left = None
    log.truncate_fully_and_start_at(50)
    assert log.log_end_offset == 50 and not log.producers.entries
    assert not any(name.endswith(SUFFIX) for name in world.names())


# The log manager


@dataclass
class World(ManagerWorld):
    """`reports` are those that a broker would record as events."""

    scarce: ScarceDisk = field(default_factory=lambda: ScarceDisk(MemoryDisk()))
    reports: list[int | None] = field(default_factory=list)

    def manager(self) -> LogManager:
        self.disk = self.scarce  # type: ignore[assignment]
        return LogManager(
            self.config,
            Runtime(self.clock, random.Random(1), InlineOffload(), None),  # type: ignore[arg-type]
            self.disk,
            lambda path, error: self.failures.append((path, error.errno)),
            lambda error: self.reports.append(error and error.errno),
        )

    async def until_over(self) -> None:
        async with asyncio.timeout(10):
            while self.reports[-1] is not None:
                await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (descriptor_shortage, log_background_work):
        monkeypatch.setattr(module, "RETRY_SECONDS", 0.02)


async def test_no_directory_fails_and_all_is_done_later() -> None:
    world = World()
    manager = await world.start()
    log = await world.open(manager)
    append(log, b"a")
    world.scarce.left = 0
    flushing = asyncio.ensure_future(manager.flush(log))
    await manager.checkpoint_all_offsets()
    await manager.checkpoint_high_watermarks()
    with pytest.raises(KafkaStorageError):
        await world.open(manager, "new")
    assert world.reports == [errno.EMFILE] and not world.failures
    await asyncio.sleep(0.1)
    assert not flushing.done() and world.reports == [errno.EMFILE]
    world.scarce.left = None
    await flushing
    await world.until_over()
    assert world.reports == [errno.EMFILE, None] and not world.failures
    assert log.recovery_point == 1
    assert "t 0 1" in world.text("/data/replication-offset-checkpoint")
    append(await world.open(manager, "new"), b"b")
    await manager.stop()


async def test_what_flush_messages_requires_is_flushed_when_it_can_be() -> None:
    world = World()
    manager = await world.start()
    log = await world.open(manager, flush_messages="1")
    world.scarce.left = 0
    with pytest.raises(OutOfDescriptorsError):
        append(log, b"a")
    assert (log.log_end_offset, log.recovery_point) == (1, 0)
    world.scarce.left = None
    await world.until_over()
    assert log.recovery_point == 1, "without another append"
    await manager.stop()


async def test_a_log_that_is_deleted_goes_when_it_can() -> None:
    world = World()
    manager = await world.start()
    log = await world.open(manager, file_delete_delay_ms="0")
    append(log, b"a")
    await manager.checkpoint_high_watermarks()
    world.scarce.left = 0
    await manager.delete(T0)
    assert manager.get(T0) is None and not world.failures
    with pytest.raises(KafkaStorageError):  # the checkpoints still name the deleted log
        await world.open(manager)
    await asyncio.sleep(0.05)
    world.scarce.left = None
    await world.until_over()
    assert "t 0" not in world.text("/data/replication-offset-checkpoint")
    async with asyncio.timeout(5):
        while any(name.startswith("t-0") for name in world.disk.list("/data")):
            await asyncio.sleep(0.01)
    assert (await world.open(manager)).log_end_offset == 0
    await manager.stop()


@pytest.mark.parametrize("left", range(6))
async def test_no_checkpoint_names_more_than_is_left_after_a_cut(left: int) -> None:
    world = World()
    manager = await world.start()
    log = await world.open(manager)
    for number in range(5):
        append(log, b"%d" % number)
    await manager.flush(log)
    await manager.checkpoint_all_offsets()
    world.scarce.left = left
    try:
        log.truncate_to(2)
    except OutOfDescriptorsError:
        world.scarce.left = None
        log.truncate_to(2)
    world.scarce.left = None
    assert log.log_end_offset == 2
    assert "t 0 2" in world.text("/data/recovery-point-offset-checkpoint")
    await asyncio.sleep(0.1)
    await manager.stop()


async def test_a_broker_does_not_start_without_descriptors_for_its_logs() -> None:
    world = World()
    manager = await world.start()
    append(await world.open(manager), b"a")
    await manager.stop()
    manager.unlock_directories()
    world.scarce.left = 5
    with pytest.raises(OSError) as caught:
        await world.start()
    assert is_out_of_descriptors(caught.value) and not world.failures


# Creating a log


async def test_a_log_whose_creation_failed_is_created_where_its_folder_is() -> None:
    """With a folder in each of two directories the broker would not start again."""
    world = ManagerWorld({"log.dirs": "/data,/data-2"})
    manager = await world.start()
    world.disk.make_directory("/data-2/late-0")
    await world.open(manager, "late")
    manager = await world.restart(manager)
    assert manager.get(TopicPartition("late", 0)) is not None
    assert not world.disk.is_directory("/data/late-0")


@pytest.mark.parametrize("is_real", [True, False])
def test_a_directory_that_could_not_be_made_durable_is_not_left_behind(
    is_real: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt would find it, and not make it durable."""

    def full(*_: object) -> None:
        raise OSError(errno.EMFILE, "no more")

    disk: Disk = PosixDisk() if is_real else MemoryDisk()
    path = f"{tmp_path}/new" if is_real else "/new"
    with monkeypatch.context() as patch:
        if isinstance(disk, MemoryDisk):
            patch.setattr(disk, "no_descriptors", True)
        else:
            patch.setattr(disk, "sync_directory", full)
        with pytest.raises(OSError, match="24|no more"):
            disk.make_directory(path)
    assert not disk.is_directory(path)
    disk.make_directory(path)
    assert disk.is_directory(path)
