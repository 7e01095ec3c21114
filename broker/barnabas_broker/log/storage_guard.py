"""Whether a log can be used: its first I/O error ends that, unless a descriptor was lacking."""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from barnabas_common.errors import CorruptMessageError, KafkaStorageError
from barnabas_common.record.batch import CorruptBatch

from barnabas_broker.disk.disk import is_out_of_descriptors
from barnabas_broker.log.errors import OutOfDescriptorsError
from barnabas_broker.log.log_context import HostedLog, LogHost

logger = logging.getLogger(__name__)


class StorageGuard:
    """Every log has one."""

    def __init__(self, log: HostedLog, host: LogHost) -> None:
        self._log = log
        self._host = host
        self.failure: OSError | None = None
        self.has_appended = False
        """Since the log was opened or truncated."""

    def fail(self, error: OSError) -> None:
        """Refuse all further use."""
        self.failure = self.failure or error

    def check_usable(self) -> None:
        """Raises KafkaStorageError after a failure."""
        if self.failure is not None:
            raise KafkaStorageError(f"{self._log.topic_partition}: cannot be used: {self.failure}")

    def appending(self) -> AbstractContextManager[None]:
        """Surround the I/O of an append."""
        if not self.has_appended:
            with self.io("append"):
                self._host.before_first_append(self._log)
            self.has_appended = True
        return self.io("append")

    @contextmanager
    def io(self, what: str) -> Iterator[None]:
        """Surround I/O: raise its errors as Kafka's, and record a failure."""
        name = self._log.topic_partition
        try:
            yield
        except CorruptBatch as error:
            raise CorruptMessageError(f"{name}: {error}") from error
        except OSError as error:
            if is_out_of_descriptors(error):
                self._host.out_of_descriptors(self._log, error)
                raise OutOfDescriptorsError(f"{name}: could not {what}: {error}") from error
            logger.error("%s: could not %s: %s", name, what, error)
            self.fail(error)
            self._host.log_failed(self._log, error)
            raise KafkaStorageError(f"{name}: could not {what}: {error}") from error
