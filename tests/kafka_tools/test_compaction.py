"""Segments that Barnabas compacts hold the same records as after Kafka's own cleaner."""

import asyncio
import random
import re
import shutil
from pathlib import Path

import pytest
from barnabas_broker.config import Config
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_common.record.batch import BatchHeader, batches
from barnabas_common.record.reader import read_batch
from barnabas_common.record.record import Record
from barnabas_common.runtime import Runtime, SystemClock, ThreadOffload, system_randomness
from barnabas_common.topic_partition import TopicPartition

from tests.kafka_tools.harness import compact_log, dump_log_segments
from tests.kafka_tools.kafka_records import CODECS
from tests.support.compacted import KeyedRecord, Pair, put, records_in
from tests.support.log_files import assert_sound, segments

pytestmark = pytest.mark.kafka

NAME = TopicPartition("written", 0)
SEGMENT_BYTES = 20_000
MAP_BYTES = 24 * 211
"""For 189 keys; there are 300, so that a pass cannot take all of the log."""


def settings(data: Path) -> Config:
    return Config(
        {
            "broker.id": "1",
            "log.dirs": str(data),
            "log.cleaner.enable": "false",
            "log.segment.bytes": str(SEGMENT_BYTES),
            "log.segment.delete.delay.ms": "0",
            "log.index.interval.bytes": "1000",
            "log.cleaner.delete.retention.ms": "0",
            "log.cleanup.policy": "compact",
        }
    )


def pairs(chance: random.Random) -> list[Pair]:
    return [
        (
            b"key-%d" % min(chance.randrange(300), chance.randrange(300)),
            None
            if chance.random() < 0.1
            else chance.randbytes(chance.randrange(30)).hex().encode(),
        )
        for _ in range(chance.randrange(1, 30))
    ]


async def with_manager(data: Path, passes: int, fill: random.Random | None = None) -> None:
    """Write a log, or run passes over the existing one; then shut down cleanly."""
    offload = ThreadOffload()
    runtime = Runtime(SystemClock(), system_randomness(), offload, None)  # type: ignore[arg-type]
    config = settings(data)
    manager = LogManager(config, runtime, PosixDisk())
    manager.lock_directories()
    await manager.start()
    log = await manager.get_or_create(NAME, None, config.log_config(), is_new=True)
    log.update_high_watermark(log.log_end_offset)
    if fill is not None:
        for number in range(400):
            put(log, *pairs(fill), epoch=number // 50, compression=CODECS[number % len(CODECS)])
        log.roll()
    await manager.flush(log)
    for _ in range(passes):
        await manager.cleaner.start_over(log)
        while manager.cleaner.dirty(log).cleanable_bytes:
            assert await manager.cleaner.clean(log)
        cleaned_at = runtime.clock.wall_ms()
        # Old segments are removed in the background; delete horizons of this pass are over later.
        async with asyncio.timeout(20):
            while [*data.glob("*/*.deleted")] or runtime.clock.wall_ms() == cleaned_at:
                await asyncio.sleep(0.001)
    await manager.stop()
    manager.unlock_directories()
    offload.close()


async def served(data: Path) -> list[KeyedRecord]:
    """Return what readers get from a log that Kafka compacted and closed."""
    (data / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":-1}')
    offload = ThreadOffload()
    runtime = Runtime(SystemClock(), system_randomness(), offload, None)  # type: ignore[arg-type]
    manager = LogManager(settings(data), runtime, PosixDisk())
    manager.lock_directories()
    await manager.start()
    log = manager.get(NAME)
    assert log is not None
    assert not log.cut_at_start
    records = records_in(log)
    await manager.stop()
    manager.unlock_directories()
    offload.close()
    return records


def content(folder: Path) -> tuple[list[BatchHeader], list[Record]]:
    headers, records = [], []
    for segment in segments(folder):
        data = segment.read_bytes()
        for position, header in batches(data):
            if header.record_count:
                headers.append(header)
                records += read_batch(data, position)
    return headers, records


def in_common(header: BatchHeader) -> tuple[int, ...]:
    """Return the header fields on which the two cleaners must agree.

    The bytes of compressed records differ.
    """
    return (
        header.base_offset,
        header.last_offset,
        header.partition_leader_epoch,
        header.record_count,
        header.max_timestamp,
        header.attributes,
    )


def with_values(records: list[Record]) -> list[Record]:
    """Return the records without tombstones, on which the two cleaners may differ.

    Compressed sizes differ, and with them the segments that are joined. If the map holds only a
    part of the log, this decides in which pass a tombstone gets its delete horizon.
    """
    return [record for record in records if record.value is not None]


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("map_bytes", [MAP_BYTES, 24 * 2003])
def test_what_is_left_is_what_kafka_leaves(
    tmp_path: Path, passes: int, map_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "barnabas_broker.log.manager.log_cleaner.slots_within", lambda *_: map_bytes // 24
    )
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    asyncio.run(with_manager(ours, 0, random.Random(passes)))
    shutil.copytree(ours, theirs)
    before = content(ours / str(NAME))
    asyncio.run(with_manager(ours, passes))
    compact_log(theirs / str(NAME), SEGMENT_BYTES, passes, map_bytes)
    our_headers, our_records = content(ours / str(NAME))
    their_headers, their_records = content(theirs / str(NAME))
    assert len(our_records) < len(before[1]) / 2
    if map_bytes > MAP_BYTES:
        assert our_records == their_records
        assert list(map(in_common, our_headers)) == list(map(in_common, their_headers))
    else:
        assert with_values(our_records) == with_values(their_records)
    assert asyncio.run(served(theirs)) == [(r.offset, r.key, r.value) for r in their_records]
    assert_sound(ours)
    dump = dump_log_segments(sorted((ours / str(NAME)).glob("0*.*")), "--print-data-log")
    # The tool lists gaps, which compaction must leave.
    gaps = re.compile(r"Non-consecutive offsets in .*|\d+ is followed by \d+")
    assert not [fault for fault in dump.faults if not gaps.fullmatch(fault.strip())]
    assert len(dump.records) == len(our_records)
