"""A flush, split so that its slow part may run off the event loop."""

from dataclasses import dataclass

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.segment.segment import Segment
from barnabas_broker.log.segment.segment_list import SegmentList


@dataclass(frozen=True)
class FlushPlan:
    """The log makes and completes it. `truncations` and the versions are those when it was made.

    `segments` says of each segment whether it is sealed, because only a sealed one has index files
    to flush. `directory` is None if no file was created since the last flush.
    """

    end_offset: int
    truncations: int
    epoch_version: int
    names_version: int
    segments: list[tuple[Segment, bool]]
    directory: str | None
    disk: Disk

    def run(self) -> None:
        """fsync the files. Changes nothing in memory. Raises OSError."""
        for segment, sealed in self.segments:
            segment.flush(sealed)
        if self.directory is not None:
            self.disk.sync_directory(self.directory)


def segments_to_flush(
    segments: SegmentList, recovery_point: int, end: int, truncated: bool
) -> list[tuple[Segment, bool]]:
    """The segments with records below `end` that may not be durable, and whether each is sealed."""
    # If a segment was flushed to its end while it was active, and sealed afterwards, the last
    # entries of its indexes are not durable yet.
    return [
        (segment, segment is not segments.active)
        for segment in segments.from_offset(max(recovery_point - 1, 0))
        if truncated or segment.base_offset < end > recovery_point
    ]
