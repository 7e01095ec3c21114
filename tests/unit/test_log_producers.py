"""The producers of a log: retries are recognized, also after a restart or a truncation."""

from dataclasses import replace
from typing import Any

import pytest
from barnabas_broker.log.log_context import HostedLog, LogHost
from barnabas_broker.log.producers.producer_state import unpack
from barnabas_broker.log.producers.producer_state_manager import PendingSnapshot
from barnabas_broker.log.producers.snapshot_file import decode_snapshot, encode_snapshot, name_of
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTimestampError,
    KafkaError,
    KafkaStorageError,
    MessageTooLargeError,
    OutOfOrderSequenceNumberError,
    RecordListTooLargeError,
)
from barnabas_common.record.transactional import marker_batch
from barnabas_simulator.disk import MemoryDisk

from tests.support.idempotent import MARKER, sent
from tests.support.log_manager_world import ManagerWorld
from tests.support.log_world import FOLDER, NOW, LogWorld, read_all, values_in

Known = dict[int, tuple[int, int, int]]


def known(log: UnifiedLog) -> Known:
    """Epoch, last sequence and last offset of each producer."""
    found = {}
    for producer_id, entry in log.producers.entries.items():
        state = unpack(entry)
        found[producer_id] = (state.producer_epoch, state.last_sequence, state.last_offset)
    return found


def send(log: UnifiedLog, producer_id: int, sequence: int, epoch: int = 0) -> tuple[int, int]:
    """Append one record; return its offset and the time in the answer."""
    batch = sent(b"%d/%d" % (producer_id, sequence), producer_id=producer_id, epoch=epoch,
                 sequence=sequence, timestamp=NOW + sequence)  # fmt: skip
    appended = log.append_as_leader(batch, 0, NOW)
    log.update_high_watermark(log.log_end_offset)
    return appended.first_offset, appended.log_append_time_ms


def filled(world: LogWorld, **config: object) -> UnifiedLog:
    """Offsets 0 to 9 of the producers 1 and 2 in turn; a segment every four offsets."""
    log = world.open(**config)
    for number in range(10):
        if number in (4, 8):
            log.roll()
        send(log, 1 + number % 2, number // 2)
    return log


ALL: Known = {1: (0, 4, 8), 2: (0, 4, 9)}


def test_a_retry_is_answered_with_its_first_offset_and_not_appended() -> None:
    log = filled(LogWorld())
    assert send(log, 1, 4) == (8, NOW + 4)
    assert send(log, 2, 1) == (3, NOW + 1)
    assert log.log_end_offset == 10
    with pytest.raises(OutOfOrderSequenceNumberError):
        send(log, 1, 6)
    with pytest.raises(InvalidProducerEpochError):
        send(log, 1, 0, epoch=1), send(log, 1, 5)
    assert known(log) == {1: (1, 0, 10), 2: (0, 4, 9)}


def test_a_retry_of_several_batches_is_one() -> None:
    log = LogWorld().open()
    share = sent(b"a", b"b") + sent(b"c", sequence=2)
    first = log.append_as_leader(share, 0, NOW)
    assert log.append_as_leader(share, 0, NOW)[:2] == first[:2] == (0, 2)
    assert values_in(read_all(log)) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("is_reopened", [False, True])
def test_a_retry_of_more_batches_than_are_kept_has_its_first_offset(is_reopened: bool) -> None:
    """After a start a snapshot has the last batch of a producer only."""
    world = LogWorld()
    log = world.open()
    share = b"".join(sent(b"%d" % number, sequence=number) for number in range(8))
    for _ in range(2):
        assert log.append_as_leader(share, 0, NOW)[:2] == (0, 7)
        log = world.reopen_clean(log) if is_reopened else log


@pytest.mark.parametrize("is_reopened", [False, True])
def test_no_first_offset_is_made_up_for_batches_that_lie_apart(is_reopened: bool) -> None:
    """The leader that took all eight died when three were replicated."""
    world = LogWorld()
    log = world.open()
    eight = [sent(b"%d" % number, sequence=number) for number in range(8)]
    log.append_as_leader(b"".join(eight[:3]), 0, NOW)
    log.append_as_leader(sent(b"another's", producer_id=2), 0, NOW)
    for _ in range(3):
        assert log.append_as_leader(b"".join(eight), 0, NOW)[:2] == (-1, 8)
        log = world.reopen_clean(log) if is_reopened else log
    assert log.log_end_offset == 9


def test_the_first_offset_of_a_share_that_lies_apart_is_not_guessed() -> None:
    """A retry appended the last batch of three, after another producer's record."""
    log = LogWorld().open()
    first, second, third = sent(b"a", b"b"), sent(b"c", sequence=2), sent(b"d", b"e", sequence=3)
    log.append_as_leader(first + second, 0, NOW)
    log.append_as_leader(sent(b"another's", producer_id=2), 0, NOW)
    share = first + second + third
    for _ in range(2):
        assert log.append_as_leader(share, 0, NOW)[:2] == (-1, 5)
    log.append_as_leader(sent(b"f", sequence=5), 0, NOW)
    assert log.append_as_leader(share, 0, NOW)[:2] == (-1, 5), "what came after it is not of it"
    assert log.append_as_leader(third, 0, NOW)[:2] == (4, 5)
    assert log.append_as_leader(first + second, 0, NOW)[:2] == (0, 2)


def test_other_records_under_the_sequences_of_stored_ones_are_no_retry() -> None:
    world = LogWorld()
    log = world.open()
    mine, others = sent(b"mine"), sent(b"other")
    assert log.append_as_leader(mine, 0, NOW).first_offset == 0
    for again in (False, True):
        log = world.reopen_clean(log) if again else log
        for share in (others, others + sent(b"c", sequence=1)):
            with pytest.raises(OutOfOrderSequenceNumberError, match="another producer"):
                log.append_as_leader(share, 0, NOW)
        assert log.append_as_leader(mine, 0, NOW).first_offset == 0
        assert values_in(read_all(log)) == [b"mine"]


@pytest.mark.parametrize(
    "settings", [{"message_timestamp_type": "LogAppendTime"}, {"compression_type": "gzip"}]
)
def test_a_retry_of_what_the_topic_changed_is_one(settings: dict[str, Any]) -> None:
    log = LogWorld().open(**settings)
    assert log.append_as_leader(sent(b"a" * 99), 0, NOW + 5).first_offset == 0
    assert log.append_as_leader(sent(b"a" * 99), 0, NOW + 9).first_offset == 0
    assert log.log_end_offset == 1


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"max_message_bytes": 60}, MessageTooLargeError),
        ({"segment_bytes": 150}, RecordListTooLargeError),
        ({"message_timestamp_before_max_ms": 1}, InvalidTimestampError),
        ({"cleanup_policy": "compact"}, InvalidRecordError),
    ],
)
def test_a_retry_is_recognized_under_settings_that_refuse_its_batches(
    settings: dict[str, Any], error: type[KafkaError]
) -> None:
    log = LogWorld().open()
    share = [sent(b"%d" % n, sequence=n, timestamp=NOW) for n in range(4)]
    log.append_as_leader(b"".join(share[:3]), 0, NOW)
    log.config = replace(log.config, **settings)
    assert log.append_as_leader(b"".join(share[:3]), 0, NOW + 10)[:2] == (0, 2)
    more = [sent(b"x", sequence=n, timestamp=NOW) for n in range(4, 7)]
    with pytest.raises(error):
        log.append_as_leader(b"".join([*share, *more]), 0, NOW + 10)
    assert log.log_end_offset == 3


@pytest.mark.parametrize(("others", "first_offset"), [(0, 0), (1, -1)])
def test_the_rest_of_a_share_is_appended_by_the_next_leader(others: int, first_offset: int) -> None:
    share = [sent(b"a", b"b"), sent(b"c", sequence=2), sent(b"d", sequence=3)]
    follower = LogWorld().open()
    follower.append_as_follower(share[0] + (2).to_bytes(8, "big") + share[1][8:])
    for number in range(others):
        send(follower, 2, number)
    answer = follower.append_as_leader(b"".join(share), 1, NOW)
    assert (answer.first_offset, answer.last_offset) == (first_offset, 3 + others)
    assert [value for value in values_in(read_all(follower)) if value != b"2/0"] == [
        b"a",
        b"b",
        b"c",
        b"d",
    ]


def test_what_the_disk_refuses_is_not_noted() -> None:
    disk = MemoryDisk()
    log = filled(LogWorld(disk=disk))
    disk.free_bytes = 10
    with pytest.raises(KafkaStorageError):
        send(log, 1, 5)
    assert known(log) == ALL


def test_a_follower_knows_what_its_leader_knows() -> None:
    leader, world = filled(LogWorld()), LogWorld()
    follower = world.open()
    follower.append_as_follower(read_all(leader))
    assert follower.producers.entries == leader.producers.entries
    assert send(follower, 2, 3) == (7, NOW + 3)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_start_finds_what_was_known(is_clean: bool) -> None:
    world = LogWorld()
    log = filled(world)
    assert log.producers.snapshot_offsets == [4, 8]
    log = world.reopen_clean(log) if is_clean else world.open()
    assert log.producers.snapshot_offsets == ([4, 8, 10] if is_clean else [4, 8])
    assert known(log) == ALL
    assert send(log, 1, 4) == (8, NOW + 4)
    assert send(log, 1, 5) == (10, -1)


def test_a_snapshot_has_only_the_last_batch_of_each_producer() -> None:
    world = LogWorld()
    log = world.reopen_clean(filled(world))
    with pytest.raises(OutOfOrderSequenceNumberError):
        send(log, 1, 3)


@pytest.mark.parametrize("damage", [b"", b"\0" * 10, None, b"nonsense"])
def test_a_damaged_snapshot_is_removed_and_an_older_one_used(damage: bytes | None) -> None:
    world = LogWorld()
    log = filled(world)
    log.flush()
    log.close()
    path = f"{FOLDER}/{name_of(10)}"
    data = world.disk.read_file(path)
    torn = data[: len(data) // 2] if damage is None else damage
    world.disk.write_file(path, torn)
    log = world.open(LogCheckpoint(10, 0, 10, is_clean=True))
    assert known(log) == ALL and log.producers.snapshot_offsets == [4, 8]
    assert send(log, 1, 3) == (6, NOW + 3), "read from the log, which knows more"


def test_every_snapshot_is_damaged() -> None:
    world = LogWorld()
    log = filled(world)
    log.flush()
    log.close()
    for offset in (4, 8, 10):
        world.disk.write_file(f"{FOLDER}/{name_of(offset)}", b"nonsense")
    log = world.open(LogCheckpoint(10, 0, 10, is_clean=True))
    assert known(log) == ALL and log.producers.snapshot_offsets == []


def test_a_snapshot_newer_than_the_log_is_removed() -> None:
    world = LogWorld()
    filled(world)
    entry = next(iter(decode_snapshot(world.disk.read_file(f"{FOLDER}/{name_of(8)}")).values()))
    world.disk.write_file(f"{FOLDER}/{name_of(11)}", encode_snapshot([entry]))
    log = world.open()
    assert known(log) == ALL and log.producers.snapshot_offsets == [4, 8]


def test_a_log_of_a_time_without_producers_is_not_read() -> None:
    world = LogWorld()
    log = filled(world)
    log.flush()
    log.close()
    for name in world.names():
        if name.endswith(".snapshot"):
            world.disk.remove(f"{FOLDER}/{name}")
    assert known(world.open(LogCheckpoint(10, 0, 10, is_clean=True))) == {}


@pytest.mark.parametrize("end", range(10))
def test_a_truncation_forgets_what_it_removes(end: int) -> None:
    world = LogWorld()
    log = filled(world)
    log.truncate_to(end)
    expected = {}
    for number in range(end):
        expected[1 + number % 2] = (0, number // 2, number)
    assert known(log) == expected
    assert all(offset <= end for offset in log.producers.snapshot_offsets)
    assert send(log, 1 + end % 2, end // 2) == (end, -1)
    expected[1 + end % 2] = (0, end // 2, end)
    assert known(world.open()) == expected, "and no snapshot brings it back"


@pytest.mark.parametrize("seed", range(20))
def test_no_snapshot_outlives_the_records_in_a_power_loss(seed: int) -> None:
    disk = MemoryDisk(seed)
    world = LogWorld(disk=disk)
    log = filled(world)
    log.flush()
    log.truncate_to(5)
    for number in range(6):
        send(log, 3, number)
        if number == 2:
            log.roll()
    log.flush()
    disk.crash(keep_unflushed=False)
    log = world.open(LogCheckpoint(log.recovery_point))
    assert known(log) == {1: (0, 2, 4), 2: (0, 1, 3), 3: (0, 5, 10)}


def test_a_log_that_begins_at_another_offset_knows_no_producer() -> None:
    world = LogWorld()
    log = filled(world)
    log.truncate_fully_and_start_at(100)
    assert known(log) == {} and log.producers.snapshot_offsets == []
    assert known(world.open(LogCheckpoint(100, 100, 100))) == {}


def test_deleted_records_do_not_take_their_producer_along() -> None:
    world = LogWorld()
    log = filled(world, retention_bytes=0)
    for _ in range(2):
        send(log, 2, log.log_end_offset - 5)
    assert log.delete_old_segments(NOW) == 3
    assert log.log_start_offset == 12 and log.producers.snapshot_offsets == [12]
    assert known(log)[1] == (0, 4, 8)
    again = world.reopen_clean(log)
    assert known(again)[1] == (0, 4, 8)
    assert send(again, 1, 4) == (8, NOW + 4)
    assert send(again, 1, 5) == (12, -1)


def test_silent_producers_are_forgotten() -> None:
    log = filled(LogWorld())
    send(log, 2, 5)
    assert [log.producers.expire([1, 2, 3], NOW + 1005, 1001) for _ in range(2)] == [0, 1]
    assert list(known(log)) == [2]
    assert send(log, 1, 77) == (11, -1), "any sequence is accepted then"


def test_a_producer_that_copies_old_records_is_not_forgotten_while_it_writes() -> None:
    log, years_later = filled(LogWorld()), NOW + 10**11
    for number in range(5, 8):
        offset, _ = send(log, 1, number)
        log.producers.expire([1, 2], years_later, 1000)
        assert send(log, 1, number)[0] == offset, "the retry is recognized"
    assert list(known(log)) == [1]
    log.producers.expire([1], years_later, 1000)
    assert known(log) == {}


def test_a_marker_is_noted() -> None:
    log = LogWorld().open()
    log.append_as_follower(
        sent(b"a", producer_id=7, attributes=MARKER & 16)
        + stamped(marker_batch(7, 1, False, 0, NOW), 1)
    )
    assert known(log) == {7: (1, -1, -1)}


def stamped(batch: bytes, offset: int) -> bytes:
    return offset.to_bytes(8, "big") + batch[8:]


class SlowHost(LogHost):
    """Writes a snapshot in two steps, as the broker does; a test comes between."""

    def __init__(self) -> None:
        self.written: list[PendingSnapshot] = []

    def rolled(self, log: HostedLog) -> None:
        for snapshot in log.producers.take_pending():
            log.producers.write_aside(snapshot)
            self.written.append(snapshot)


class IdleHost(LogHost):
    """Writes snapshots when a test does."""

    def rolled(self, log: HostedLog) -> None:
        pass


def test_a_snapshot_has_nothing_of_what_is_appended_before_it_is_written() -> None:
    """After a truncation to its offset, such a batch would be taken for a retry, and be lost."""
    log = LogWorld(host=IdleHost()).open()
    for number in range(4):
        send(log, 1, number)
    log.roll()
    assert send(log, 2, 0)[0] == 4
    for snapshot in log.producers.take_pending():
        log.producers.write_aside(snapshot)
        log.producers.put_in_place(snapshot)
    log.truncate_to(4)
    assert known(log) == {1: (0, 3, 3)}
    assert send(log, 2, 0)[0] == 4
    assert log.log_end_offset == 5


@pytest.mark.parametrize(("end", "expected"), [(9, [4, 8]), (8, [4, 8]), (7, [4]), (3, [])])
def test_a_snapshot_that_is_being_written_when_the_log_is_truncated(
    end: int, expected: list[int]
) -> None:
    host = SlowHost()
    world = LogWorld(host=host)
    log = filled(world)
    assert log.producers.snapshot_offsets == []
    log.truncate_to(end)
    for snapshot in host.written:
        log.producers.put_in_place(snapshot)
    assert log.producers.snapshot_offsets == expected
    assert not [name for name in world.names() if name.endswith(".tmp")]
    assert [int(n[:20]) for n in world.names() if n.endswith(".snapshot")] == expected


def test_a_later_truncation_does_not_bring_an_abandoned_snapshot_back() -> None:
    """It is still being written, and has records that went with the first truncation."""
    host = SlowHost()
    log = LogWorld(host=host).open()
    for number in range(8):
        send(log, 1, number)
    log.roll()
    log.truncate_to(3)
    for number in range(10):
        send(log, 2, number)
    log.truncate_to(9)
    for snapshot in host.written:
        log.producers.put_in_place(snapshot)
    log.truncate_to(8)
    assert known(log) == {1: (0, 2, 2), 2: (0, 4, 7)}


async def test_the_log_manager_forgets_silent_producers_and_keeps_the_others() -> None:
    world = ManagerWorld({"producer.id.expiration.ms": "1000"})
    manager = await world.start()
    log = await world.open(manager)
    now = world.clock.wall_ms()
    for producer_id in range(2_500):
        age = 1_000 if producer_id % 2 else 0
        batch = sent(b"a", producer_id=producer_id, timestamp=now - age)
        log.append_as_leader(batch, 0, now)
    for _ in range(2):
        await manager._periodic.expire_producers()
    assert list(log.producers.entries) == list(range(0, 2_500, 2))
    await manager.stop()


async def test_the_log_manager_forgets_verifications_that_came_to_no_append() -> None:
    world = ManagerWorld({"producer.id.expiration.ms": "1000"})
    manager = await world.start()
    verifications = (await world.open(manager)).producers.verifications
    guards = {}
    for producer_id in (1, 2):
        guards[producer_id] = verifications.begin(producer_id, 0, 5, world.clock.wall_ms())
        world.clock.now_ms += 600
    await manager._periodic.expire_producers()
    assert not verifications.holds(1, guards[1]) and verifications.holds(2, guards[2])
    await manager.stop()
