"""What a log needs of the world around it.

`LogHost` is whoever keeps the log: in a broker the log manager, which does the slow work in the
background. Its base class here is a host for a log on its own: it does everything at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.runtime import Clock, Randomness

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.segment import Segment

if TYPE_CHECKING:
    from barnabas_broker.log.log import Log


class LogHost:
    """Called by a log, in the event loop's turn, about itself."""

    def log_failed(self, log: Log, error: OSError) -> None:
        """Reading or writing failed; the log refuses everything from now on."""

    def rolled(self, log: Log) -> None:
        """A segment was sealed: time to flush up to the base of the new one."""

    def epochs_changed(self, log: Log) -> None:
        """The epoch file should be written soon."""
        log.epoch_file.write()

    def before_truncation(self, log: Log, end_offset: int) -> None:
        """No checkpoint on disk may name an offset above `end_offset` once this returns.

        After a crash the log is read again from the recovery point on; were the point above the
        cut, what is written there next would be trusted unseen. Raises OSError.
        """

    def discard(self, log: Log, segments: Sequence[Segment]) -> None:
        """The log has let go of these segments: mark them deleted, and later remove them."""
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
