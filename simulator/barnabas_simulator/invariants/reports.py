"""What the clients of a run report: what they sent, what was acknowledged, what they read."""

from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants import durability_rules
from barnabas_simulator.invariants.findings import Findings
from barnabas_simulator.invariants.transactions.checks import TransactionChecks
from barnabas_simulator.invariants.truth import Truth


class ClientReports:
    """The part of `Invariants` that clients call."""

    def __init__(self, findings: Findings, truths: dict[TopicPartition, Truth]) -> None:
        self.findings = findings
        self.truths = truths
        self.transactions = TransactionChecks(findings, truths)
        self._unresolved: dict[TopicPartition, dict[bytes, None]] = {}

    def sent(self, partition: TopicPartition, value: bytes) -> None:
        """Record that a producer has sent a value: `acked` or `refused` must follow (L3)."""
        self._unresolved.setdefault(partition, {})[value] = None

    def lost(self) -> dict[TopicPartition, set[tuple[int, bytes]]]:
        """Return the offsets and labels whose loss was excused."""
        return {partition: truth.lost for partition, truth in self.truths.items() if truth.lost}

    def refused(self, partition: TopicPartition, value: bytes) -> None:
        """Record that the producer has reported an error for a value."""
        self._unresolved.get(partition, {}).pop(value, None)

    def acked(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        """Record an acknowledgement with acks=all; -1 if the leader did not know the offset."""
        self.refused(partition, value)
        truth = self.truths.get(partition)
        if truth is not None and offset >= 0:
            self._client_saw(truth, truth.acked, offset, value)

    def consumed(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        """Record that a consumer has read a value."""
        truth = self.truths.get(partition)
        if truth is not None:
            self._client_saw(truth, truth.consumed, offset, value)

    def read_committed(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        """Record that a reader of committed records has read a value."""
        self.consumed(partition, offset, value)
        self.transactions.read(partition, offset)

    def _client_saw(self, truth: Truth, known: dict[int, bytes], offset: int, value: bytes) -> None:
        if (offset, value) in truth.lost:  # told before, and heard now
            return
        rule = durability_rules.consistent_read
        self.findings.hold(truth.partition, rule, truth, offset, value)
        known[offset] = value
        truth.told(offset, value)
        if offset >= truth.high_watermark:
            truth.unsettled[offset] = value
