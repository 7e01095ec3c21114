"""What the checkpoints of a data directory say of a log that is to be opened."""

from dataclasses import dataclass

from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.config.key import MAX_LONG
from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.disk.disk import Disk


@dataclass(frozen=True)
class LogCheckpoint:
    """A log in the checkpoints of its directory. `is_clean`: it was shut down cleanly.
    `is_unbroken`: nothing can have been lost, so everything below the high watermark is there.
    `flushed_up_to`: what is below it survives a power loss.
    `clean_offset`: how far the log was compacted, None if it never was; compaction may leave gaps
    between segments.
    `epochs_stored_below`: the epoch file has the epochs of all batches below it."""

    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    is_clean: bool = False
    is_unbroken: bool = False
    flushed_up_to: int = 0
    clean_offset: int | None = None
    epochs_stored_below: int = MAX_LONG

    @property
    def is_complete(self) -> bool:
        """Whether nothing but damage can have taken records."""
        return self.is_clean or self.is_unbroken

    @property
    def least_end(self) -> int:
        """Where the log ends at the earliest, unless it is damaged."""
        return self.high_watermark if self.is_complete else self.flushed_up_to

    @property
    def gaps_below(self) -> int:
        """Where a gap is one of compaction: below the recovery point nothing can be lost. Only a
        log that was compacted has any."""
        return 0 if self.clean_offset is None else max(self.recovery_point, self.clean_offset)

    @property
    def closed_at(self) -> int | None:
        """Where the log ended when it was closed cleanly; None if that is unknown. The numbers have
        no checksum, but a log never ends below its high watermark."""
        is_known = self.is_clean and 0 < self.recovery_point >= self.high_watermark
        return self.recovery_point if is_known else None


@dataclass(frozen=True)
class LogFolder:
    """The log to open: its disk, folder, name and settings."""

    disk: Disk
    path: str
    topic_partition: TopicPartition
    config: LogConfig
