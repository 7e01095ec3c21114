"""The checks of transactions: I14 to I17 while a run lasts, L10 at its end."""

from collections.abc import Mapping

from barnabas_broker.coordinator.record_fields import UnreadableRecord
from barnabas_broker.coordinator.transaction.records import decode_key, decode_value
from barnabas_broker.log.producers.transactions import TransactionTable
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.partition.partition import Partition
from barnabas_common.record.reader import Record
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.findings import Broken, Findings
from barnabas_simulator.invariants.logs.image import LogImage
from barnabas_simulator.invariants.transactions import rules
from barnabas_simulator.invariants.transactions.answers import TransactionAnswers
from barnabas_simulator.invariants.transactions.model import (
    Ended,
    PartitionTransactions,
    Producer,
    StateTruth,
)
from barnabas_simulator.invariants.transactions.seen import TransactionsSeen
from barnabas_simulator.invariants.truth import Truth
from barnabas_simulator.invariants.view import Replica


class TransactionChecks:
    """`seen` is what the committed logs say; `answers` sees every request to a coordinator, and
    each for markers to a leader."""

    def __init__(self, findings: Findings, truths: Mapping[TopicPartition, Truth]) -> None:
        self.seen = TransactionsSeen(findings, truths)
        self.answers = TransactionAnswers(self.seen)
        self._hold = findings.hold
        self._tables: dict[tuple[str, TopicPartition], tuple[TransactionTable, int]] = {}
        # A high watermark may fall when the leader changes: what it had passed stays decided.
        self._highest: dict[tuple[str, TopicPartition], int] = {}
        self._ended: dict[Producer, Ended] = {}
        self._read: dict[tuple[TopicPartition, int], None] = {}

    # ---- what is committed

    def exposed(self, truth: Truth, image: LogImage, start: int) -> None:
        """The high watermark of a partition has moved from `start`."""
        key = truth.partition
        found = self.seen.partitions.setdefault(key, PartitionTransactions())
        for index in range(image.index_of(start), image.index_of(truth.high_watermark)):
            ended = found.take(image.batches[index])
            if ended is not None:
                self._end(key, ended)
            if key.topic == TRANSACTION_STATE_TOPIC:
                for record in image.records(index):
                    self._state_written(record)
        for partition, offset in [one for one in self._read if one[0] == key]:
            is_visible = found.visible.get(offset)
            if is_visible is not None:
                del self._read[partition, offset]
                self._hold(key, rules.read_is_committed, key, offset, is_visible)

    def _end(self, key: TopicPartition, ended: Ended) -> None:
        """Under KIP-890 the epoch of the records is that of one transaction."""
        decision = self.seen.decision(ended.marker)
        self._hold(key, rules.marker_is_of_its_transaction, key, ended, decision)
        if ended.marker.epoch > ended.epoch:
            transaction = Producer(ended.marker.producer_id, ended.epoch)
            self._hold(key, rules.one_outcome, key, ended, self._ended.get(transaction))
            self._ended.setdefault(transaction, ended)

    def _state_written(self, record: Record) -> None:
        try:
            name = decode_key(record.key or b"")
            if name is not None and record.value is not None:
                state = self.seen.states.setdefault(name, StateTruth())
                state.take(decode_value(name, record.value))
        except UnreadableRecord:  # written by a test
            return

    # ---- what readers got

    def read(self, partition: TopicPartition, offset: int) -> None:
        """A reader of committed records got a record; the marker may be known later."""
        found = self.seen.partitions.get(partition)
        is_visible = None if found is None else found.visible.get(offset)
        if is_visible is None:
            self._read[partition, offset] = None
        else:
            self._hold(partition, rules.read_is_committed, partition, offset, is_visible)

    def visible_end(self, partition: TopicPartition) -> int:
        """The end of what readers of committed records get."""
        found = self.seen.partitions.get(partition)
        return 0 if found is None else found.visible_end

    # ---- replicas

    def look_at(self, replica: Replica, partition: Partition, image: LogImage) -> None:
        """Compare a replica whose log is open with its bytes."""
        log, key = partition.log, partition.topic_partition
        if log is None or log.is_failed or image.end < replica.log_end or not image.batches:
            return
        indexes = [segment.txn_index for segment in log.segments() if len(segment.txn_index)]
        if not indexes and all(batch.transaction is None for batch in image.batches):
            return
        found = PartitionTransactions(image.batches)
        self._hold(key, rules.no_older_epoch, replica, image)
        highest = self._highest.get((replica.incarnation, key), 0)
        known_to = max(self._snapshot_of(replica, log, image), highest)
        stable = log.last_stable_offset
        self._hold(key, rules.stable_offset_is_the_logs, replica, found, stable, known_to)
        try:
            entries = [entry for index in indexes for entry in index.entries()]
        except OSError:
            return  # a fault of the disk keeps everyone from reading it
        start = image.batches[0].base_offset
        self._hold(key, rules.index_is_the_logs, replica, found, start, entries)

    def _snapshot_of(self, replica: Replica, log: UnifiedLog, image: LogImage) -> int:
        """The end of what the log's producers may have been read from a snapshot for."""
        place, table = (replica.incarnation, log.topic_partition), log.producers.transactions
        known = self._tables.get(place)
        if known is None or known[0] is not table:
            known = self._tables[place] = (table, image.end)
        return known[1]

    def changed(self, key: TopicPartition, before: Replica, after: Replica) -> None:
        place = after.incarnation, key
        self._highest[place] = max(self._highest.get(place, 0), after.high_watermark)
        self._hold(key, rules.stable_offset_rises, before, after)

    # ---- at rest

    def missing(self, replicas: Mapping[TopicPartition, Mapping[int, Replica]]) -> Broken | None:
        """What keeps transactions from rest."""
        for key, by_broker in replicas.items():
            leader = by_broker.get(self.seen.truths[key].state.leader)
            states = None if leader is None else rules.nothing_hangs.broken(leader)
            if states is not None:
                return rules.nothing_hangs.name, key, states
        for what, producer, is_written in self.answers.promised:
            states = rules.answered_is_written.broken(what, producer, is_written())
            if states is not None:
                return rules.answered_is_written.name, None, states
        for state in self.seen.states.values():
            for decision in state.completed:
                rule = rules.every_partition_has_its_marker
                states = rule.broken(decision, self.seen.partitions)
                if states is not None:
                    return rule.name, None, states
        return None
