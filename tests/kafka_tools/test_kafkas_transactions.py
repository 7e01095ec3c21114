"""Transactions that Kafka's Java producer wrote to a real Kafka broker are read here alike."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas_broker.config import Config
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.record.aborted import AbortedBatches
from barnabas_common.record.batch import batches
from barnabas_common.record.reader import read_batch
from barnabas_common.runtime import Runtime, SystemClock, ThreadOffload, system_randomness
from barnabas_common.topic_partition import TopicPartition

from tests.kafka_tools.harness import run_java
from tests.kafka_tools.kafka_broker import KafkaBroker
from tests.support.log_files import assert_sound

pytestmark = pytest.mark.kafka

TOPIC = "written"
SETTINGS = {
    "transaction_state_log_num_partitions": "1",
    "transaction_state_log_replication_factor": "1",
    "transaction_state_log_min_isr": "1",
    "offsets_topic_replication_factor": "1",
}
FETCH_BYTES = 5_000

Found = dict[int, list[tuple[int, str]]]
"""By partition: offsets and values."""


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Found]]:
    """Kafka's data directory after a clean shutdown, and what its consumers got by level."""
    with KafkaBroker(tmp_path_factory.mktemp("kafka"), **SETTINGS) as broker:
        done = run_java("WriteTransactions", broker.address, TOPIC)
        assert done.returncode == 0, done.stderr
    told: dict[str, Found] = {"read_uncommitted": {}, "read_committed": {}}
    for line in done.stdout.splitlines():
        level, partition, offset, value = line.split()
        told[level].setdefault(int(partition), []).append((int(offset), value))
    return broker.data, told


def visible(log: UnifiedLog, end: int, read_committed: bool) -> Iterator[tuple[int, str]]:
    """What a consumer makes of the answers to its fetches."""
    offset = log.log_start_offset
    while records := log.read(offset, FETCH_BYTES, end):
        began = log.aborted_transactions(offset, records) if read_committed else []
        aborted = AbortedBatches((one.producer_id, one.first_offset) for one in began)
        for position, header in batches(records):
            left_out = aborted.leaves_out(header, records, position)
            if not (left_out if read_committed else header.is_control):
                for record in read_batch(records, position):
                    yield record.offset, (record.value or b"").decode()
            offset = header.next_offset


async def read_here(data: Path) -> dict[str, Found]:
    config = Config({"broker.id": "1", "log.dirs": str(data), "log.cleaner.enable": "false"})
    offload = ThreadOffload()
    runtime = Runtime(SystemClock(), system_randomness(), offload, None)  # type: ignore[arg-type]
    manager = LogManager(config, runtime, PosixDisk())
    manager.lock_directories()
    await manager.start()
    assert not manager.damaged_checkpoints()
    found: dict[str, Found] = {"read_uncommitted": {}, "read_committed": {}}
    for partition in range(2):
        log = manager.get(TopicPartition(TOPIC, partition))
        assert log is not None and not log.cut_at_start
        log.update_high_watermark(log.log_end_offset)
        everything, stable = log.log_end_offset, log.last_stable_offset
        assert stable < everything, "a transaction is open"
        found["read_uncommitted"][partition] = list(visible(log, everything, False))
        found["read_committed"][partition] = list(visible(log, stable, True))
    await manager.stop()
    manager.unlock_directories()
    offload.close()
    return found


@pytest.mark.parametrize("is_clean", [True, False])
def test_both_levels_read_what_kafkas_consumers_read(
    kafkas: tuple[Path, dict[str, Found]], is_clean: bool, tmp_path: Path
) -> None:
    """After a clean shutdown, and where every segment has to be recovered: then the producers'
    states and the index of aborted transactions are made from the log alone."""
    origin, told = kafkas
    data = tmp_path / "data"
    shutil.copytree(origin, data)
    if not is_clean:
        for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
            (data / name).unlink()
        for file in (*data.rglob("*.snapshot"), *data.rglob("*.txnindex")):
            file.unlink()
    assert asyncio.run(read_here(data)) == told
    uncommitted = [value for some in told["read_uncommitted"].values() for _, value in some]
    committed = [value for some in told["read_committed"].values() for _, value in some]
    assert {"open-0", "behind-0"} <= set(uncommitted)
    assert 500 < len(committed) < len(uncommitted) - 100
    assert not {"open-0", "behind-0"} & set(committed)
    assert_sound(data)
