"""A whole partition log: Kafka's tools read Barnabas's without faults, and the reverse."""

import shutil
from pathlib import Path

import pytest
from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.log.log_context import LogContext, LogHost
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint, LogFolder
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.record.batch import batches
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.reader import records_from
from barnabas_common.record.record import Record
from barnabas_common.runtime import SystemClock, system_randomness
from barnabas_common.topic_partition import TopicPartition

from tests.kafka_tools.harness import Dump, dump_log_segments, read_leader_epochs
from tests.kafka_tools.kafka_records import (
    CODECS,
    RECORDS,
    RECORDS_PER_BATCH,
    RECORDS_PER_SEGMENT,
    START_MS,
    Expected,
)

pytestmark = pytest.mark.kafka

BATCHES = RECORDS // RECORDS_PER_BATCH
# Each epoch and the number of its first batch, with gaps as after leaders that wrote nothing.
EPOCHS = {0: 0, 3: 15, 4: 30, 9: 45, 10: 60, 11: 75, 20: 90}
SMALL = LogConfig(segment_bytes=8_000, index_interval_bytes=1000)


def open_log(directory: Path, config: LogConfig = SMALL, is_clean: bool = True) -> UnifiedLog:
    disk = PosixDisk()
    context = LogContext(disk, SystemClock(), system_randomness(), LogHost())
    folder = LogFolder(disk, str(directory), TopicPartition("written", 0), config)
    return UnifiedLog(context, folder, LogCheckpoint(is_clean=is_clean))


def batch(first_offset: int, codec: str) -> bytes:
    builder = BatchBuilder(codec)
    for offset in range(first_offset, first_offset + RECORDS_PER_BATCH):
        record = Expected(offset)
        builder.append(record.timestamp, record.key, record.value, record.headers)
    return builder.build()


def fill(log: UnifiedLog) -> None:
    """Append `RECORDS` records: batches of all codecs in turn, with new epochs as in `EPOCHS`."""
    epoch = -1
    starts = {first: epoch for epoch, first in EPOCHS.items()}
    for number in range(BATCHES):
        epoch = starts.get(number, epoch)
        data = batch(number * RECORDS_PER_BATCH, CODECS[number % len(CODECS)])
        log.append_as_leader(data, epoch, START_MS + RECORDS)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    folder = tmp_path / "written-0"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def our_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that Barnabas wrote and closed cleanly; tests must not change it."""
    folder = tmp_path_factory.mktemp("ours") / "written-0"
    folder.mkdir()
    log = open_log(folder)
    fill(log)
    log.flush()
    log.close()
    return folder


def files(directory: Path, suffix: str) -> list[Path]:
    found = sorted(directory.glob(f"0*.{suffix}"))
    assert found
    return found


def dump_all(directory: Path) -> Dump:
    """Dump every file with its records, and check the indexes as a starting broker does."""
    indexes = [*files(directory, "index"), *files(directory, "timeindex")]
    dump = dump_log_segments([*files(directory, "log"), *indexes], "--print-data-log")
    dump.faults += dump_log_segments(indexes, "--index-sanity-check").faults
    return dump


def assert_has_the_records(dump: Dump, count: int) -> None:
    assert [int(record["offset"]) for record in dump.records] == list(range(count))
    for printed in dump.records:
        expected = Expected(int(printed["offset"]))
        assert int(printed["CreateTime"]) == expected.timestamp
        assert int(printed["keySize"]) == (-1 if expected.key is None else len(expected.key))
        assert int(printed["valueSize"]) == (-1 if expected.value is None else len(expected.value))


def assert_expected(record: Record) -> None:
    expected = Expected(record.offset)
    assert (record.timestamp, record.key, record.value) == (
        expected.timestamp,
        expected.key,
        expected.value,
    )
    assert list(record.headers) == expected.headers


def read_all(log: UnifiedLog, offset: int = 0) -> list[Record]:
    records: list[Record] = []
    while data := log.read(offset, 5000, log.log_end_offset):
        records += records_from(data, offset)
        offset = records[-1].offset + 1
    return records


# Ours, read by Kafka


def test_kafka_finds_no_fault_in_a_log_written_here(our_log: Path) -> None:
    dump = dump_all(our_log)
    assert dump.faults == []
    assert len(files(our_log, "log")) > 3
    assert_has_the_records(dump, RECORDS)
    assert {found["compresscodec"] for found in dump.batches} == set(CODECS)
    starts: dict[int, int] = {}
    for found in dump.batches:
        starts.setdefault(int(found["partitionLeaderEpoch"]), int(found["baseOffset"]))
    assert starts == {epoch: first * RECORDS_PER_BATCH for epoch, first in EPOCHS.items()}


def test_every_index_entry_names_one_batch_by_its_last_offset_and_position(our_log: Path) -> None:
    for path in files(our_log, "log"):
        named = {(header.last_offset, position) for position, header in batches(path.read_bytes())}
        dump = dump_log_segments([path.with_suffix(".index"), path.with_suffix(".timeindex")])
        assert dump.faults == []
        assert dump.offset_entries
        assert set(dump.offset_entries) <= named
        assert dump.time_entries
        for timestamp, offset in dump.time_entries:
            assert timestamp == Expected(offset).timestamp


def test_kafka_reads_our_leader_epochs(our_log: Path) -> None:
    assert read_leader_epochs(our_log) == [
        (epoch, first * RECORDS_PER_BATCH) for epoch, first in EPOCHS.items()
    ]


def test_no_fault_in_a_log_that_is_still_open(directory: Path) -> None:
    log = open_log(directory)
    fill(log)
    log.flush()
    dump = dump_log_segments(files(directory, "log"), "--print-data-log")
    assert dump.faults == []
    assert_has_the_records(dump, RECORDS)
    sealed = [path.with_suffix(".index") for path in files(directory, "log")[:-1]]
    assert dump_log_segments(sealed).faults == []
    log.close()


def test_no_fault_after_a_crash_that_tore_the_last_batch(directory: Path) -> None:
    log = open_log(directory)
    fill(log)
    log.close()
    last = files(directory, "log")[-1]
    last.write_bytes(last.read_bytes()[:-7])
    for path in files(directory, "index"):
        path.unlink()
    recovered = open_log(directory, is_clean=False)
    assert recovered.log_end_offset == RECORDS - RECORDS_PER_BATCH
    data = batch(recovered.log_end_offset, "zstd")
    recovered.append_as_leader(data, 30, START_MS + RECORDS)
    recovered.flush()
    recovered.close()
    dump = dump_all(directory)
    assert dump.faults == []
    assert_has_the_records(dump, RECORDS)
    assert read_leader_epochs(directory)[-1] == (30, RECORDS - RECORDS_PER_BATCH)


def test_no_fault_after_truncation(directory: Path) -> None:
    log = open_log(directory)
    fill(log)
    kept = 430
    log.truncate_to(kept)
    for first in range(kept, kept + 100, RECORDS_PER_BATCH):
        log.append_as_leader(batch(first, "lz4"), 40, START_MS + RECORDS)
    log.flush()
    log.close()
    dump = dump_all(directory)
    assert dump.faults == []
    assert_has_the_records(dump, kept + 100)
    epochs = read_leader_epochs(directory)
    assert epochs[-1] == (40, kept)
    assert [epoch for epoch, _ in epochs] == [0, 3, 4, 40]


def test_no_fault_in_a_follower_s_copy(our_log: Path, directory: Path) -> None:
    leader, follower = open_log(our_log), open_log(directory)
    while data := leader.read(follower.log_end_offset, 8000, leader.log_end_offset):
        follower.append_as_follower(data)
    follower.flush()
    follower.close()
    leader.close()
    dump = dump_all(directory)
    assert dump.faults == []
    assert_has_the_records(dump, RECORDS)
    assert read_leader_epochs(directory) == read_leader_epochs(our_log)


def test_kafka_sees_the_time_of_append(directory: Path) -> None:
    config = LogConfig(message_timestamp_type="LogAppendTime")
    log = open_log(directory, config)
    for number, codec in enumerate(CODECS):
        log.append_as_leader(batch(number * RECORDS_PER_BATCH, codec), 0, START_MS + number)
    log.flush()
    log.close()
    dump = dump_all(directory)
    assert dump.faults == []
    assert [int(found["LogAppendTime"]) for found in dump.batches] == [
        START_MS + number for number in range(len(CODECS))
    ]


@pytest.mark.parametrize(
    ("suffix", "position"),
    [
        pytest.param("log", 400, id="a flipped byte in a record"),
        pytest.param("index", 15, id="a wrong position in an index"),
        pytest.param("timeindex", 7, id="a wrong timestamp in an index"),
    ],
)
def test_a_fault_planted_in_our_files_is_found(
    our_log: Path, tmp_path: Path, suffix: str, position: int
) -> None:
    copy = tmp_path / "written-0"
    shutil.copytree(our_log, copy)
    path = files(copy, suffix)[0]
    content = bytearray(path.read_bytes())
    content[position] ^= 0xFF
    path.write_bytes(content)
    assert dump_all(copy).faults


# Kafka's, read here


@pytest.mark.parametrize("is_clean", [True, False], ids=["closed in order", "after a crash"])
def test_a_log_written_by_kafka_loads_and_serves(
    kafka_log: Path, tmp_path: Path, is_clean: bool
) -> None:
    copy = tmp_path / "written-0"
    shutil.copytree(kafka_log, copy)
    log = open_log(copy, is_clean=is_clean)
    assert (log.log_start_offset, log.log_end_offset) == (0, RECORDS)
    assert log.segment_offsets == list(range(0, RECORDS, RECORDS_PER_SEGMENT))
    records = read_all(log)
    assert [record.offset for record in records] == list(range(RECORDS))
    for record in records:
        assert_expected(record)
        assert record.leader_epoch == Expected(record.offset).leader_epoch
    for offset in range(0, RECORDS, 37):
        first = next(records_from(log.read(offset, 1, RECORDS), offset))
        assert first.offset == offset
        found = log.offset_for_timestamp(START_MS + offset)
        assert found is not None
        assert (found.timestamp, found.offset) == (START_MS + offset, offset)
    for epoch in range(len(CODECS)):
        assert tuple(log.end_offset_for_epoch(epoch)) == (epoch, (epoch + 1) * RECORDS_PER_SEGMENT)
    log.close()


def test_a_log_begun_by_kafka_is_continued_here(kafka_log: Path, tmp_path: Path) -> None:
    copy = tmp_path / "written-0"
    shutil.copytree(kafka_log, copy)
    log = open_log(copy)
    for first in range(RECORDS, RECORDS + 500, RECORDS_PER_BATCH):
        log.append_as_leader(batch(first, "gzip"), 7, START_MS + RECORDS)
    log.flush()
    log.close()
    dump = dump_all(copy)
    assert dump.faults == []
    assert_has_the_records(dump, RECORDS + 500)
    assert read_leader_epochs(copy)[-1] == (7, RECORDS)


def test_indexes_rebuilt_here_equal_those_kafka_wrote(kafka_log: Path, tmp_path: Path) -> None:
    copy = tmp_path / "written-0"
    shutil.copytree(kafka_log, copy)
    indexes = [*files(copy, "index"), *files(copy, "timeindex")]
    written = {path.name: path.read_bytes() for path in indexes}
    for path in indexes:
        path.unlink()
    log = open_log(copy, is_clean=False)
    log.roll()
    log.close()
    assert {path.name: path.read_bytes() for path in indexes} == written
