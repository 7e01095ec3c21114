"""The logs in failed directories. A second log of the same name must not take their place.

Once such a directory works again, a broker with two folders of one name does not start. What a
directory holds that fails after its logs were opened is known. What one holds that cannot be read
at the start is not: it may be any partition that a broker has had a replica of.
"""

from collections.abc import Sequence

from barnabas_common.errors import KafkaStorageError
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.manager.log_directory import LogDirectory


class OfflineLogs:
    """Those that are known, until the broker is started again, each with the reason."""

    def __init__(self) -> None:
        self._reasons: dict[TopicPartition, str] = {}

    def add(self, name: TopicPartition, directory: LogDirectory, error: OSError) -> None:
        """Add the log, unless its directory works: only a file descriptor was lacking."""
        if directory.failure is not None:
            self._reasons[name] = f"data directory {directory.path}: {error}"

    def reasons(self) -> dict[TopicPartition, str]:
        """A copy."""
        return dict(self._reasons)

    def check_absent(
        self, name: TopicPartition, directories: Sequence[LogDirectory], is_first: bool
    ) -> None:
        """Raise KafkaStorageError if a failed one of all directories has the log, or may have it.

        `is_first`: the partition has its first leader, so that no broker has a log of it. An
        earlier topic of that name may have left one; this is not recognized.
        """
        if name in self._reasons:
            raise KafkaStorageError(f"{name}: {self._reasons[name]}")
        failed = [directory for directory in directories if directory.failure is not None]
        if len(failed) == len(directories) or (failed and not is_first):
            raise KafkaStorageError(f"{name} may be in a data directory that has failed")
