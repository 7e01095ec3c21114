"""What the records of one partition of `__transaction_state` say."""

from collections.abc import Sequence

from barnabas_common.record.batch import BatchHeader
from barnabas_common.record.reader import Record

from barnabas_broker.coordinator.record_fields import UnreadableRecord
from barnabas_broker.coordinator.transaction.metadata import TransactionMetadata
from barnabas_broker.coordinator.transaction.records import decode_key, decode_value


class LoadedTransactions:
    """Takes the records in order; the latest of each key counts. `unreadable` has the offset and
    the fault of each record that was left out."""

    def __init__(self) -> None:
        self.unreadable: list[tuple[int, str]] = []
        self._metadata: dict[str, TransactionMetadata] = {}

    def take_batch(self, header: BatchHeader, records: Sequence[Record]) -> None:
        """Take one batch; no transaction has markers here."""
        if not header.is_control:
            for record in records:
                self.take(record)

    def take(self, record: Record) -> None:
        """Take one record; one of an unknown version is left out in silence, as in Kafka."""
        try:
            if record.key is None:
                raise UnreadableRecord("no key")
            transactional_id = decode_key(record.key)
            if transactional_id is None:
                return
            if record.value is None:
                self._metadata.pop(transactional_id, None)
            else:
                value = decode_value(transactional_id, record.value)
                self._metadata[transactional_id] = value
        except UnreadableRecord as error:
            self.unreadable.append((record.offset, str(error)))

    def metadata(self) -> list[TransactionMetadata]:
        """One for each transactional id."""
        return list(self._metadata.values())
