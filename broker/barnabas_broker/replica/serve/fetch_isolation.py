"""Where the log ends for a reader (Kafka's `FetchIsolation`)."""

from enum import Enum, auto

from barnabas_broker.log.unified_log import UnifiedLog

READ_UNCOMMITTED, READ_COMMITTED = ISOLATION_LEVELS = (0, 1)
"""What the `isolation_level` of a request may be."""


class FetchIsolation(Enum):
    """The part of a log that a reader may see."""

    LOG_END = auto()  # a follower: everything
    HIGH_WATERMARK = auto()  # a consumer: what is committed
    TXN_COMMITTED = auto()  # a read_committed consumer: also no open transaction

    @staticmethod
    def of(is_follower: bool, isolation_level: int) -> "FetchIsolation":
        """The isolation of a request."""
        if is_follower:
            return FetchIsolation.LOG_END
        if isolation_level == READ_COMMITTED:
            return FetchIsolation.TXN_COMMITTED
        return FetchIsolation.HIGH_WATERMARK

    def end_of(self, log: UnifiedLog) -> int:
        """The first offset that the reader may not see."""
        match self:
            case FetchIsolation.LOG_END:
                return log.log_end_offset
            case FetchIsolation.HIGH_WATERMARK:
                return log.high_watermark
            case FetchIsolation.TXN_COMMITTED:
                return log.last_stable_offset
