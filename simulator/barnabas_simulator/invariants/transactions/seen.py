"""What the checks of transactions have seen together, and who coordinates which id."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_broker.coordinator.transaction.metadata import TransactionMetadata
from barnabas_broker.replica.partition.partitions import Partitions
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.findings import Findings
from barnabas_simulator.invariants.transactions.model import (
    PartitionTransactions,
    Producer,
    StateTruth,
)
from barnabas_simulator.invariants.truth import Truth


@dataclass
class TransactionsSeen:
    """`partitions`: what each committed log says. `states`: by transactional id, what is committed
    in `__transaction_state`."""

    findings: Findings
    truths: Mapping[TopicPartition, Truth]
    partitions: dict[TopicPartition, PartitionTransactions] = field(default_factory=dict)
    states: dict[str, StateTruth] = field(default_factory=dict)

    def state(self, transactional_id: str) -> StateTruth:
        return self.states.setdefault(transactional_id, StateTruth())

    def decision(self, marker: Producer) -> TransactionMetadata | None:
        """The decision that markers of this epoch are for."""
        found = (state.decisions.get(marker) for state in self.states.values())
        return next((decision for decision in found if decision is not None), None)

    def coordinator_epoch(self, transactional_id: str) -> int | None:
        """The leader epoch of the partition that holds an id; None if it has no leader."""
        truth = self.truths.get(self._partition(transactional_id))
        return None if truth is None else truth.led_epoch

    def leads(self, transactional_id: str, partitions: Partitions) -> bool:
        """Whether a broker coordinates the id, by ZooKeeper."""
        hosted = partitions.get(self._partition(transactional_id))
        leadership = None if hosted is None else hosted.leadership
        if leadership is None:
            return False
        return leadership.epoch == self.coordinator_epoch(transactional_id)

    def _partition(self, transactional_id: str) -> TopicPartition:
        count = sum(tp.topic == TRANSACTION_STATE_TOPIC for tp in self.truths)
        number = partition_of_key(transactional_id, max(count, 1))
        return TopicPartition(TRANSACTION_STATE_TOPIC, number)

    def id_of(self, producer_id: int) -> str | None:
        """The transactional id that was given a producer id."""
        for name, state in self.states.items():
            if any(producer.producer_id == producer_id for producer in state.initialized):
                return name
        return None
