"""Asks I18 and I19 of what coordinators answer, keep and write; and L8 and L9 at rest.

Every request to a coordinator is seen with its answer. An answer is judged after the turn in which
it was given: by then the checker has seen what that turn has committed.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.records import GroupKey, GroupValue, OffsetKey, OffsetValue
from barnabas_broker.coordinator.group.states import GroupState as State
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_broker.replica.partition.partitions import Partitions
from barnabas_broker.server.broker import Broker
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas_common.record.reader import Record
from barnabas_common.runtime import Message
from barnabas_common.topic_name import GROUP_METADATA_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.findings import Broken, Findings
from barnabas_simulator.invariants.groups import rules
from barnabas_simulator.invariants.groups.model import (
    NO_GENERATION,
    Committed,
    GroupState,
    GroupTruth,
    Log,
    assigned,
    assigned_by,
    identity,
    parsed,
)
from barnabas_simulator.invariants.groups.rules import Sender
from barnabas_simulator.invariants.logs.image import Images, LogImage
from barnabas_simulator.invariants.truth import Truth
from barnabas_simulator.invariants.view import Running, View

Commit = tuple[str, TopicPartition, int, str]
"""A commit by its values: group, partition, offset and metadata."""


@dataclass
class Member:
    """What a run says of a group: who lives, and what they read."""

    living: Collection[str]
    topic: str


class GroupChecks:
    """`groups`: by the committed log. `acknowledged` counts commits, by partition."""

    def __init__(
        self,
        view: View,
        findings: Findings,
        images: Images,
        truths: Mapping[TopicPartition, Truth],
    ) -> None:
        self.groups: dict[str, GroupTruth] = {}
        self.acknowledged = 0
        self._view = view
        self._findings = findings
        self._hold = findings.hold
        self._images = images
        self._truths = truths
        self._members: dict[str, Member] = {}
        self._senders: dict[Commit, list[Sender]] = {}
        self._promised: dict[Commit, None] = {}
        self._known_at: dict[tuple[str, TopicPartition], int] = {}
        self._done: dict[tuple[str, TopicPartition], set[int]] = {}
        self._owned: dict[str, dict[int, int]] = {}
        self._answers: list[Callable[[], None]] = []

    # ---- what members report

    def living(self, group: str, members: Collection[str], topic: str) -> None:
        """These are the client ids of the members that live once the faults are over."""
        self._members[group] = Member(members, topic)

    def worked(self, group: str, partition: TopicPartition, offset: int) -> None:
        """A member has worked on a record."""
        self._done.setdefault((group, partition), set()).add(offset)

    # ---- what coordinators are asked, and answer

    def __call__(self, broker: Broker, request: Message) -> Callable[[Message | None], None]:
        match request:
            case OffsetCommitRequest():
                start = self._sent(request)
                return lambda response: self._later(
                    lambda: self._committed(broker, request, response, start)
                )
            case OffsetFetchRequest():
                known_at = dict(self._known_at)
                return lambda response: self._later(
                    lambda: self._fetched(broker, response, known_at)
                )
            case SyncGroupRequest():
                return lambda response: self._later(lambda: self._synced(broker, request, response))
            case _:
                return lambda _: None

    def _later(self, judge: Callable[[], None]) -> None:
        self._answers.append(judge)

    def settle(self) -> None:
        """Judge what was answered in this turn."""
        if self._answers:
            answers, self._answers = self._answers, []
            for judge in answers:
                judge()

    def _sent(self, request: OffsetCommitRequest) -> int:
        """Remember who sends it; its record comes no earlier in the log than is returned."""
        who = identity(request.member_id, request.group_instance_id)
        for item in request.partitions:
            tp = TopicPartition(item.topic, item.partition)
            key = (request.group_id, tp, item.committed_offset, item.committed_metadata)
            self._senders.setdefault(key, []).append(Sender(who, request.generation_id))
        truth = self._truths.get(self._partition(request.group_id))
        return 0 if truth is None else truth.high_watermark

    def _committed(
        self, broker: Broker, request: OffsetCommitRequest, response: Message | None, start: int
    ) -> None:
        assert isinstance(response, OffsetCommitResponse)
        for item, result in zip(request.partitions, response.partitions, strict=True):
            if result.error_code != ErrorCode.NONE:
                continue
            group, tp = request.group_id, TopicPartition(item.topic, item.partition)
            offset, metadata = item.committed_offset, item.committed_metadata
            self.acknowledged += 1
            found = [at for at in self._truth(group).found(tp, offset, metadata) if at >= start]
            if found:
                self._acknowledge(group, tp, min(found))
            elif self._leads(group, broker.replica_manager.partitions):
                rule = rules.acknowledged_is_written
                self._hold(self._partition(group), rule, group, tp, offset, metadata, found)
            else:  # deposed, and all its followers had the record
                self._promised[group, tp, offset, metadata] = None

    def _acknowledge(self, group: str, tp: TopicPartition, at: int) -> None:
        self._known_at[group, tp] = max(at, self._known_at.get((group, tp), -1))

    def _synced(self, broker: Broker, request: SyncGroupRequest, response: Message | None) -> None:
        assert isinstance(response, SyncGroupResponse)
        if response.error_code != ErrorCode.NONE:
            return
        group, generation = request.group_id, request.generation_id
        who = identity(request.member_id, request.group_instance_id)
        given = assigned([(who, response.assignment)])
        truth, partition = self._truth(group), self._partition(group)
        self._own(group, generation, given)
        if self._leads(group, broker.replica_manager.partitions):
            rule = rules.assignment_is_written
            self._hold(partition, rule, group, generation, truth.generation)

    def _fetched(
        self,
        broker: Broker,
        response: Message | None,
        known_at: Mapping[tuple[str, TopicPartition], int],
    ) -> None:
        """What an acting coordinator shows is as new as what was acknowledged before the question.
        One that is deposed, and does not know, may show less."""
        assert isinstance(response, OffsetFetchResponse)
        for found in response.groups:
            group = found.group_id
            if found.error_code or not self._leads(group, broker.replica_manager.partitions):
                continue
            for item in found.partitions:
                tp = TopicPartition(item.topic, item.partition)
                shown, truth = item.committed_offset, self._truth(group)
                acknowledged = known_at.get((group, tp), -1)
                if not item.error_code and acknowledged >= 0:
                    at = max(truth.found(tp, shown, item.metadata), default=-1)
                    rule = rules.not_older_than_acknowledged
                    self._hold(self._partition(group), rule, group, tp, shown, at, acknowledged)

    # ---- what is committed in the log

    def exposed(self, truth: Truth, image: LogImage, start: int) -> None:
        """The high watermark of a partition has moved from `start`."""
        if truth.partition.topic != GROUP_METADATA_TOPIC:
            return
        for index in range(image.index_of(start), image.index_of(truth.high_watermark)):
            for record in image.records(index):
                self._take(truth.partition, record)

    def _take(self, partition: TopicPartition, record: Record) -> None:
        match parsed(record):
            case GroupKey(group_id), GroupValue() as value:
                self._group_written(group_id, value)
            case GroupKey(group_id), None:
                self._truth(group_id).value = None
            case OffsetKey(group_id, topic, number), OffsetValue() as committed:
                tp = TopicPartition(topic, number)
                self._judge_commit(partition, group_id, tp, committed)
                group = self._truth(group_id)
                group.offsets[tp] = Committed(committed, record.offset)
                group.history[record.offset] = (tp, committed)
                key = (group_id, tp, committed.offset, committed.metadata)
                if key in self._promised:
                    del self._promised[key]
                    self._acknowledge(group_id, tp, record.offset)
            case OffsetKey(group_id, topic, number), None:
                tp = TopicPartition(topic, number)
                self._truth(group_id).offsets.pop(tp, None)
                self._known_at.pop((group_id, tp), None)

    def _group_written(self, group_id: str, value: GroupValue) -> None:
        group, partition = self._truth(group_id), self._partition(group_id)
        self._findings.note(f"{group_id}: generation {value.generation_id} is committed")
        before, after = group.generation, value.generation_id
        self._hold(partition, rules.generations_rise, group_id, before, after)
        if value.protocol_type == "consumer":
            self._own(group_id, value.generation_id, assigned_by(value))
        group.value = value

    def _own(self, group: str, generation: int, given: list[tuple[str, TopicPartition]]) -> None:
        owners = self._truth(group).owners.setdefault(generation, {})
        rule = rules.one_owner
        self._hold(self._partition(group), rule, group, generation, owners, given)
        owners.update((tp, member) for member, tp in given)

    def _judge_commit(
        self, partition: TopicPartition, group_id: str, tp: TopicPartition, value: OffsetValue
    ) -> None:
        group, read = self._truth(group_id), self._truths.get(tp)
        senders = self._senders.get((group_id, tp, value.offset, value.metadata), [])
        newest = group.generation if group.value and group.value.members else NO_GENERATION
        rule = rules.commit_is_current
        self._hold(partition, rule, group_id, tp, value, senders, newest, group.owners)
        if read is None:
            return
        end = max(read.high_watermark, read.claimed)
        self._hold(partition, rules.within_the_log, group_id, tp, value, end)
        done = self._done.get((group_id, tp))
        if done is not None and read.keyed is None:
            first = next((offset for offset in range(value.offset) if offset not in done), end)
            self._hold(partition, rules.nothing_skipped, group_id, tp, value, first)

    # ---- what coordinators keep in memory

    def look_at(self, running: Running) -> None:
        """After each turn of a broker: has it loaded groups?"""
        if running.groups is None:
            return
        known = self._owned.get(running.incarnation)
        owned = running.groups.owned
        if known == owned or (known is None and not owned):
            return
        self._owned[running.incarnation] = dict(owned)
        for number, epoch in owned.items():
            before = (known or {}).get(number, -1)
            if before not in (epoch, epoch - 1):  # else it has led all the time, and read nothing
                self._loaded(running, TopicPartition(GROUP_METADATA_TOPIC, number))

    def _loaded(self, running: Running, partition: TopicPartition) -> None:
        """Compare with the log: with what is committed of it, and what is not yet."""
        truth, hosted = self._truths.get(partition), running.partitions.get(partition)
        assert running.groups is not None
        if truth is None or hosted is None or hosted.log is None:
            return
        if hosted.leadership is None or hosted.leadership.epoch != truth.state.leader_epoch:
            return
        image = self._images.of(running.broker_id, hosted.log.directory, hosted.log.segments())
        count = self._partition_count()
        here = {n: g for n, g in self.groups.items() if partition_of_key(n, count) == partition[1]}
        log = Log(here)
        for index in range(image.index_of(truth.high_watermark), len(image.batches)):
            for record in image.records(index):
                log.take(record)
        written = log.groups()
        loaded = {g.group_id: g for g in running.groups.all() if g.group_id in written}
        for group_id, group in written.items():
            known = loaded.get(group_id)
            state = None if known is None else _state_of(known, group)
            self._hold(partition, rules.reload_equals_log, group_id, state, group)

    def sample(self) -> None:
        """Compare what acting coordinators know of offsets with the log."""
        for running in self._view.running():
            for group in running.groups.all() if running.groups is not None else ():
                if self._leads(group.group_id, running.partitions):
                    self._compare_offsets(group)

    def _compare_offsets(self, group: Group) -> None:
        name, history = group.group_id, self._truth(group.group_id).history
        partition = self._partition(name)
        for tp, commit in group.committed.offsets.items():
            known, acknowledged = commit.value, self._known_at.get((name, tp), -1)
            rule = rules.not_older_than_acknowledged
            self._hold(partition, rule, name, tp, known.offset, commit.at, acknowledged)
            if commit.at in history:  # else it was loaded, and could not be committed yet
                committed = Committed(known, commit.at)
                written = history[commit.at]
                self._hold(partition, rules.memory_is_of_the_log, name, tp, committed, written)

    # ---- at rest

    def missing(self) -> Broken | None:
        """What keeps a group with living members from rest."""
        for commit in self._promised:
            written = rules.acknowledged_is_written
            return self._broken(written.name, commit[0], written.broken(*commit, []))
        for name, members in self._members.items():
            group = self._coordinated(name)
            if group is None:
                rule, states = rules.group_is_stable.name, f"nobody coordinates {name}"
                return self._broken(rule, name, states)
            found = self._group_missing(group, members)
            if found is not None:
                return found
        return None

    def _group_missing(self, group: Group, members: Member) -> Broken | None:
        name = group.group_id
        present = [member.client_id for member in group.members.values()]
        stable = rules.group_is_stable
        states = stable.broken(name, group.state.value, present, members.living)
        if states is not None:
            return self._broken(stable.name, name, states)
        for tp, truth in self._truths.items():
            if tp.topic == members.topic:
                commit = group.committed.offsets.get(tp)
                committed = rules.NOT_COMMITTED if commit is None else commit.value.offset
                caught_up = rules.group_has_caught_up
                states = caught_up.broken(name, tp, committed, truth.high_watermark)
                if states is not None:
                    return self._broken(caught_up.name, name, states)
        return None

    def _broken(self, rule: str, group: str, states: str | None) -> Broken:
        return rule, self._partition(group), states or ""

    def _coordinated(self, group: str) -> Group | None:
        """The group at its acting coordinator."""
        for running in self._view.running():
            if running.groups is not None and self._leads(group, running.partitions):
                return running.groups.get(group)
        return None

    # ---- which partition, and who leads it

    def _truth(self, group: str) -> GroupTruth:
        return self.groups.setdefault(group, GroupTruth())

    def _partition_count(self) -> int:
        return sum(tp.topic == GROUP_METADATA_TOPIC for tp in self._truths)

    def _partition(self, group: str) -> TopicPartition:
        number = partition_of_key(group, max(self._partition_count(), 1))
        return TopicPartition(GROUP_METADATA_TOPIC, number)

    def _leads(self, group: str, partitions: Partitions) -> bool:
        """Whether a broker coordinates the group, by ZooKeeper."""
        partition = self._partition(group)
        truth, hosted = self._truths.get(partition), partitions.get(partition)
        leadership = None if hosted is None else hosted.leadership
        if truth is None or leadership is None:
            return False
        return leadership.epoch == truth.state.leader_epoch


def _state_of(group: Group, written: GroupState) -> GroupState:
    """A loaded group; a request in the same turn may already have begun a rebalance."""
    offsets = {tp: Committed(c.value, c.at) for tp, c in group.committed.offsets.items()}
    if group.state not in (State.STABLE, State.EMPTY):
        return written._replace(offsets=offsets)
    assignments = {member.member_id: member.assignment for member in group.members.values()}
    return GroupState(group.generation_id, assignments, offsets)
