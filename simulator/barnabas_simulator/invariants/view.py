"""What the checker observes: the running brokers, the state znodes, the disks.

`View` is all it needs, so that a test without a controller can be checked too; `ClusterView` is the
view of a `SimulatedCluster`.
"""

import contextlib
from collections.abc import Container, Sequence
from typing import NamedTuple, Protocol

from barnabas_broker.coordinator.group.groups import Groups
from barnabas_broker.replica.partition.partition import Partition
from barnabas_broker.replica.partition.partitions import Partitions
from barnabas_broker.server.broker import Broker
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.zookeeper.session import EventType, WatchEvent

from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.disk import MemoryDisk
from barnabas_simulator.zookeeper.tree import Tree

NO_CONTROLLER = -1
_TOPICS = "/brokers/topics/"


class Running(NamedTuple):
    """A broker's process; `incarnation` is unique among all processes. `broker_epoch` is -1 before
    it is registered, `groups` None without a group coordinator. `damaged`: the partitions whose
    log it has found damaged, and not truncated yet."""

    broker_id: int
    incarnation: str
    partitions: Partitions
    broker_epoch: int = -1
    groups: Groups | None = None
    damaged: Container[TopicPartition] = ()

    def waits_for_truncation(self, partition: Partition) -> bool:
        """Whether its log is damaged and serves no readers: what it says of producers is incomplete
        until it is truncated."""
        return partition.leadership is None and partition.topic_partition in self.damaged


class StateChange(NamedTuple):
    """A partition's state znode was written, or deleted if `state` is None, while
    `/controller_epoch` held `controller_epoch`.

    Or its replicas changed; in that case `controller_epoch` is NO_CONTROLLER. `topic_id`: None if
    unknown.
    """

    partition: TopicPartition
    state: LeaderAndIsr | None
    replicas: tuple[int, ...]
    controller_epoch: int
    topic_id: str | None = None


class View(Protocol):
    """`changes` returns each change of a state znode once, in order. `zxid` is ZooKeeper's newest
    transaction, `most_skew_ms` how wrong any broker's clock was at most."""

    @property
    def disks(self) -> dict[int, MemoryDisk]: ...

    @property
    def zxid(self) -> int: ...

    @property
    def most_skew_ms(self) -> int: ...

    def running(self) -> Sequence[Running]: ...

    def changes(self) -> Sequence[StateChange]: ...

    def states(self) -> Sequence[StateChange]: ...

    def is_to_be_deleted(self, topic: str) -> bool: ...

    def lost_nothing_since(self, broker_id: int) -> int:
        """Return the broker epoch that a broker's registration names, -1 without one."""
        ...


class Replica(NamedTuple):
    """One replica in its broker's memory, at one moment. `maximal_isr`: None unless it leads."""

    broker_id: int
    incarnation: str
    leader_epoch: int
    partition_epoch: int
    log_start: int
    high_watermark: int
    log_end: int
    epochs: tuple[tuple[int, int], ...]
    led_epoch: int | None
    maximal_isr: tuple[int, ...] | None
    topic_id: str | None = None
    last_stable: int = 0

    def __str__(self) -> str:
        role = f"leads epoch {self.led_epoch}" if self.led_epoch is not None else "follows"
        return (
            f"broker {self.broker_id} {role} (leader epoch {self.leader_epoch}, partition epoch"
            f" {self.partition_epoch}): log {self.log_start}..{self.log_end}, high watermark"
            f" {self.high_watermark}, epochs {[list(entry) for entry in self.epochs]}"
            + ("" if self.maximal_isr is None else f", maximal ISR {list(self.maximal_isr)}")
        )


class Watcher(Protocol):
    """Is told what the checker sees; `before` is None at the first look."""

    def state_changed(
        self,
        partition: TopicPartition,
        before: LeaderAndIsr | None,
        state: LeaderAndIsr,
        replicas: Sequence[int],
    ) -> None: ...

    def replica_changed(self, before: Replica | None, after: Replica) -> None: ...


def replica_of(running: Running, partition: Partition) -> Replica | None:
    """Return the replica, None unless its log is open."""
    log, leadership = partition.log, partition.leadership
    if log is None:
        return None
    return Replica(
        running.broker_id,
        running.incarnation,
        partition.leader_epoch,
        partition.partition_epoch,
        log.log_start_offset,
        log.high_watermark,
        log.log_end_offset,
        tuple((entry.epoch, entry.start_offset) for entry in log.leader_epochs.entries),
        leadership.epoch if leadership is not None else None,
        leadership.isr.maximal if leadership is not None else None,
        log.topic_id,
        log.last_stable_offset,
    )


class Seen:
    """A replica at the last look. Its bare values show quickly whether it has changed."""

    __slots__ = (
        "end",
        "epochs_version",
        "high_watermark",
        "isr",
        "leader_epoch",
        "leadership",
        "log",
        "partition",
        "partition_epoch",
        "replica",
        "start",
    )

    def __init__(self, partition: Partition, replica: Replica | None) -> None:
        self.partition = partition
        self.replica = replica
        self.log = log = partition.log
        self.leadership = leadership = partition.leadership
        self.isr = leadership.isr if leadership is not None else None
        self.leader_epoch = partition.leader_epoch
        self.partition_epoch = partition.partition_epoch
        if log is not None:
            self.start, self.high_watermark = log.log_start_offset, log.high_watermark
            self.end, self.epochs_version = log.log_end_offset, log.leader_epochs.version

    def is_current(self, partition: Partition) -> bool:
        log, leadership = partition.log, partition.leadership
        return (
            log is self.log
            and leadership is self.leadership
            and partition is self.partition
            and (leadership is None or leadership.isr is self.isr)
            and partition.leader_epoch == self.leader_epoch
            and partition.partition_epoch == self.partition_epoch
            and (
                log is None
                or (
                    log.high_watermark == self.high_watermark
                    and log.log_end_offset == self.end
                    and log.log_start_offset == self.start
                    and log.leader_epochs.version == self.epochs_version
                )
            )
        )


class ClusterView:
    """See the module; created before the cluster starts."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._changes: list[StateChange] = []
        self._topics: dict[str, znodes.TopicZnode] = {}
        self._population: tuple[int, ...] = ()
        self._members: list[tuple[Broker, Running]] = []
        self._running: list[Running] = []
        cluster.zookeeper.observers.append(self._observe)

    @property
    def _tree(self) -> Tree:
        return self._cluster.zookeeper.tree  # another one once a copy was restored

    def states(self) -> list[StateChange]:
        """Return all states as they are now, without a controller that has written them."""
        topics = self._tree.find(znodes.TOPICS)
        found = []
        for topic in sorted(topics.children) if topics is not None else ():
            partitions = self._tree.find(znodes.partitions_path(topic))
            for number in sorted(partitions.children) if partitions is not None else ():
                with contextlib.suppress(MalformedZnode):  # the copy is of a damaged one
                    change = self._change_of(TopicPartition(topic, int(number)))
                    if change.state is not None:
                        found.append(change._replace(controller_epoch=NO_CONTROLLER))
        return found

    @property
    def disks(self) -> dict[int, MemoryDisk]:
        return self._cluster.disks

    @property
    def zxid(self) -> int:
        return self._tree.zxid

    @property
    def most_skew_ms(self) -> int:
        return self._cluster.most_skew_ms

    def running(self) -> Sequence[Running]:
        """The same list until something has changed: it is asked for after every turn."""
        if not self._is_current():
            self._population = self._cluster.population
            self._members = [
                (broker, _running_of(incarnation, broker))
                for incarnation, broker in self._cluster.brokers().items()
            ]
            self._running = [running for _, running in self._members]
        return self._running

    def _is_current(self) -> bool:
        for broker, running in self._members:
            if broker.membership.broker_epoch != running.broker_epoch:
                return False
        return self._population == self._cluster.population

    def changes(self) -> Sequence[StateChange]:
        changes = self._changes
        if changes:
            self._changes = []
        return changes

    def is_to_be_deleted(self, topic: str) -> bool:
        return self._tree.find(znodes.delete_topic_path(topic)) is not None

    def lost_nothing_since(self, broker_id: int) -> int:
        node = self._tree.find(znodes.broker_path(broker_id))
        if node is None:
            return -1
        try:
            return znodes.decode_broker(broker_id, node.data, node.czxid).lost_nothing_since
        except MalformedZnode:  # damaged by a fault; nothing is excused
            return -1

    def _observe(self, events: list[WatchEvent]) -> None:
        for event in events:
            if event.path.endswith("/state") and event.type is not EventType.CHILDREN:
                partition = _partition_of(event.path)
                if partition is not None:
                    with contextlib.suppress(MalformedZnode):  # damaged by a fault
                        change = self._change_of(partition)
                        if self._cluster.zookeeper.is_by_tool:  # which asks no controller
                            change = change._replace(controller_epoch=NO_CONTROLLER)
                        self._changes.append(change)
            elif event.type is EventType.CHANGED and event.path.startswith(_TOPICS):
                self._replicas_changed(event.path.removeprefix(_TOPICS))

    def _replicas_changed(self, topic: str) -> None:
        node = self._tree.find(znodes.topic_path(topic))
        if node is None or "/" in topic:
            return
        with contextlib.suppress(MalformedZnode):
            for number in znodes.decode_topic(topic, node.data).partitions:
                change = self._change_of(TopicPartition(topic, number))
                if change.state is not None:
                    self._changes.append(change._replace(controller_epoch=NO_CONTROLLER))

    def _change_of(self, partition: TopicPartition) -> StateChange:
        node = self._tree.find(znodes.state_path(partition))
        topic = self._tree.find(znodes.topic_path(partition.topic))
        epoch = self._tree.find(znodes.CONTROLLER_EPOCH)
        state, replicas, topic_id = None, tuple[int, ...](), None
        if node is not None:
            state = znodes.decode_state(partition, node.data, node.version, node.mzxid)
        decoded = self._decoded(partition.topic, topic.data) if topic is not None else None
        if decoded is not None:
            topic_id = decoded.topic_id
            if partition.partition in decoded.partitions:
                replicas = tuple(decoded.partitions[partition.partition].replicas)
        number = NO_CONTROLLER
        if epoch is not None:
            with contextlib.suppress(MalformedZnode):
                number = znodes.decode_controller_epoch(epoch.data)
        return StateChange(partition, state, replicas, number, topic_id)

    def _decoded(self, topic: str, data: bytes) -> znodes.TopicZnode | None:
        """Return the topic; while its znode is damaged, as it was before."""
        with contextlib.suppress(MalformedZnode):
            self._topics[topic] = znodes.decode_topic(topic, data)
        return self._topics.get(topic)


def _partition_of(path: str) -> TopicPartition | None:
    """Parse `/brokers/topics/<topic>/partitions/<number>/state`."""
    parts = path.split("/")
    if len(parts) == 7 and parts[1:3] == ["brokers", "topics"] and parts[5].isdigit():
        return TopicPartition(parts[3], int(parts[5]))
    return None


def _running_of(incarnation: str, broker: Broker) -> Running:
    manager, epoch = broker.replica_manager, broker.membership.broker_epoch
    groups = broker.groups.groups
    return Running(
        broker.broker_id, incarnation, manager.partitions, epoch, groups, manager.damaged
    )
