"""What coordinators keep in memory: compared with the log after each load, and in samples."""

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.states import GroupState as State
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_common.topic_name import GROUP_METADATA_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.groups import rules
from barnabas_simulator.invariants.groups.model import Committed, GroupState, Log
from barnabas_simulator.invariants.groups.seen import GroupsSeen
from barnabas_simulator.invariants.logs.image import Images
from barnabas_simulator.invariants.view import Running, View


class Memory:
    """Looks at coordinators that lead by ZooKeeper; another one may be behind."""

    def __init__(self, seen: GroupsSeen, view: View, images: Images) -> None:
        self._seen = seen
        self._hold = seen.findings.hold
        self._view = view
        self._images = images
        self._owned: dict[str, dict[int, int]] = {}

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
        seen = self._seen
        truth, hosted = seen.truths.get(partition), running.partitions.get(partition)
        assert running.groups is not None
        if truth is None or hosted is None or hosted.log is None:
            return
        if hosted.leadership is None or hosted.leadership.epoch != truth.state.leader_epoch:
            return
        image = self._images.of(running.broker_id, hosted.log.directory, hosted.log.segments())
        count, number = seen.partition_count, partition.partition
        here = {n: g for n, g in seen.groups.items() if partition_of_key(n, count) == number}
        log = Log(here, seen.undecided.get(partition))
        for index in range(image.index_of(truth.high_watermark), len(image.batches)):
            log.take_batch(image.batches[index], image.records(index))
        for group_id, written in log.groups().items():
            group = running.groups.get(group_id)
            state = None if group is None else _state_of(group, written)
            self._hold(partition, rules.reload_equals_log, group_id, state, written)

    def sample(self) -> None:
        """Compare what is known of offsets with the log."""
        for running in self._view.running():
            for group in running.groups.all() if running.groups is not None else ():
                if self._seen.leads(group.group_id, running.partitions):
                    self._compare_offsets(group)
                    self._compare_with_markers(running, group)

    def _compare_with_markers(self, running: Running, group: Group) -> None:
        """A load may count what a marker decides that is not committed yet."""
        partition, written = self._seen.partition(group.group_id), self._seen.truth(group.group_id)
        truth, hosted = self._seen.truths[partition], running.partitions.get(partition)
        log = None if hosted is None else hosted.log
        if log is None or log.log_end_offset != truth.high_watermark:
            return
        for tp, commit in group.committed.offsets.items():
            waits = commit.at in written.in_transactions and commit.at not in written.history
            rule = rules.counted_is_decided
            self._hold(partition, rule, group.group_id, tp, commit.value, waits)

    def _compare_offsets(self, group: Group) -> None:
        name, seen = group.group_id, self._seen
        partition, history = seen.partition(name), seen.truth(name).history
        for tp, commit in group.committed.offsets.items():
            known, acknowledged = commit.value, seen.known_at.get((name, tp), -1)
            rule = rules.not_older_than_acknowledged
            self._hold(partition, rule, name, tp, known.offset, commit.at, acknowledged)
            if commit.at in history:  # else it was loaded, and could not be committed yet
                committed = Committed(known, commit.at)
                written = history[commit.at]
                self._hold(partition, rules.memory_is_of_the_log, name, tp, committed, written)


def _state_of(group: Group, written: GroupState) -> GroupState:
    """A loaded group; a request in the same turn may already have begun a rebalance."""
    offsets = {tp: Committed(c.value, c.at) for tp, c in group.committed.offsets.items()}
    if group.state not in (State.STABLE, State.EMPTY):
        return written._replace(offsets=offsets)
    assignments = {member.member_id: member.assignment for member in group.members.values()}
    return GroupState(group.generation_id, assignments, offsets)
