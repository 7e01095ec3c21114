"""What many idempotent producers on one partition cost: memory, snapshots, restarts, appends.

    python bench/log/producer_ids.py [--ids 100000] [--batches 5]

Every producer appends some batches to one log, as a follower takes them. Then the log rolls, and
while its snapshot is written a task on the event loop notes how late it is woken, as it does before
while nothing happens. The log is opened again after a clean stop, after a kill, and after a kill
without any snapshot. The appends are those of a leader, of batches with and without sequences in
turn.
"""

import argparse
import asyncio
import gc
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop
from barnabas_broker.config import DynamicConfig, LogConfig
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.producers.snapshot_file import SUFFIX
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.record.batch import HEADER_SIZE, pack_header, parse_header, seal, stamp
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.runtime import Runtime, SystemClock, ThreadOffload, system_randomness
from barnabas_common.topic_partition import TopicPartition

PARTITION = TopicPartition("wide", 0)
TICK_SECONDS = 0.001
QUIET_SECONDS = 0.5
PER_APPEND = 500
APPENDS = 300
ROUNDS = 8
RECORDS_PER_BATCH = 100


def batch_of(records: int) -> bytearray:
    builder = BatchBuilder()
    for _ in range(records):
        builder.append(time.time_ns() // 1_000_000, None, b"x" * 100)
    return bytearray(builder.build())


def addressed(batch: bytearray, producer_id: int, sequence: int) -> bytes:
    """The batch as that producer sends it."""
    header = parse_header(batch)._replace(
        producer_id=producer_id, producer_epoch=0, base_sequence=sequence
    )
    changed = bytearray(batch)
    changed[:HEADER_SIZE] = pack_header(header)
    seal(changed)
    return bytes(changed)


def replicated(ids: int, batches: int) -> Iterator[bytes]:
    """What a leader sends: a batch of one record of each producer, round after round."""
    one, parts = batch_of(1), []
    for offset in range(ids * batches):
        batch = addressed(one, 1_000_000 + offset % ids, offset // ids)
        parts.append(stamp(offset, 0, len(batch) - 12) + batch[16:])
        if len(parts) == PER_APPEND:
            yield b"".join(parts)
            parts.clear()
    yield b"".join(parts)


async def started(folder: Path) -> LogManager:
    config = DynamicConfig({"broker.id": "1", "log.dirs": str(folder)})
    runtime = Runtime(SystemClock(), system_randomness(), ThreadOffload(), None)  # type: ignore[arg-type]
    manager = LogManager(config, runtime, PosixDisk())
    manager.lock_directories()
    manager.check_identity("bench")
    await manager.start()
    return manager


async def opened(manager: LogManager) -> UnifiedLog:
    return await manager.get_or_create(PARTITION, None, LogConfig(), is_new=True)


def resident_bytes() -> int:
    """The resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory_of(log: UnifiedLog) -> int:
    """The bytes of the table with all that it holds."""
    entries = log.producers.entries
    return sys.getsizeof(entries) + sum(
        sys.getsizeof(key) + sys.getsizeof(entry) for key, entry in entries.items()
    )


async def longest_stall(until: asyncio.Event) -> float:
    """The longest time in ms by which a short sleep was late."""
    longest = 0.0
    while not until.is_set():
        began = time.perf_counter()
        await asyncio.sleep(TICK_SECONDS)
        longest = max(longest, time.perf_counter() - began - TICK_SECONDS)
    return longest * 1000


async def snapshot_ms(log: UnifiedLog) -> tuple[float, float]:
    """How long a snapshot takes at a roll, and the longest stall of the loop meanwhile, in ms."""
    done = asyncio.Event()
    stalls = asyncio.create_task(longest_stall(done))
    end, began = log.log_end_offset, time.perf_counter()
    log.roll()
    while end not in log.producers.snapshot_offsets:
        await asyncio.sleep(TICK_SECONDS)
    took = (time.perf_counter() - began) * 1000
    done.set()
    return took, await stalls


def append_us(log: UnifiedLog, batch: bytearray, producer_id: int) -> float:
    """Microseconds of an append by the leader; without sequences for a negative id."""
    parts = [
        bytes(batch) if producer_id < 0 else addressed(batch, producer_id, n * RECORDS_PER_BATCH)
        for n in range(APPENDS)
    ]
    began = time.perf_counter()
    for part in parts:
        log.append_as_leader(part, 0, 0)
    return (time.perf_counter() - began) / APPENDS * 1e6


async def measure(ids: int, batches: int, folder: Path) -> dict[str, float]:
    manager = await started(folder)
    log = await opened(manager)
    before = resident_bytes()
    for records in replicated(ids, batches):
        log.append_as_follower(records)
    gc.collect()
    figures = {
        "bytes in memory per id": memory_of(log) / ids,
        "resident bytes per id": (resident_bytes() - before) / ids,
    }
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(QUIET_SECONDS, done.set)
    figures["stall while quiet ms"] = await longest_stall(done)
    figures["snapshot ms"], figures["longest stall ms"] = await snapshot_ms(log)
    files = sorted((folder / str(PARTITION)).glob(f"*{SUFFIX}"))
    figures["bytes on disk per id"] = files[-1].stat().st_size / ids
    log.append_as_leader(bytes(batch_of(1)), 0, 0)  # a start reads the last segments in any case
    await snapshot_ms(log)
    for what in ("clean", "killed", "no snapshot"):
        if what == "clean":
            await manager.stop()
        manager.unlock_directories()
        if what == "no snapshot":
            for file in (folder / str(PARTITION)).glob(f"*{SUFFIX}"):
                file.unlink()
        began = time.perf_counter()
        manager = await started(folder)
        figures[f"start, {what}, s"] = time.perf_counter() - began
        assert len((await opened(manager)).producers.entries) == ids
    log, batch = await opened(manager), batch_of(RECORDS_PER_BATCH)
    rounds = [[append_us(log, batch, -1), append_us(log, batch, n)] for n in range(ROUNDS)]
    figures["append us"], figures["idempotent append us"] = map(min, zip(*rounds, strict=True))
    await manager.stop()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ids", type=int, default=100_000)
    parser.add_argument("--batches", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = uvloop.run(measure(asked.ids, asked.batches, Path(folder)))
    for name, value in figures.items():
        print(f"{name:>24}  {value:10.2f}")


if __name__ == "__main__":
    main()
