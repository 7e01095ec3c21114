"""The reads and writes in ZooKeeper that any broker may make, typed.

Reads arm the given one-shot watch. A malformed znode is reported as an event and treated as absent;
its watch is armed, so that a repair is noticed. The writes that only the elected controller may
make are in `fenced_store.py`.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from barnabas_common.events import EventKind, EventLog
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.znode_json import MAX_INT
from barnabas_controller.zookeeper.requests import in_chunks, until_answered
from barnabas_controller.zookeeper.session import (
    ANY_VERSION,
    BadVersion,
    NodeExists,
    NoNode,
    Session,
    Stat,
    Watch,
)

T = TypeVar("T")


class WrittenState(NamedTuple):
    """A partition's state, and the zxid of the transaction that wrote it."""

    state: LeaderAndIsr
    zxid: int


def _written(partition: TopicPartition, data: bytes, stat: Stat) -> WrittenState:
    state = znodes.decode_state(partition, data, stat.version, stat.mzxid)
    return WrittenState(state, stat.mzxid)


def is_broker_id(name: str) -> bool:
    """Whether the name of a znode is a broker id, as brokers write it."""
    return (
        name.isascii() and name.isdigit() and name == str(int(name[:11])) and int(name) <= MAX_INT
    )


class Store:
    """Typed access in one ZooKeeper session.

    Every method raises SessionExpired after the end of the session, and retries after a connection
    loss.
    """

    def __init__(self, session: Session, events: EventLog | None = None) -> None:
        self.session = session
        self.events = EventLog() if events is None else events
        self._reported: dict[str, int] = {}

    async def create_persistent_paths(self) -> None:
        """Create the fixed top of the tree; znodes that exist stay as they are, with one exception.

        As in Kafka the data are null, because Kafka takes any data of `/latest_producer_id_block`
        for a block. Earlier versions of Barnabas left empty data there, which are replaced.
        """
        for path in znodes.PERSISTENT_PATHS:
            await self.ensure(path, None)
        found = await self.get(znodes.PRODUCER_ID_BLOCK)
        if found is not None and found[0] == b"" and found[1].version == 0:
            with contextlib.suppress(BadVersion, NoNode):
                await until_answered(lambda: self.session.set(znodes.PRODUCER_ID_BLOCK, None, 0))

    async def ensure(self, path: str, data: bytes | None = b"") -> bool:
        """Create a persistent znode and its parents unless it exists; return whether it was new."""
        try:
            await until_answered(lambda: self.session.create(path, data))
            return True
        except NodeExists:
            return False
        except NoNode:
            parent = path.rpartition("/")[0]
            if not parent:  # the chroot was deleted
                raise
            await self.ensure(parent)
            return await self.ensure(path, data)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat] | None:
        """The data and the Stat, or None without a znode (then the watch is not armed)."""
        try:
            return await until_answered(lambda: self.session.get(path, watch))
        except NoNode:
            return None

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """The Stat, or None without a znode; the watch is armed in both cases."""
        return await until_answered(lambda: self.session.exists(path, watch))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The sorted names of the children; a fixed path that was deleted is created again."""
        try:
            return await until_answered(lambda: self.session.children(path, watch))
        except NoNode:
            await self.ensure(path)
            return await until_answered(lambda: self.session.children(path, watch))

    async def put(self, path: str, data: bytes) -> None:
        """Replace the data, or create the znode; the last writer wins."""
        try:
            await until_answered(lambda: self.session.set(path, data, ANY_VERSION))
        except NoNode:
            if not await self.ensure(path, data):
                await until_answered(lambda: self.session.set(path, data, ANY_VERSION))

    async def remove(self, path: str) -> None:
        """Delete a znode without children, if it exists."""
        with contextlib.suppress(NoNode):
            await until_answered(lambda: self.session.delete(path))

    async def broker_ids(self, watch: Watch | None = None) -> list[int]:
        """The ids of the registered brokers; other names are reported and left out."""
        names = await self.children(znodes.BROKER_IDS, watch)
        for name in names:
            if not is_broker_id(name):
                self.report(MalformedZnode(f"{znodes.BROKER_IDS}/{name}", "not a broker id"))
        return sorted(int(name) for name in names if is_broker_id(name))

    async def brokers(self, watch: Watch | None = None) -> dict[int, znodes.Broker]:
        """Every registered broker by id, with its epoch."""
        found = await in_chunks(self.broker, await self.broker_ids(watch))
        return {broker.broker_id: broker for broker in found if broker is not None}

    async def broker(self, broker_id: int) -> znodes.Broker | None:
        """A registered broker with its epoch; None if it is not registered or is malformed."""
        path = znodes.broker_path(broker_id)
        return await self.read(
            path, lambda data, stat: znodes.decode_broker(broker_id, data, stat.czxid)
        )

    async def topics(self, watch: Watch | None = None) -> list[str]:
        """The sorted names of the znodes of topics; a name may be illegal."""
        return await self.children(znodes.TOPICS, watch)

    async def topic(self, topic: str, watch: Watch | None = None) -> znodes.TopicZnode | None:
        """The partitions and the id of a topic; None if it does not exist or is malformed."""
        path = znodes.topic_path(topic)
        return await self.read(path, lambda data, _: znodes.decode_topic(topic, data), watch)

    async def topic_assignments(
        self, topics: Sequence[str], watch: Watch | None = None
    ) -> dict[str, znodes.TopicZnode]:
        """The znodes of these topics; missing and malformed ones are left out."""
        found = await in_chunks(lambda topic: self.topic(topic, watch), topics)
        return {topic: node for topic, node in zip(topics, found, strict=True) if node is not None}

    async def state(self, partition: TopicPartition) -> LeaderAndIsr | None:
        """A partition's state; None without a znode or if it is malformed, which is reported."""
        path = znodes.state_path(partition)
        written = await self.read(path, lambda data, stat: _written(partition, data, stat))
        return None if written is None else written.state

    async def written_state(
        self, partition: TopicPartition, watch: Watch | None = None
    ) -> WrittenState | None:
        """A partition's state and its zxid; None without a znode; raises MalformedZnode."""
        found = await self.get(znodes.state_path(partition), watch)
        if found is None:
            return None
        return _written(partition, *found)

    async def propagate_log_dir_event(self, broker_id: int) -> None:
        """Ask the controller to send this broker all its roles again.

        The broker does so when a log directory has failed, or when replicas can be used again.
        """
        path = f"{znodes.LOG_DIR_EVENTS}/log_dir_event_"
        data = znodes.encode_log_dir_event(broker_id)
        # A second notification, if the answer to the first was lost, does no harm.
        await until_answered(lambda: self.session.create(path, data, sequential=True))

    async def propagate_isr_change(self, partitions: Sequence[TopicPartition]) -> None:
        """Notify the controller that the leader wrote these states itself."""
        path = f"{znodes.ISR_CHANGES}/isr_change_"
        data = znodes.encode_isr_change(partitions)
        await until_answered(lambda: self.session.create(path, data, sequential=True))

    async def topics_to_delete(self, watch: Watch | None = None) -> list[str]:
        return await self.children(znodes.DELETE_TOPICS, watch)

    async def topic_configs(self, topics: Sequence[str]) -> dict[str, Mapping[str, str]]:
        """The overrides of each topic; empty without a znode. Malformed ones are left out."""

        async def read(topic: str) -> dict[str, str] | None:
            path = znodes.topic_config_path(topic)
            return await self.read(path, lambda data, _: znodes.decode_config(path, data), None, {})

        found = await in_chunks(read, topics)
        return {topic: c for topic, c in zip(topics, found, strict=True) if c is not None}

    async def read(
        self,
        path: str,
        decode: Callable[[bytes, Stat], T],
        watch: Watch | None = None,
        absent: T | None = None,
    ) -> T | None:
        """The decoded data of a znode; `absent` if there is no znode, None if it is malformed.

        Malformed data are reported once: some znodes are read again until they are repaired.
        """
        found = await self.get(path, watch)
        try:
            return absent if found is None else decode(*found)
        except MalformedZnode as error:
            if found is not None and self._reported.get(path) != found[1].mzxid:
                self._reported[path] = found[1].mzxid
                self.report(error)
            return None

    def report(self, error: MalformedZnode, partition: TopicPartition | None = None) -> None:
        """Record that a malformed znode is ignored."""
        self.events.record(EventKind.ZNODE_MALFORMED, error.why, partition, path=error.path)
