"""A log while it is compacted: what it was when the pass began, and what comes of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.compaction.cleanable import Cleanable
from barnabas_broker.log.compaction.cleaner import Counts, Source
from barnabas_broker.log.segment.segment import Segment
from barnabas_broker.log.unified_log import UnifiedLog


@dataclass(frozen=True)
class PassReport:
    """A pass that ended. `fault`: why the log could not be compacted; empty if it was.
    `will_retry`: the log is tried again after a fault."""

    topic_partition: TopicPartition
    first_dirty_offset: int
    end_offset: int
    counts: Counts = field(default_factory=Counts)
    seconds: float = 0.0
    fault: str = ""
    will_retry: bool = True


class GivenUp(Exception):
    """The log changed under the pass."""


class Pass:
    """A log as it was when the pass began."""

    def __init__(
        self, log: UnifiedLog, found: Cleanable, segments: Sequence[Segment], truncations: int
    ) -> None:
        self.log = log
        self.found = found
        ends = [*(one.base_offset for one in segments[1:]), log.log_end_offset]
        self.sources = [Source(one, one.size, end) for one, end in zip(segments, ends, strict=True)]
        self.counts = Counts()
        self.end_offset = found.first_dirty_offset
        self.seconds = 0.0
        self._truncations = truncations
        self._needed = {id(source.segment) for source in self.sources}

    def is_current(self) -> bool:
        return not self.log.is_failed and self.log.truncations == self._truncations

    def replaced(self, group: Sequence[Source]) -> None:
        """A new segment is in the place of these."""
        self._needed -= {id(source.segment) for source in group}

    def has_its_sources(self) -> bool:
        """Whether every segment that was not replaced yet is still one of the log's."""
        return self._needed <= {id(segment) for segment in self.log.segments()}

    def check(self) -> None:
        """Raise if the log has changed in a way that the pass cannot take."""
        if not self.is_current():
            raise GivenUp("the log was truncated, closed or deleted")
