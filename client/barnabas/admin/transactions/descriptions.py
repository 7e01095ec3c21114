"""What coordinators and leaders report about transactions."""

from dataclasses import dataclass

from barnabas_common.messages.transactions import ActiveProducer, DescribedTransaction
from barnabas_common.topic_partition import TopicPartition


@dataclass(frozen=True)
class TransactionListing:
    """A transactional id; `coordinator` is a broker's id, `state` is Kafka's name."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True)
class TransactionDescription:
    """A transactional id at its coordinator.

    `start_ms` is -1 if no transaction is open or being ended. `partitions` are those of the open
    transaction, or those whose markers are not written yet.
    """

    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicPartition, ...]

    @property
    def is_open(self) -> bool:
        """Whether it has begun, and is not complete."""
        return self.state in ("Ongoing", "PrepareCommit", "PrepareAbort")

    def will_end(self, partition: TopicPartition) -> bool:
        """Whether its coordinator will have a marker written into this partition."""
        return self.is_open and partition in self.partitions


def described(coordinator: int, found: DescribedTransaction) -> TransactionDescription:
    """What a broker answered without an error."""
    return TransactionDescription(
        found.transactional_id,
        coordinator,
        found.producer_id,
        found.producer_epoch,
        found.transaction_state,
        found.transaction_timeout_ms,
        found.transaction_start_time_ms,
        tuple(sorted(TopicPartition(p.topic, p.partition) for p in found.partitions)),
    )


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction that a leader knows from the batches in its log, without its marker."""

    topic_partition: TopicPartition
    producer: ActiveProducer
