"""Barnabas's record batches and Kafka's: each side reads the other's, with every codec.

The harness itself is tested on planted faults, because a check that never finds any proves nothing.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from barnabas_broker.config import LogConfig
from barnabas_broker.log.validation import check_produced, verified
from barnabas_common.errors import KafkaError
from barnabas_common.record.batch import batches, check_crc, stamp
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.reader import records_from

from tests.kafka_tools.harness import dump_log_segments, read_leader_epochs
from tests.kafka_tools.kafka_records import (
    CODECS,
    RECORDS,
    RECORDS_PER_BATCH,
    RECORDS_PER_SEGMENT,
    Expected,
)
from tests.support.log_world import NOW
from tests.support.mutants import mutants

pytestmark = pytest.mark.kafka

SEGMENT = "00000000000000000000"


def segment_of(codec: str) -> str:
    """Return the name of the log file that Kafka wrote with this codec."""
    return f"{CODECS.index(codec) * RECORDS_PER_SEGMENT:020}.log"


@pytest.mark.parametrize("codec", CODECS)
def test_batches_written_by_kafka_are_read_record_by_record(kafka_log: Path, codec: str) -> None:
    data = (kafka_log / segment_of(codec)).read_bytes()
    found = list(batches(data))
    assert len(found) == RECORDS_PER_SEGMENT // RECORDS_PER_BATCH
    for position, header in found:
        check_crc(data, position, header)
        assert header.compression == CODECS.index(codec)
        assert header.partition_leader_epoch == CODECS.index(codec)
    start = CODECS.index(codec) * RECORDS_PER_SEGMENT
    records = list(records_from(data, 0))
    assert [record.offset for record in records] == list(range(start, start + RECORDS_PER_SEGMENT))
    for record in records:
        expected = Expected(record.offset)
        assert record.timestamp == expected.timestamp
        assert record.key == expected.key
        assert record.value == expected.value
        assert list(record.headers) == expected.headers


def test_kafka_reads_the_records_of_batches_written_here(tmp_path: Path) -> None:
    log = bytearray()
    for number in range(RECORDS // RECORDS_PER_BATCH):
        first = number * RECORDS_PER_BATCH
        builder = BatchBuilder(CODECS[number % len(CODECS)])
        for offset in range(first, first + RECORDS_PER_BATCH):
            record = Expected(offset)
            builder.append(record.timestamp, record.key, record.value, record.headers)
        batch = builder.build()
        log += stamp(first, number, len(batch) - 12) + batch[16:]
    path = tmp_path / f"{SEGMENT}.log"
    path.write_bytes(log)

    dump = dump_log_segments([path], "--print-data-log")

    assert dump.faults == []
    assert [int(batch["partitionLeaderEpoch"]) for batch in dump.batches] == list(
        range(RECORDS // RECORDS_PER_BATCH)
    )
    assert [batch["compresscodec"] for batch in dump.batches[:5]] == list(CODECS)
    assert [int(record["offset"]) for record in dump.records] == list(range(RECORDS))
    for printed in dump.records:
        record = Expected(int(printed["offset"]))
        assert int(printed["CreateTime"]) == record.timestamp
        assert int(printed["keySize"]) == (-1 if record.key is None else len(record.key))
        assert int(printed["valueSize"]) == (-1 if record.value is None else len(record.value))
        assert printed["headerKeys"] == ("[number]" if record.headers else "[]")


def test_kafka_finds_no_fault_in_its_own_files(kafka_log: Path) -> None:
    files = sorted(kafka_log.glob("0*.*"))
    dump = dump_log_segments(files)
    assert dump.faults == []
    assert len(dump.batches) == RECORDS // RECORDS_PER_BATCH
    assert dump.offset_entries
    assert dump.time_entries
    assert dump_log_segments(sorted(kafka_log.glob("0*index")), "--index-sanity-check").faults == []
    assert read_leader_epochs(kafka_log) == [
        (epoch, epoch * RECORDS_PER_SEGMENT) for epoch in range(len(CODECS))
    ]


def flip_a_byte(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0xFF
    path.write_bytes(content)


def cut(path: Path, position: int) -> None:
    path.write_bytes(path.read_bytes()[:position])


@pytest.mark.parametrize(
    ("suffix", "plant", "position"),
    [
        pytest.param("log", flip_a_byte, 300, id="a flipped byte in a record"),
        pytest.param("log", flip_a_byte, 18, id="a flipped byte in a checksum"),
        pytest.param("log", cut, 1000, id="a torn batch"),
        pytest.param("index", flip_a_byte, 7, id="a wrong position in the offset index"),
        pytest.param("index", flip_a_byte, 3, id="a wrong offset in the offset index"),
        pytest.param("timeindex", flip_a_byte, 7, id="a wrong timestamp in the time index"),
    ],
)
def test_a_planted_fault_is_found(
    kafka_log: Path,
    tmp_path: Path,
    suffix: str,
    plant: Callable[[Path, int], None],
    position: int,
) -> None:
    copy = tmp_path / "planted-0"
    shutil.copytree(kafka_log, copy)
    path = copy / f"{SEGMENT}.{suffix}"
    plant(path, position)
    assert dump_log_segments([path]).faults


def test_kafka_reads_to_its_end_whatever_passes_the_exact_validation(tmp_path: Path) -> None:
    """Its dump stops at the first malformed record, so one segment holds all."""
    log, offset = bytearray(), 0
    for what, mutant in mutants(NOW):
        if what == "header's name is 0c":
            continue  # a form feed, which the dump prints as it is
        try:
            config = LogConfig(record_validation="exact")
            (checked,) = check_produced(verified(mutant), config, NOW)
        except KafkaError:
            continue
        log += stamp(offset, 0, checked.header.batch_length) + checked.data[16:]
        offset += checked.header.record_count
    path = tmp_path / f"{SEGMENT}.log"
    path.write_bytes(log)

    dump = dump_log_segments([path])

    assert dump.faults == []
    assert [int(record["offset"]) for record in dump.records] == list(range(offset))
