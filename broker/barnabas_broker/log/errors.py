"""Errors of the log that the fetcher and the start of a broker tell apart.

Only those that derive from a Kafka error have a code that a client may receive.
"""

from barnabas_common.errors.kafka_errors import BarnabasError, KafkaStorageError


class UnexpectedAppendOffset(BarnabasError):
    """A follower received batches that start below the end of its log."""


class UnusableLog(BarnabasError):
    """The logs cannot be used; the message says why."""


class UnknownTopicIdError(BarnabasError):
    """The file with the id of a log's topic is malformed: its records may be of another topic."""


class LostLogError(KafkaStorageError):
    """The folder of a log is missing, and the replica is in the ISR."""


class OutOfDescriptorsError(KafkaStorageError):
    """No file descriptor was left; the log is unchanged, and the call may be repeated."""


class DamagedLogError(BarnabasError):
    """Opening a log would remove committed records, and no power loss explains the damage."""


class DirectoryLockedError(BarnabasError):
    """Another process uses the data directory."""


class InconsistentDirectoryError(BarnabasError):
    """The data directory belongs to another cluster or to another broker."""


class MalformedCheckpoint(BarnabasError, ValueError):
    """A checkpoint file is damaged."""
