"""Transactions in a log without a broker."""

from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_broker.log.index.transaction_index import AbortedTxn
from barnabas_broker.log.producers.verification import NOT_NEEDED, VerificationGuard
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.record.batch import TRANSACTIONAL
from barnabas_common.record.transactional import marker_batch

from tests.support.idempotent import sent
from tests.support.log_world import NOW


class Writer:
    """One transactional producer of a log, which counts its sequences."""

    def __init__(self, log: UnifiedLog, producer_id: int, epoch: int = 0) -> None:
        self.log = log
        self.producer_id = producer_id
        self.epoch = epoch
        self.sequence = 0

    def batch(self, *values: bytes, timestamp: int = NOW) -> bytes:
        batch = sent(
            *values,
            timestamp=timestamp,
            producer_id=self.producer_id,
            epoch=self.epoch,
            sequence=self.sequence,
            attributes=TRANSACTIONAL,
        )
        self.sequence += len(values)
        return batch

    def send(
        self,
        *values: bytes,
        guard: VerificationGuard | None = NOT_NEEDED,
        timestamp: int = NOW,
    ) -> int:
        """Append a batch of the transaction; returns its first offset."""
        records = self.batch(*values or (b"v",), timestamp=timestamp)
        return self.log.append_as_leader(records, 0, NOW, guard=guard).first_offset

    def end(self, commit: bool, coordinator_epoch: int = 0) -> int:
        """Append the marker; returns its offset."""
        marker = marker_batch(self.producer_id, self.epoch, commit, coordinator_epoch, NOW)
        origin = AppendOrigin.COORDINATOR
        return self.log.append_as_leader(marker, 0, NOW, origin).first_offset


def commit_all(log: UnifiedLog) -> None:
    """Move the high watermark to the end."""
    log.update_high_watermark(log.log_end_offset)


def indexed(log: UnifiedLog) -> list[AbortedTxn]:
    """All entries of the transaction indexes."""
    return [entry for segment in log.segments() for entry in segment.txn_index.entries()]
