"""How a pass treats producers' states, markers and aborted records."""

import struct

import pytest
from barnabas_broker.config import keys
from barnabas_broker.log.index.transaction_index import AbortedTxn
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.record.batch import (
    CONTROL,
    TRANSACTIONAL,
    batches,
    pack_header,
    parse_header,
    seal,
)

from tests.support import compacted
from tests.support.compacted import Pair, compact, keyed, records_in
from tests.support.log_manager_world import ManagerWorld
from tests.support.log_transactions import indexed
from tests.support.log_world import NOW, read_all

ABORT, COMMIT = struct.pack(">hh", 0, 0), struct.pack(">hh", 0, 1)
RETENTION_MS = 1000
OUT_OF_USE = NOW - keys.PRODUCER_ID_EXPIRATION_MS.default - 1


@pytest.fixture
def world() -> ManagerWorld:
    return ManagerWorld({"log.cleaner.enable": "false", "log.segment.delete.delay.ms": "0"})


async def opened(world: ManagerWorld) -> tuple[LogManager, UnifiedLog]:
    manager = await world.start()
    retention = str(RETENTION_MS)
    return manager, await world.open(
        manager, cleanup_policy="compact", delete_retention_ms=retention
    )


def append(
    log: UnifiedLog,
    producer_id: int,
    *pairs: Pair,
    attributes: int = TRANSACTIONAL,
    timestamp: int = OUT_OF_USE,
    sequence: int = 0,
) -> None:
    """Append a producer's batch, as a follower gets it from its leader."""
    plain = bytearray(keyed(*pairs, timestamp=timestamp))
    header = parse_header(plain)._replace(
        base_offset=log.log_end_offset,
        partition_leader_epoch=0,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )
    plain[:61] = pack_header(header)
    seal(plain)
    log.append_as_follower(plain)
    log.update_high_watermark(log.log_end_offset)


def end(log: UnifiedLog, producer_id: int, marker: bytes, timestamp: int = OUT_OF_USE) -> None:
    attributes = TRANSACTIONAL | CONTROL
    append(log, producer_id, (marker, b"\0" * 6), attributes=attributes, timestamp=timestamp)


def seal_log(log: UnifiedLog) -> None:
    """Seal the log after a last batch that always stays."""
    append(log, -1, (b"last %d" % log.log_end_offset, b""), attributes=0)
    compacted.seal(log)


def headers(log: UnifiedLog) -> dict[int, int]:
    """Return the number of records of each batch, by its first offset."""
    return {h.base_offset: h.record_count for _, h in batches(read_all(log))}


async def test_aborted_records_supersede_nothing_and_go(world: ManagerWorld) -> None:
    manager, log = await opened(world)
    append(log, 1, (b"a", b"committed"))
    append(log, 2, (b"a", b"aborted"))
    end(log, 1, COMMIT)
    end(log, 2, ABORT)
    seal_log(log)
    await compact(manager, log, world.passes)
    assert [one for one in records_in(log) if one[1] == b"a"] == [(0, b"a", b"committed")]
    assert set(headers(log)) == {0, 2, 3, 4}, "both markers stay"


async def test_the_last_batch_of_a_producer_is_one_that_cannot_be_truncated(
    world: ManagerWorld,
) -> None:
    """If the batch above the high watermark goes, the one before carries the last sequence."""
    manager, log = await opened(world)
    append(log, 7, (b"a", b"1"), attributes=0, timestamp=NOW)
    append(log, -1, (b"a", b"2"), attributes=0)
    seal_log(log)
    committed = log.high_watermark
    append(log, 7, (b"b", b"3"), attributes=0, timestamp=NOW, sequence=1)
    log.update_high_watermark(committed)
    await compact(manager, log, world.passes)
    assert headers(log)[0] == 0, "its record is superseded, its sequence is not"
    log.update_high_watermark(log.log_end_offset)
    seal_log(log)
    await compact(manager, log, world.passes)
    assert 0 not in headers(log)


async def test_a_marker_goes_after_its_records_in_two_phases(world: ManagerWorld) -> None:
    manager, log = await opened(world)
    append(log, 1, (b"a", b"1"))
    end(log, 1, COMMIT)
    append(log, -1, (b"a", b"2"), attributes=0)
    seal_log(log)
    await compact(manager, log, world.passes)
    assert set(headers(log)) == {1, 2, 3}, "the records are gone, the marker was not ready"
    seal_log(log)
    await compact(manager, log, world.passes)
    marker = next(h for _, h in batches(read_all(log)) if h.is_control)
    assert marker.delete_horizon_ms == NOW + RETENTION_MS
    world.clock.now_ms += RETENTION_MS
    seal_log(log)
    await compact(manager, log, world.passes)
    assert 1 not in headers(log)


async def test_a_marker_stays_with_its_records(world: ManagerWorld) -> None:
    manager, log = await opened(world)
    append(log, 1, (b"a", b"1"))
    end(log, 1, COMMIT)
    for _ in range(3):
        world.clock.now_ms += RETENTION_MS
        seal_log(log)
        await compact(manager, log, world.passes)
    assert {0, 1} <= set(headers(log))


async def test_the_last_batch_of_an_active_producer_stays_without_records(
    world: ManagerWorld,
) -> None:
    manager, log = await opened(world)
    append(log, 7, (b"a", b"1"), attributes=0, timestamp=NOW, sequence=0)
    append(log, 7, (b"a", b"2"), attributes=0, timestamp=NOW, sequence=1)
    append(log, 8, (b"a", b"3"), attributes=0, timestamp=OUT_OF_USE)
    append(log, -1, (b"a", b"4"), attributes=0)
    seal_log(log)
    await compact(manager, log, world.passes)
    assert headers(log) == {1: 0, 3: 1, 4: 1}
    kept = next(batches(read_all(log)))[1]
    assert (kept.producer_id, kept.base_sequence, kept.max_timestamp) == (7, 1, NOW)


async def test_an_open_transaction_ends_the_pass_before_its_segment(world: ManagerWorld) -> None:
    manager, log = await opened(world)
    append(log, -1, (b"a", b"1"), attributes=0)
    append(log, -1, (b"a", b"2"), attributes=0)
    log.roll()
    append(log, 1, (b"a", b"open"))
    log.roll()
    append(log, -1, (b"a", b"3"), attributes=0)
    seal_log(log)
    report = await compact(manager, log, world.passes)
    assert report.end_offset == 2
    assert [value for _, key, value in records_in(log) if key == b"a"] == [b"2", b"open", b"3"]
    assert manager.cleaner.dirty(log).cleanable_bytes == 0


async def test_the_index_keeps_the_aborted_transactions_whose_markers_stay(
    world: ManagerWorld,
) -> None:
    manager, log = await opened(world)
    append(log, 1, (b"a", b"1"))
    append(log, 2, (b"a", b"2"))
    log.roll()
    end(log, 1, ABORT)
    seal_log(log)
    end(log, 2, ABORT)
    before = [AbortedTxn(1, 0, 2, 1), AbortedTxn(2, 1, 4, 5)]
    assert indexed(log) == before
    seal_log(log)
    for _ in range(2):
        await compact(manager, log, world.passes)
        assert indexed(log) == before
        seal_log(log)
    world.clock.now_ms += RETENTION_MS
    await compact(manager, log, world.passes)
    assert not any(2 in h or 4 in h for h in [headers(log)])
    assert indexed(log) == []


async def test_a_crash_does_not_open_a_transaction_whose_marker_is_gone(
    world: ManagerWorld,
) -> None:
    """Segment 2 begins within the transaction; a start after a crash reads it again."""
    topic = {"cleanup_policy": "compact", "delete_retention_ms": "0", "segment_bytes": "600"}
    manager = await world.start()
    log = await world.open(manager, **topic)
    append(log, -1, (b"big", b"x" * 400), attributes=0)
    append(log, 1, (b"a", b"1"))
    log.roll()
    assert log.active_segment_offset == 2
    end(log, 1, COMMIT)
    append(log, -1, (b"a", b"2"), attributes=0)
    for _ in range(4):
        seal_log(log)
        await manager.cleaner.start_over(log)
        await compact(manager, log, world.passes)
    assert not {1, 2} & set(headers(log)), "the transaction is gone"
    assert log.segment_offsets[:2] == [0, 2]
    await manager.cleaner.close()
    world.disk.crash(keep_unflushed=True)
    manager = await world.start()
    log = await world.open(manager, **topic)
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == log.log_end_offset
