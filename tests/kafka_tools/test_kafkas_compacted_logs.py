"""Logs that a real Kafka broker has written and compacted load and serve here."""

import asyncio
import shutil
from pathlib import Path

import pytest
from barnabas_broker.config import Config
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_common.record.batch import batches
from barnabas_common.runtime import Runtime, SystemClock, ThreadOffload, system_randomness
from barnabas_common.topic_partition import TopicPartition

from tests.kafka_tools.harness import Dump, dump_log_segments, run_java
from tests.kafka_tools.kafka_broker import KafkaBroker
from tests.support.compacted import KeyedRecord, newest, records_in
from tests.support.log_files import assert_sound

pytestmark = pytest.mark.kafka

WRITTEN = TopicPartition("written", 0)
OFFSETS = TopicPartition("__consumer_offsets", 0)
SETTINGS = {
    "log_cleaner_backoff_ms": "200",
    "log_cleaner_min_cleanable_ratio": "0.01",
    "log_cleaner_dedupe_buffer_size": "4000000",
    "offsets_topic_num_partitions": "1",
    "offsets_topic_replication_factor": "1",
    "offsets_topic_segment_bytes": "20000",
    "transaction_state_log_num_partitions": "1",
    "transaction_state_log_replication_factor": "1",
    "transaction_state_log_min_isr": "1",
}


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Its data directory after a clean shutdown, and the last value of each key that has one."""
    with KafkaBroker(tmp_path_factory.mktemp("kafka"), **SETTINGS) as broker:
        done = run_java("FillCompacted", broker.address, WRITTEN.topic)
        assert done.returncode == 0, done.stderr
        broker.wait_until_clean(str(WRITTEN), str(OFFSETS))
    return broker.data, dict(line.split() for line in done.stdout.splitlines())


async def served(data: Path, is_clean: bool) -> dict[TopicPartition, list[list[KeyedRecord]]]:
    """What readers get of each log: as Kafka left it, and after a pass of ours."""
    if not is_clean:
        (data / ".kafka_cleanshutdown").unlink()
    config = Config(
        {
            "broker.id": "1",
            "log.dirs": str(data),
            "log.cleaner.enable": "false",
            "log.cleanup.policy": "compact",
            "log.segment.delete.delay.ms": "0",
        }
    )
    offload = ThreadOffload()
    runtime = Runtime(SystemClock(), system_randomness(), offload, None)  # type: ignore[arg-type]
    manager = LogManager(config, runtime, PosixDisk())
    manager.lock_directories()
    await manager.start()
    assert not manager.damaged_checkpoints()
    found = {}
    for name in (WRITTEN, OFFSETS):
        log = manager.get(name)
        assert log is not None and not log.cut_at_start
        log = await manager.get_or_create(name, None, config.log_config(), is_new=False)
        log.update_high_watermark(log.log_end_offset)
        for offset in range(log.log_start_offset, log.log_end_offset):
            first = next(batches(log.read(offset, 1, log.log_end_offset)))[1]
            assert first.last_offset >= offset
        as_left = records_in(log)
        log.roll()
        await manager.flush(log)
        await manager.cleaner.start_over(log)
        assert await manager.cleaner.clean(log)
        found[name] = [as_left, records_in(log)]
    await manager.stop()
    manager.unlock_directories()
    offload.close()
    return found


def dumped(data: Path, name: TopicPartition) -> Dump:
    return dump_log_segments(sorted((data / str(name)).glob("0*.log")), "--print-data-log")


def users(records: list[KeyedRecord]) -> dict[str, str]:
    """The table that a reader of the topic has in the end; the keys of markers are not text."""
    table: dict[str, str] = {}
    for _, key, value in records:
        if key is not None and key.startswith(b"key-"):
            table.pop(key.decode(), None)
            if value is not None:
                table[key.decode()] = value.decode()
    return table


@pytest.mark.parametrize("is_clean", [True, False])
def test_what_kafka_compacted_is_read_here_record_by_record(
    kafkas: tuple[Path, dict[str, str]], is_clean: bool, tmp_path: Path
) -> None:
    origin, last = kafkas
    data = tmp_path / "data"
    shutil.copytree(origin, data)
    found = asyncio.run(served(data, is_clean))
    for name in (WRITTEN, OFFSETS):
        as_left, compacted = found[name]
        their_offsets = [int(record["offset"]) for record in dumped(origin, name).records]
        assert [offset for offset, _, _ in as_left] == their_offsets
        assert their_offsets[-1] >= 2 * len(their_offsets), "Kafka has compacted it"
        assert len(compacted) <= len(as_left)
    # Kafka left the active segment alone, with records of transactions that were aborted.
    assert users(found[WRITTEN][1]) == last
    offsets_left, offsets_compacted = found[OFFSETS]
    assert offsets_compacted == newest(offsets_left)
    assert_sound(data)
