"""The transactions of a log: what is accepted, what is stable, and what is kept of them."""

from collections.abc import Callable
from typing import Any

import pytest
from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_broker.log.index.index_file import EntryAt
from barnabas_broker.log.index.transaction_index import AbortedTxn, TransactionIndex
from barnabas_broker.log.producers.producer_state import unpack
from barnabas_broker.log.producers.verification import NOT_NEEDED, Verifications
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTxnStateError,
    OutOfOrderSequenceNumberError,
    TransactionCoordinatorFencedError,
)
from barnabas_common.record.batch import batches, parse_header
from barnabas_common.record.transactional import marker_batch, marker_in, transactional_batch
from barnabas_simulator.disk import MemoryDisk

from tests.support.idempotent import sent
from tests.support.log_transactions import Writer, commit_all, indexed
from tests.support.log_world import FOLDER, NOW, LogWorld, read_all

COORDINATOR = AppendOrigin.COORDINATOR


def stable(log: UnifiedLog) -> int:
    commit_all(log)
    return log.last_stable_offset


# ---- what is accepted


def test_a_later_batch_does_not_begin_a_transaction_whose_first_one_waits_too() -> None:
    """The coordinator's answer for the later one may come first."""
    verifications = Verifications()
    guard = verifications.begin(7, 0, 3, NOW)
    assert verifications.begin(7, 0, 8, NOW) is guard and guard.lowest_sequence == 3
    assert verifications.begin(7, 0, 1, NOW) is guard and guard.lowest_sequence == 1
    verifications.begin(7, 1, 5, NOW)
    assert (guard.producer_epoch, guard.lowest_sequence) == (1, 5), "a new epoch begins again"
    verifications.begin(7, 0, 0, NOW)
    assert (guard.producer_epoch, guard.lowest_sequence) == (1, 5)


def test_a_clients_control_batch_is_refused() -> None:
    log = LogWorld().open()
    with pytest.raises(InvalidRecordError, match="only brokers"):
        log.append_as_leader(marker_batch(1, 0, True, 0, NOW), 0, NOW, guard=NOT_NEEDED)
    assert log.log_end_offset == 0 and not log.producers.entries


def test_a_first_batch_needs_the_coordinators_word_and_later_ones_do_not() -> None:
    log = LogWorld().open()
    writer = Writer(log, 1)
    first = writer.batch(b"a")
    with pytest.raises(InvalidTxnStateError):
        log.append_as_leader(first, 0, NOW)
    guard = log.producers.verification_for(parse_header(first), NOW)
    assert log.append_as_leader(first, 0, NOW, guard=guard).first_offset == 0
    assert log.producers.verification_for(parse_header(writer.batch(b"b")), NOW) is None
    writer.sequence = 1
    assert writer.send(b"b", guard=None) == 1
    writer.end(commit=True)
    with pytest.raises(InvalidTxnStateError):
        writer.send(b"late", guard=None)


def test_a_marker_voids_the_coordinators_word() -> None:
    """The transaction was verified, then aborted; another began without the partition."""
    log = LogWorld().open()
    writer = Writer(log, 1)
    late = writer.batch(b"late")
    guard = log.producers.verification_for(parse_header(late), NOW)
    writer.end(commit=False)
    with pytest.raises(InvalidTxnStateError):
        log.append_as_leader(late, 0, NOW, guard=guard)
    log.producers.verification_for(parse_header(late), NOW)
    with pytest.raises(InvalidTxnStateError):
        log.append_as_leader(late, 0, NOW, guard=guard)
    assert stable(log) == log.log_end_offset == 1


def test_of_batches_that_wait_for_the_coordinator_the_first_is_first() -> None:
    log = LogWorld().open()
    writer = Writer(log, 1)
    first, second = writer.batch(b"a"), writer.batch(b"b")
    guards = [log.producers.verification_for(parse_header(one), NOW) for one in (second, first)]
    assert guards[0] is guards[1]
    with pytest.raises(OutOfOrderSequenceNumberError):
        log.append_as_leader(second, 0, NOW, guard=guards[0])
    assert log.append_as_leader(first, 0, NOW, guard=guards[1]).first_offset == 0
    assert log.append_as_leader(second, 0, NOW, guard=guards[0]).first_offset == 1


def test_waits_that_came_to_nothing_are_forgotten() -> None:
    log = LogWorld().open()
    batch = Writer(log, 1).batch(b"a")
    guard = log.producers.verification_for(parse_header(batch), NOW)
    log.producers.verifications.expire(NOW + 999, 1000)
    assert log.producers.verifications.holds(1, guard)
    log.producers.verifications.expire(NOW + 1000, 1000)
    assert not log.producers.verifications.holds(1, guard)


def test_a_batch_outside_the_open_transaction_is_refused() -> None:
    log = LogWorld().open()
    Writer(log, 1).send()
    with pytest.raises(InvalidTxnStateError):
        log.append_as_leader(sent(b"x", sequence=1), 0, NOW)
    mixed = Writer(log, 2).batch(b"a") + sent(b"b", producer_id=2, sequence=1)
    with pytest.raises(InvalidRecordError):
        log.append_as_leader(mixed, 0, NOW, guard=NOT_NEEDED)


def test_markers_are_fenced_by_both_epochs() -> None:
    log = LogWorld().open()
    writer = Writer(log, 1, epoch=3)
    writer.send()
    writer.end(commit=True, coordinator_epoch=7)
    assert unpack(log.producers.entries[1]).coordinator_epoch == 7
    end = log.log_end_offset
    with pytest.raises(TransactionCoordinatorFencedError):
        writer.end(commit=False, coordinator_epoch=6)
    writer.epoch = 2
    with pytest.raises(InvalidProducerEpochError):
        writer.end(commit=False, coordinator_epoch=8)
    with pytest.raises(InvalidProducerEpochError):
        writer.send()
    assert log.log_end_offset == end
    writer.epoch = 3
    assert writer.end(commit=True, coordinator_epoch=7) == end, "a repeated marker does no harm"


def test_a_marker_of_a_higher_epoch_fences_the_producer() -> None:
    log = LogWorld().open()
    writer = Writer(log, 1)
    writer.send()
    writer.epoch = 1
    writer.end(commit=False)
    writer.epoch = 0
    with pytest.raises(InvalidProducerEpochError):
        writer.send()
    assert stable(log) == 2


def test_coordinators_write_offsets_without_sequences() -> None:
    log = LogWorld().open(cleanup_policy="compact")
    batch = bytes(transactional_batch(1, 0, NOW, [(b"k", b"v"), (b"l", b"w")]))
    with pytest.raises(InvalidTxnStateError):
        log.append_as_leader(batch, 0, NOW, COORDINATOR)
    for first in (0, 2):
        answer = log.append_as_leader(batch, 0, NOW, COORDINATOR, NOT_NEEDED)
        assert answer.first_offset == first
    assert stable(log) == 0
    Writer(log, 1).end(commit=True)
    assert stable(log) == 5


def test_a_marker_keeps_its_bytes_whatever_the_codec_of_the_topic() -> None:
    log = LogWorld().open(compression_type="zstd", cleanup_policy="compact")
    writer = Writer(log, 1)
    writer.end(commit=True, coordinator_epoch=4)
    ((_, header),) = batches(read_all(log))
    assert header.is_control and header.compression == 0
    assert marker_in(read_all(log)) == (True, 4)


# ---- the last stable offset


def test_the_last_stable_offset_stands_at_the_earliest_open_transaction() -> None:
    log = LogWorld().open()
    one, two = Writer(log, 1), Writer(log, 2)
    assert log.append_as_leader(sent(b"x", producer_id=3), 0, NOW).first_offset == 0
    assert (one.send(b"a"), two.send(b"b"), one.send(b"c")) == (1, 2, 3)
    assert stable(log) == 1
    one.end(commit=True)
    assert stable(log) == 2
    assert one.send(b"d") == 5
    two.end(commit=False)
    assert stable(log) == 5
    one.end(commit=False)
    assert stable(log) == log.log_end_offset == 8


def test_a_marker_counts_when_it_is_committed() -> None:
    log = LogWorld().open()
    writer = Writer(log, 1)
    writer.send(b"a", b"b")
    log.update_high_watermark(2)
    marker = writer.end(commit=True)
    assert (marker, log.last_stable_offset) == (2, 0)
    log.update_high_watermark(2)
    assert log.last_stable_offset == 0
    assert log.maybe_increment_high_watermark(3)
    assert log.last_stable_offset == 3


def test_the_last_stable_offset_is_within_the_committed_log() -> None:
    log = LogWorld().open()
    writer = Writer(log, 1)
    log.append_as_leader(sent(b"x", b"y", producer_id=2), 0, NOW)
    writer.send()
    assert log.last_stable_offset == log.high_watermark == 0
    log.update_high_watermark(1)
    assert log.last_stable_offset == 1
    writer.send()
    commit_all(log)
    log.maybe_increment_log_start_offset(3)
    assert log.last_stable_offset == 3, "the transaction began below the start of the log"


# ---- what is kept


def history(log: UnifiedLog, pad: bytes = b"") -> list[AbortedTxn]:
    """Two aborted transactions that overlap, a committed one, one that stays open."""
    one, two, three = Writer(log, 1), Writer(log, 2), Writer(log, 3)
    one.send(b"a" + pad)  # 0
    two.send(b"b" + pad)  # 1
    one.end(commit=False)  # 2
    three.send(b"c" + pad)  # 3
    two.end(commit=False)  # 4
    three.end(commit=True)  # 5
    one.send(b"d" + pad)  # 6
    two.send(b"e" + pad)  # 7
    two.end(commit=True)  # 8
    commit_all(log)
    return [AbortedTxn(1, 0, 2, 1), AbortedTxn(2, 1, 4, 3)]


@pytest.mark.parametrize("segment_bytes", [1 << 20, 300])
def test_aborted_transactions_are_indexed_in_the_segments_of_their_markers(
    segment_bytes: int,
) -> None:
    world = LogWorld()
    log = world.open(segment_bytes=segment_bytes)
    expected = history(log, b"x" * 100)
    assert indexed(log) == expected
    for segment in log.segments():
        entries = segment.txn_index.entries()
        assert all(segment.base_offset <= one.last_offset < segment.next_offset for one in entries)
        sealed = segment is not log.segments()[-1]
        name = f"{segment.base_offset:020d}.txnindex"
        assert (name in world.names()) == (bool(entries) and sealed)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("segment_bytes", [1 << 20, 300])
def test_a_restart_knows_the_transactions(clean: bool, segment_bytes: int) -> None:
    world = LogWorld()
    log = world.open(segment_bytes=segment_bytes)
    expected = history(log, b"x" * 100)
    high_watermark = log.high_watermark
    if clean:
        log = world.reopen_clean(log)
    else:
        log = world.open(LogCheckpoint(high_watermark=high_watermark))
    assert indexed(log) == expected
    assert (log.high_watermark, log.last_stable_offset) == (9, 6)
    Writer(log, 1).end(commit=False)
    assert indexed(log) == [*expected, AbortedTxn(1, 6, 9, 10)]
    assert stable(log) == 10


def test_a_follower_knows_what_its_leader_knows() -> None:
    leader, follower = LogWorld().open(segment_bytes=300), LogWorld().open()
    expected = history(leader, b"x" * 100)
    follower.append_as_follower(read_all(leader))
    assert (indexed(follower), follower.last_stable_offset) == (expected, 0)
    follower.update_high_watermark(4)
    assert follower.last_stable_offset == 1, "the marker at 4 is not committed here"
    follower.update_high_watermark(9)
    assert follower.last_stable_offset == 6
    assert follower.producers.entries == leader.producers.entries


@pytest.mark.parametrize("segment_bytes", [1 << 20, 300])
@pytest.mark.parametrize("offset", range(10))
def test_a_truncated_log_knows_what_is_left(offset: int, segment_bytes: int) -> None:
    log = LogWorld().open(segment_bytes=segment_bytes)
    expected = history(log, b"x" * 100)
    log.truncate_to(offset)
    assert indexed(log) == [one for one in expected if one.last_offset < offset]
    open_from = {1: 0, 2: 0, 3: 1, 4: 1, 5: 3, 6: 6, 7: 6, 8: 6, 9: 6}
    assert stable(log) == open_from.get(offset, offset)
    copy = LogWorld().open()
    if offset:
        copy.append_as_follower(read_all(log))
    assert (stable(copy), indexed(copy)) == (stable(log), indexed(log))


def test_a_log_that_starts_again_has_no_transactions() -> None:
    world = LogWorld()
    log = world.open()
    history(log)
    log.truncate_fully_and_start_at(100)
    assert (stable(log), indexed(log)) == (100, [])
    log.append_as_leader(sent(b"later"), 0, NOW)
    assert stable(log) == 101, "the transaction that was open is forgotten"


def test_an_index_goes_with_its_segment() -> None:
    world = LogWorld()
    log = world.open(segment_bytes=300, retention_ms=1000)
    history(log, b"x" * 100)
    assert any(name.endswith(".txnindex") for name in world.names())
    world.clock.now_ms += 5000
    log.delete_old_segments(world.clock.now_ms)
    assert not any(".txnindex" in name for name in world.names())


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + data,
        lambda data: b"\0\1" + data[2:],
        lambda data: data[:18] + (1 << 40).to_bytes(8, "big") + data[26:],
        lambda data: data[:10] + (1 << 20).to_bytes(8, "big") + data[18:],
    ],
    ids=["torn", "twice", "version", "newer than the log", "backwards"],
)
@pytest.mark.parametrize("segment_bytes", [1 << 20, 300])
def test_an_index_that_cannot_be_the_logs_is_rebuilt(damage, segment_bytes: int) -> None:  # type: ignore[no-untyped-def]
    world = LogWorld()
    log = world.open(segment_bytes=segment_bytes)
    expected = history(log, b"x" * 100)
    log.flush()
    log.close()
    name = next(name for name in world.names() if name.endswith(".txnindex"))
    path = f"{FOLDER}/{name}"
    world.disk.write_file(path, damage(world.disk.read_file(path)))
    log = world.open(LogCheckpoint(9, 0, 9, is_clean=True))
    assert (indexed(log), log.last_stable_offset) == (expected, 6)
    log = world.reopen_clean(log)
    assert indexed(log) == expected


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [(0, 9, [1, 2]), (0, 1, [1]), (0, 2, [1, 2]), (2, 3, [1, 2]), (3, 4, [2]), (5, 9, [])],
)
@pytest.mark.parametrize("segment_bytes", [1 << 20, 300])
def test_a_reader_learns_of_the_transactions_in_what_it_reads(
    start: int, end: int, found: list[int], segment_bytes: int
) -> None:
    log = LogWorld().open(segment_bytes=segment_bytes)
    history(log, b"x" * 100)
    data = read_all(log)
    piece = b"".join(
        data[position : position + header.size]
        for position, header in batches(data)
        if start <= header.base_offset < end
    )
    assert [one.producer_id for one in log.aborted_transactions(start, piece)] == found
    assert log.aborted_transactions(start, b"") == []


def test_a_reader_far_behind_looks_at_few_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogWorld().open()
    writer = Writer(log, 7)
    for _ in range(500):
        writer.send(b"aborted")
        writer.end(commit=False)
    log.roll()
    commit_all(log)
    looked_at: list[int] = []
    with_entries = TransactionIndex._with_entries

    def counting(self: TransactionIndex, use: Callable[[EntryAt], Any]) -> Any:
        def note(entry_at: EntryAt) -> EntryAt:
            return lambda number: looked_at.append(number) or entry_at(number)  # type: ignore[func-returns-value]

        return with_entries(self, lambda entry_at: use(note(entry_at)))

    monkeypatch.setattr(TransactionIndex, "_with_entries", counting)
    records = log.read(100, 200, log.high_watermark)
    found = log.aborted_transactions(100, records)
    assert 1 <= len(found) <= 3
    assert len(looked_at) < 20


@pytest.mark.parametrize("seed", range(10))
def test_a_restart_after_a_power_loss_knows_what_was_flushed(seed: int) -> None:
    """The name of a new index file must be as durable as the segment that it belongs to."""
    disk = MemoryDisk(seed)
    world = LogWorld(disk=disk)
    log = world.open(segment_bytes=300)
    expected = history(log, b"x" * 100)
    log.flush()
    point = log.recovery_point
    assert point == 9
    disk.crash(keep_unflushed=False)
    log = world.open(LogCheckpoint(point, 0, 9))
    assert (indexed(log), log.last_stable_offset) == (expected, 6)
