"""The interface between a log and its surroundings.

`LogHost` is the owner of a log. In a broker it is the log manager, which does the slow work in the
background. The base class serves a log without a manager: it does everything immediately.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from barnabas_common.runtime import Clock, Randomness
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.epochs.leader_epoch_file import LeaderEpochFile
from barnabas_broker.log.flush_plan import FlushPlan
from barnabas_broker.log.producers.producer_state_manager import ProducerStateManager
from barnabas_broker.log.segment.segment import Segment


class HostedLog(Protocol):
    """The part of `UnifiedLog` that its host uses."""

    topic_partition: TopicPartition
    directory: str
    config: LogConfig
    epoch_file: LeaderEpochFile
    producers: ProducerStateManager

    @property
    def is_failed(self) -> bool: ...
    @property
    def active_segment_offset(self) -> int: ...
    def plan_flush(self, up_to: int | None = None) -> FlushPlan: ...
    def complete_flush(self, plan: FlushPlan) -> None: ...


class LogHost:
    """Called by a log about itself, on the event loop."""

    def log_failed(self, log: HostedLog, error: OSError) -> None:
        """Reading or writing failed; the log refuses all further use."""

    def out_of_descriptors(self, log: HostedLog, error: OSError) -> None:
        """No file descriptor was left; the log is unchanged and remains usable."""

    def rolled(self, log: HostedLog) -> None:
        """A segment was sealed: the log should be flushed up to the base of the new one, and the
        snapshots of the producers be written."""
        log.producers.write_pending()

    def epochs_changed(self, log: HostedLog) -> None:
        """The epoch file should be written soon."""
        log.epoch_file.write()

    def before_truncation(self, log: HostedLog, end_offset: int) -> None:
        """Lower the checkpoints on disk to `end_offset`, durably. Raises OSError.

        After a crash the log is read from the recovery point on. Records written above the
        truncation, but below a recovery point that was not lowered, would not be verified.
        """

    def before_first_append(self, log: HostedLog) -> None:
        """Called before the first append since the log was opened or truncated. Raises OSError.

        Its high watermark on disk must not be above its end: what is appended would count as
        committed after a crash.
        """

    def is_discarding(self, log: HostedLog, end_offset: int) -> bool:
        """Whether files of segments below `end_offset` that the log no longer has may have their
        old names after a power loss. They are not flushed, and must not be found below the recovery
        point."""
        return False

    def discard(self, log: HostedLog, segments: Sequence[Segment]) -> None:
        """Mark segments that the log no longer has as deleted, and remove them later."""
        for segment in segments:
            segment.mark_deleted()
            segment.destroy()


@dataclass(frozen=True)
class LogContext:
    """Shared by all logs of a directory."""

    disk: Disk
    clock: Clock
    randomness: Randomness
    host: LogHost
