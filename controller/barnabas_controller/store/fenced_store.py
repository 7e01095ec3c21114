"""The writes that only the elected controller may make, each fenced by its epoch.

A write is sent as `multi[check(/controller_epoch, version), write]`: after another controller has
been elected the check fails, nothing is applied, and `ControllerMoved` is raised. ZooKeeper can
check only the znode's version, not the number in it; the version grows by one with every election.

A write whose answer was lost is sent again. If the znode is then as the first attempt would have
left it, the write counts as done.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.errors import ControllerMoved, MalformedZnode
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.requests import in_chunks, until_answered
from barnabas_controller.zookeeper.session import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    OperationResult,
    RolledBack,
    SetData,
    Stat,
    TooLarge,
    ZooKeeperError,
)

logger = logging.getLogger(__name__)


class ControllerEpoch(NamedTuple):
    """The controller epoch, and the version of its znode, which fences the writes of the term."""

    number: int
    znode_version: int


# The state as written, with its new partition epoch, or ZooKeeper's error. BadVersion and
# NodeExists mean that this controller was not the last to write the znode.
StateResult = LeaderAndIsr | ZooKeeperError


def fence_of(epoch: ControllerEpoch) -> Check:
    """The first operation of every write: it fails after another controller has been elected."""
    return Check(znodes.CONTROLLER_EPOCH, epoch.znode_version)


class FencedStore:
    """The writes of one controller term; after its end every write raises ControllerMoved."""

    def __init__(self, store: Store, epoch: ControllerEpoch) -> None:
        self.store = store
        self.epoch = epoch

    async def _apply(self, operation: Operation, *others: Operation) -> OperationResult:
        operations = [fence_of(self.epoch), operation, *others]
        fence, result, *_ = await until_answered(lambda: self.store.session.multi(operations))
        if isinstance(fence, BadVersion | NoNode):
            raise ControllerMoved(
                f"{znodes.CONTROLLER_EPOCH} is no longer at epoch {self.epoch.number}"
            )
        if isinstance(fence, ZooKeeperError) and not isinstance(fence, RolledBack):
            raise fence
        return result

    async def create_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, StateResult]:
        """Create the first states of new partitions, with the two znodes above each."""
        partitions = list(states)
        topics = list(dict.fromkeys(partition.topic for partition in partitions))
        await in_chunks(self._ensure, [znodes.partitions_path(topic) for topic in topics])
        await in_chunks(self._ensure, [znodes.partition_path(p) for p in partitions])
        results = await in_chunks(lambda p: self._create_state(p, states[p]), partitions)
        return dict(zip(partitions, results, strict=True))

    async def _ensure(self, path: str) -> None:
        result = await self._apply(Create(path))
        if isinstance(result, ZooKeeperError) and not isinstance(result, NodeExists):
            logger.error("could not create %s: %r", path, result)

    async def _create_state(self, partition: TopicPartition, state: LeaderAndIsr) -> StateResult:
        state = replace(state, controller_epoch=self.epoch.number, partition_epoch=0)
        result = await self._apply(Create(znodes.state_path(partition), znodes.encode_state(state)))
        if isinstance(result, NodeExists) and await self._holds(partition, state):
            return state
        return result if isinstance(result, ZooKeeperError) else state

    async def update_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, StateResult]:
        """Replace each state if its znode still has the given `partition_epoch`."""
        partitions = list(states)
        results = await in_chunks(lambda p: self._update_state(p, states[p]), partitions)
        return dict(zip(partitions, results, strict=True))

    async def _update_state(self, partition: TopicPartition, state: LeaderAndIsr) -> StateResult:
        state = replace(state, controller_epoch=self.epoch.number)
        written = replace(state, partition_epoch=state.partition_epoch + 1)
        data = znodes.encode_state(state)
        result = await self._apply(
            SetData(znodes.state_path(partition), data, state.partition_epoch)
        )
        if isinstance(result, BadVersion) and await self._holds(partition, written):
            return written
        if isinstance(result, Stat):
            return replace(state, partition_epoch=result.version)
        return result if isinstance(result, ZooKeeperError) else written

    async def _holds(self, partition: TopicPartition, state: LeaderAndIsr) -> bool:
        """Whether the znode contains this state at this partition epoch."""
        return await self.store.state(partition) == state

    async def write_topic(self, topic: str, node: znodes.TopicZnode) -> bool:
        """Replace a topic's znode at any version; log an error and return False if that fails."""
        try:
            result = await self._apply(SetData(znodes.topic_path(topic), znodes.encode_topic(node)))
        except TooLarge as error:
            result = error
        if isinstance(result, ZooKeeperError):
            logger.error("topic %s could not be written: %r", topic, result)
        return not isinstance(result, ZooKeeperError)

    async def write_assignments(
        self, topic: str, changed: Mapping[int, znodes.ReplicaAssignment]
    ) -> bool:
        """Replace or add these partitions; log an error and return False if that fails.

        Partitions that another process adds at the same time stay. (Kafka writes the assignment
        that it has in memory, and removes them.)
        """
        path = znodes.topic_path(topic)
        while True:
            found = await self.store.get(path)
            if found is None:
                logger.error("topic %s could not be written: its znode does not exist", topic)
                return False
            data, stat = found
            try:
                node = znodes.decode_topic(topic, data)
                node = replace(node, partitions={**node.partitions, **changed})
                result = await self._apply(SetData(path, znodes.encode_topic(node), stat.version))
            except (MalformedZnode, TooLarge) as error:
                logger.error("topic %s could not be written: %s", topic, error)
                return False
            if not isinstance(result, BadVersion):  # otherwise it was changed, or written already
                return not isinstance(result, ZooKeeperError)

    async def write_node(self, path: str, data: bytes) -> None:
        """Replace the data of a znode at any version, if it exists."""
        result = await self._apply(SetData(path, data))
        if isinstance(result, ZooKeeperError) and not isinstance(result, NoNode):
            raise result

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic's configuration, its znodes, and with the last its deletion request, which
        alone would delete the next topic of that name."""
        await self.delete_tree(znodes.topic_config_path(topic))
        await self.delete_tree(znodes.topic_path(topic), Delete(znodes.delete_topic_path(topic)))
        await self.delete_topic_deletions([topic])  # if there was no topic

    async def delete_topic_deletions(self, topics: Sequence[str]) -> None:
        """Delete the deletion requests of these topics."""
        await in_chunks(self.delete_tree, [znodes.delete_topic_path(topic) for topic in topics])

    async def delete_tree(self, path: str, *others: Operation) -> None:
        """Delete a znode, if it exists, all below it, and with it the `others` if they exist."""
        while True:
            try:
                names = await until_answered(lambda: self.store.session.children(path))
            except NoNode:
                return
            await in_chunks(self.delete_tree, [f"{path}/{name}" for name in names])
            result = await self._apply(Delete(path), *others)
            others = () if isinstance(result, RolledBack) else others
            if isinstance(result, RolledBack | NotEmpty):  # a child was added in the meantime
                continue
            if isinstance(result, ZooKeeperError) and not isinstance(result, NoNode):
                raise result
            return

    async def delete_children(self, path: str) -> None:
        """Empty a directory of notifications."""
        names = await self.store.children(path)
        await in_chunks(self.delete_tree, [f"{path}/{name}" for name in names])

    async def delete_controller(self) -> None:
        """Delete `/controller`, unless the term has ended."""
        result = await self._apply(Delete(znodes.CONTROLLER))
        if isinstance(result, ZooKeeperError) and not isinstance(result, NoNode):
            raise result
