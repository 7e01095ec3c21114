"""What the log reports that has no code of Kafka's: to the fetcher, or to who starts a broker."""

from barnabas.kafka_errors import BarnabasError, KafkaStorageError


class UnexpectedAppendOffset(BarnabasError):
    """A follower was handed batches that do not begin at or after the end of its log."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(message)
        self.first_offset = first_offset
        self.last_offset = last_offset


class UnusableLog(BarnabasError):
    """One partition's folder cannot be opened as it is; the message says what is wrong with it."""


class LostLogError(KafkaStorageError):
    """The folder of a log is gone, and the cluster still counts on what was in it."""


class DirectoryLockedError(BarnabasError):
    """Another process uses the data directory."""


class InconsistentDirectoryError(BarnabasError):
    """The data directory belongs to another cluster or to another broker."""


class MalformedCheckpoint(BarnabasError, ValueError):
    """A checkpoint file is not what its writer wrote."""
