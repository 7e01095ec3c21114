"""Logs for tests: batches, a clock that the test sets, a disk on which a log opens again."""

import random
from dataclasses import dataclass, field, replace

from barnabas_broker.config import LogConfig
from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.log_context import LogContext, LogHost
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint, LogFolder
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.record.batch import batches
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.reader import read_batch
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk

NOW = 1_700_000_000_000
PARTITION = TopicPartition("t", 0)
FOLDER = "/data/t-0"


@dataclass
class FakeClock:
    """A clock whose two times, both from `now_ms`, change only when a test sets them."""

    now_ms: int = NOW

    def monotonic(self) -> float:
        return self.now_ms / 1000

    def wall_ms(self) -> int:
        return self.now_ms


def produced(
    *values: bytes, timestamp: int = NOW, compression: str = "none", step_ms: int = 0
) -> bytes:
    """Return one batch as a producer sends it; the records are `step_ms` apart."""
    builder = BatchBuilder(compression)
    for number, value in enumerate(values):
        builder.append(timestamp + number * step_ms, None, value)
    return builder.build()


def values_in(data: bytes) -> list[bytes | None]:
    """Return the values of all records in whole batches."""
    return [record.value for position, _ in batches(data) for record in read_batch(data, position)]


@dataclass
class LogWorld:
    """A disk with one log's folder. `open` does what a broker's start does."""

    config: LogConfig = field(default_factory=LogConfig)
    disk: Disk = field(default_factory=MemoryDisk)
    host: LogHost = field(default_factory=LogHost)
    clock: FakeClock = field(default_factory=FakeClock)
    folder: str = FOLDER

    def open(self, checkpoint: LogCheckpoint | None = None, **config: object) -> UnifiedLog:
        """Open the log as after an unclean shutdown, unless `checkpoint` says otherwise.

        `config` replaces fields of `LogConfig`.
        """
        self.config = replace(self.config, **config)  # type: ignore[arg-type]
        self.disk.make_directory(self.folder)
        context = LogContext(self.disk, self.clock, random.Random(1), self.host)
        folder = LogFolder(self.disk, self.folder, PARTITION, self.config)
        return UnifiedLog(context, folder, checkpoint or LogCheckpoint())

    def reopen_clean(self, log: UnifiedLog) -> UnifiedLog:
        """Close the log and open it as after a clean shutdown."""
        log.flush()
        log.close()
        return self.open(
            LogCheckpoint(log.recovery_point, log.log_start_offset, log.high_watermark, True)
        )

    def append(self, log: UnifiedLog, *values: bytes, epoch: int = 0, timestamp: int = NOW) -> None:
        """Append one batch, and commit it."""
        log.append_as_leader(produced(*values, timestamp=timestamp), epoch, self.clock.now_ms)
        log.update_high_watermark(log.log_end_offset)

    def names(self) -> list[str]:
        return self.disk.list(self.folder)


def read_all(log: UnifiedLog) -> bytes:
    """Return all bytes of a log, segment after segment."""
    data, offset = b"", log.log_start_offset
    while offset < log.log_end_offset:
        piece = log.read(offset, 1 << 20, log.log_end_offset)
        data += piece
        offset = [header.next_offset for _, header in batches(piece)][-1]
    return data
