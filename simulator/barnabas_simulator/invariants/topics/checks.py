"""Asks I26 and I27: of each replica that changes, and of each topic that is made again."""

from collections.abc import Callable, Mapping

from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.findings import Findings
from barnabas_simulator.invariants.logs.image import LogImage
from barnabas_simulator.invariants.topics import rules
from barnabas_simulator.invariants.truth import Truth
from barnabas_simulator.invariants.view import Replica, StateChange, View, replica_of
from barnabas_simulator.loop import VirtualClock


class TopicChecks:
    """Nothing is asked of topics that were never deleted, and are not named to `retain`."""

    def __init__(
        self, view: View, findings: Findings, truths: Mapping[TopicPartition, Truth]
    ) -> None:
        self._view = view
        self._hold = findings.hold
        self._truths = truths
        self._gone: dict[TopicPartition, list[frozenset[bytes]]] = {}
        """Of each earlier incarnation what was acknowledged."""
        self._looked_at: dict[TopicPartition, int] = {}
        self._retained: dict[str, rules.Retained] = {}
        self._timestamps: dict[TopicPartition, dict[int, int]] = {}
        self._noted_up_to: dict[TopicPartition, int] = {}

    def retain(self, topic: str, retention_ms: int, retention_bytes: int) -> None:
        """The topic's records may be deleted by these limits; -1 is none."""
        self._retained[topic] = rules.Retained(retention_ms, retention_bytes)

    # ---- incarnations

    def state_changed(self, change: StateChange, truth: Truth | None) -> None:
        """A partition's znode was written or deleted; `truth` is what was known of it."""
        key = change.partition
        if truth is not None:
            self._excuse_deletion(truth)
        if change.state is None:
            if truth is not None:
                self._gone.setdefault(key, []).append(frozenset(truth.acked.values()))
                self._looked_at[key] = 0
        elif truth is None and key in self._gone:
            for running in self._view.running():
                partition = running.partitions.get(key)
                replica = None if partition is None else replica_of(running, partition)
                if replica is not None:
                    self._hold(key, rules.leads_the_present_one, replica, change.topic_id)

    def _excuse_deletion(self, truth: Truth) -> None:
        """Once its deletion is asked for, a topic's records may go; a new controller may let a
        broker that has deleted its replica begin an empty one until the deletion goes on."""
        if self._view.is_to_be_deleted(truth.partition.topic):
            truth.unclean_epoch, truth.forked = truth.state.leader_epoch, True

    def gone(self, partition: TopicPartition) -> frozenset[bytes]:
        """What was acknowledged in the incarnations that have gone."""
        return frozenset().union(*self._gone.get(partition, ()))

    def read(
        self, partition: TopicPartition, offset: int, label: bytes, gone: frozenset[bytes]
    ) -> None:
        """A reader has read a record; what is `gone` had gone when it began."""
        self._hold(partition, rules.reader_gets_the_present_one, offset, label, gone)

    # ---- replicas

    def replica_changed(
        self, truth: Truth, replica: Replica, image: Callable[[], LogImage]
    ) -> None:
        key = truth.partition
        self._excuse_deletion(truth)
        if key in self._gone:
            self._hold(key, rules.leads_the_present_one, replica, truth.topic_id)
            looked_at = self._looked_at[key]
            if truth.high_watermark > looked_at:
                self._looked_at[key] = truth.high_watermark
                new = {o: v for o, v in truth.values.items() if o >= looked_at}
                self._hold(key, rules.nothing_comes_back, replica, new, self.gone(key))
        retained = self._retained.get(key.topic)
        if retained is not None:
            self._check_start(truth, replica, image(), retained)

    def _check_start(
        self, truth: Truth, replica: Replica, image: LogImage, retained: rules.Retained
    ) -> None:
        key, known = truth.partition, self._timestamps.setdefault(truth.partition, {})
        first = self._noted_up_to.get(key, 0)
        # A leader may commit and delete a record in one turn. What is not committed yet may still
        # be replaced by another record, and is noted again.
        end = truth.high_watermark if replica.led_epoch is None else replica.log_end
        for record in image.entries_between(first, end):
            known[record.offset] = record.timestamp
        self._noted_up_to[key] = max(first, truth.high_watermark)
        bound = max(truth.high_watermark, truth.claimed)
        self._hold(key, rules.start_is_committed, replica, bound)
        if replica.log_start <= truth.log_start:
            return  # another log has started there, or later
        batches = [b for b in image.batches if b.base_offset >= replica.log_start]
        latest = VirtualClock().wall_ms() + self._view.most_skew_ms
        self._hold(
            key,
            rules.may_start_there,
            replica,
            batches,
            known,
            truth.log_start,
            retained,
            latest,
        )
        truth.log_start = replica.log_start

    def skipped(
        self, partition: TopicPartition, expected: int, offset: int, to_the_end: bool
    ) -> None:
        """A reader whose position was `expected` has got the record at `offset` next."""
        truth = self._truths.get(partition)
        allowed = 0 if truth is None else truth.log_start
        rule = rules.reader_skips_what_may_be_gone
        self._hold(partition, rule, expected, offset, allowed, to_the_end)
