"""What is committed in `__consumer_offsets`, record by record: I18 and I19 in the log's order."""

from barnabas_broker.coordinator.group.records import GroupKey, GroupValue, OffsetKey, OffsetValue
from barnabas_common.record.reader import Record
from barnabas_common.topic_name import GROUP_METADATA_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.groups import rules
from barnabas_simulator.invariants.groups.model import (
    NO_GENERATION,
    Committed,
    Undecided,
    assigned_by,
    parsed,
)
from barnabas_simulator.invariants.groups.seen import GroupsSeen
from barnabas_simulator.invariants.logs.image import LogImage
from barnabas_simulator.invariants.truth import Truth


class Written:
    """Takes every record once, when the high watermark has passed it."""

    def __init__(self, seen: GroupsSeen) -> None:
        self._seen = seen
        self._hold = seen.findings.hold

    def exposed(self, truth: Truth, image: LogImage, start: int) -> None:
        """The high watermark of a partition has moved from `start`."""
        if truth.partition.topic != GROUP_METADATA_TOPIC:
            return
        for index in range(image.index_of(start), image.index_of(truth.high_watermark)):
            batch, records = image.batches[index], image.records(index)
            if batch.transaction is not None and batch.transaction.commit is None:
                for record in records:
                    self._undecided(truth.partition, record)
            undecided = self._seen.undecided.setdefault(truth.partition, Undecided())
            for record in undecided.decided(batch, records):
                if batch.transaction is None:
                    self._take(truth.partition, record)
                else:
                    self._decided(record)

    def _undecided(self, partition: TopicPartition, record: Record) -> None:
        """A commit waits for its transaction: it is judged now, and counts with the marker."""
        match parsed(record):
            case OffsetKey(group_id, topic, number), OffsetValue() as value:
                tp = TopicPartition(topic, number)
                self._judge_commit(partition, group_id, tp, value)
                self._seen.truth(group_id).in_transactions[record.offset] = (tp, value)
                self._seen.promised.pop((group_id, tp, value.offset, value.metadata), None)

    def _decided(self, record: Record) -> None:
        """A commit whose transaction is committed; a later one may have been stored before."""
        match parsed(record):
            case OffsetKey(group_id, topic, number), OffsetValue() as value:
                tp, group = TopicPartition(topic, number), self._seen.truth(group_id)
                group.history[record.offset] = (tp, value)
                if tp not in group.offsets or group.offsets[tp].at < record.offset:
                    group.offsets[tp] = Committed(value, record.offset)

    def _take(self, partition: TopicPartition, record: Record) -> None:
        seen = self._seen
        match parsed(record):
            case GroupKey(group_id), GroupValue() as value:
                self._group_written(partition, group_id, value)
            case GroupKey(group_id), None:
                seen.truth(group_id).value = None
            case OffsetKey(group_id, topic, number), OffsetValue() as committed:
                tp = TopicPartition(topic, number)
                self._judge_commit(partition, group_id, tp, committed)
                group = seen.truth(group_id)
                group.offsets[tp] = Committed(committed, record.offset)
                group.history[record.offset] = (tp, committed)
                key = (group_id, tp, committed.offset, committed.metadata)
                if key in seen.promised:
                    del seen.promised[key]
                    seen.acknowledge(group_id, tp, record.offset)
            case OffsetKey(group_id, topic, number), None:
                tp = TopicPartition(topic, number)
                seen.truth(group_id).offsets.pop(tp, None)
                seen.known_at.pop((group_id, tp), None)

    def _group_written(self, partition: TopicPartition, group_id: str, value: GroupValue) -> None:
        group = self._seen.truth(group_id)
        self._seen.findings.note(f"{group_id}: generation {value.generation_id} is committed")
        before, after = group.generation, value.generation_id
        self._hold(partition, rules.generations_rise, group_id, before, after)
        if value.protocol_type == "consumer":
            self._seen.own(group_id, value.generation_id, assigned_by(value))
        group.value = value

    def _judge_commit(
        self, partition: TopicPartition, group_id: str, tp: TopicPartition, value: OffsetValue
    ) -> None:
        seen, group = self._seen, self._seen.truth(group_id)
        senders = seen.senders.get((group_id, tp, value.offset, value.metadata), [])
        newest = group.generation if group.value and group.value.members else NO_GENERATION
        rule = rules.commit_is_current
        self._hold(partition, rule, group_id, tp, value, senders, newest, group.owners)
        read = seen.truths.get(tp)
        if read is None:
            return
        end = max(read.high_watermark, read.claimed)
        self._hold(partition, rules.within_the_log, group_id, tp, value, end)
        done = seen.done.get((group_id, tp))
        if done is not None and read.keyed is None:
            first = next((offset for offset in range(value.offset) if offset not in done), end)
            self._hold(partition, rules.nothing_skipped, group_id, tp, value, first)
