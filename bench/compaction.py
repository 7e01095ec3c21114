"""How fast a log is compacted, and what that costs the event loop.

    python bench/compaction.py [--megabytes 100] [--kafka]

For records of 100 bytes and of 1 KB: a log in batches of 16 KB, each key written four times; one
pass. Bytes per second are those of the dirty log. `loop` is the longest and the 99th percentile of
the delays of a task that wants to run every millisecond. `--kafka` lets Kafka's own cleaner compact
a copy (needs what `tests/kafka_tools` needs).
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from barnabas_broker.config import Config
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.log.manager.compaction_pass import PassReport
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.runtime import Runtime, SystemClock, ThreadOffload, system_randomness
from barnabas_common.topic_partition import TopicPartition

NAME = TopicPartition("written", 0)
SEGMENT_BYTES = 32 * 1024 * 1024
BATCH_BYTES = 16 * 1024
NOW = 1_700_000_000_000
_COPIES = 4
_MB = 1_000_000


def config_of(data: Path) -> Config:
    return Config(
        {
            "broker.id": "1",
            "log.dirs": str(data),
            "log.cleaner.enable": "false",
            "log.cleanup.policy": "compact",
            "log.segment.bytes": str(SEGMENT_BYTES),
            "log.segment.delete.delay.ms": "0",
        }
    )


def batches(megabytes: int, record_bytes: int) -> list[bytes]:
    """Return batches with records of `record_bytes`, in which keys occur four times on average."""
    chance = random.Random(1)
    records = megabytes * _MB // record_bytes
    per_batch = max(BATCH_BYTES // record_bytes, 1)
    made = []
    for _ in range(records // per_batch):
        builder = BatchBuilder()
        for _ in range(per_batch):
            key = b"%016d" % chance.randrange(records // _COPIES)
            builder.append(NOW, key, bytes(record_bytes - 27))
        made.append(builder.build())
    return made


async def loop_delays(delays: list[float]) -> None:
    """Sleep for a millisecond repeatedly, and append each delay in seconds; until cancelled."""
    while True:
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        delays.append(time.perf_counter() - before - 0.001)


async def measure(data: Path, megabytes: int, record_bytes: int, kafka: Path | None) -> None:
    """Fill a log, compact it in one pass and print the figures; `kafka` is a folder for a copy."""
    reports: list[PassReport] = []
    offload = ThreadOffload()
    runtime = Runtime(SystemClock(), system_randomness(), offload, None)  # type: ignore[arg-type]
    config = config_of(data)
    manager = LogManager(config, runtime, PosixDisk(), on_compaction=reports.append)
    manager.lock_directories()
    await manager.start()
    log = await manager.get_or_create(NAME, None, config.log_config(), is_new=True)
    for batch in batches(megabytes, record_bytes):
        log.append_as_leader(batch, 0, NOW)
    log.update_high_watermark(log.log_end_offset)
    log.roll()
    await manager.flush(log)
    if kafka is not None:
        shutil.copytree(data / str(NAME), kafka / str(NAME))
    delays: list[float] = []
    watching = asyncio.create_task(loop_delays(delays))
    await manager.cleaner.clean(log)
    watching.cancel()
    await manager.stop()
    offload.close()
    (report,) = reports
    counts = report.counts
    delays.sort()
    print(
        f"{record_bytes:5} B: {counts.bytes_before / _MB:.0f} MB to {counts.bytes_after / _MB:.0f}"
        f" MB in {report.seconds:.1f} s, {counts.bytes_before / _MB / report.seconds:.0f} MB/s,"
        f" {counts.records_before / report.seconds / 1000:.0f} thousand records/s;"
        f" loop p99 {delays[len(delays) * 99 // 100] * 1000:.1f} ms,"
        f" longest {delays[-1] * 1000:.1f} ms"
    )
    if kafka is not None:
        sys.path.insert(0, str(Path(__file__).parents[1]))
        from tests.kafka_tools.harness import compact_log

        seconds = compact_log(kafka / str(NAME), SEGMENT_BYTES, 1, 134_217_728) / 1000
        print(f"         Kafka's cleaner: {counts.bytes_before / _MB / seconds:.0f} MB/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--kafka", action="store_true")
    arguments = parser.parse_args()
    for record_bytes in (100, 1000):
        with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
            kafka = Path(theirs) if arguments.kafka else None
            asyncio.run(measure(Path(ours), arguments.megabytes, record_bytes, kafka))


if __name__ == "__main__":
    main()
