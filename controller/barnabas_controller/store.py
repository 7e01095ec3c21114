"""What any broker may read and write in ZooKeeper, typed.

Reads arm the given one-shot watch. A malformed znode is reported, as an event and an error in the
log, and read as absent, with its watch armed: the controller survives it and notices when it is
mended. Writes that only the
elected controller may do are in `fenced_store.py`.
"""

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from barnabas.events import EventKind, EventLog
from barnabas.topic_partition import TopicPartition

from barnabas_controller import znodes
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.gathering import in_chunks
from barnabas_controller.leader_and_isr import LeaderAndIsr
from barnabas_controller.retrying import until_answered
from barnabas_controller.znode_json import MAX_INT
from barnabas_controller.zookeeper.session import (
    ANY_VERSION,
    NodeExists,
    NoNode,
    Session,
    Stat,
    Watch,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")


class WrittenState(NamedTuple):
    """A partition's state, and the id of the transaction that wrote it."""

    state: LeaderAndIsr
    zxid: int


def is_broker_id(name: str) -> bool:
    """Whether a znode's name is a broker's id, as brokers write it."""
    return (
        name.isascii() and name.isdigit() and name == str(int(name[:11])) and int(name) <= MAX_INT
    )


class Store:
    """Typed access over one ZooKeeper session.

    Every method raises SessionExpired when the session is over; a broken connection is waited out.
    """

    def __init__(self, session: Session, events: EventLog | None = None) -> None:
        self.session = session
        self.events = EventLog() if events is None else events

    async def create_persistent_paths(self) -> None:
        """The fixed top of the tree; harmless where it exists."""
        for path in znodes.PERSISTENT_PATHS:
            await self.ensure(path)

    async def ensure(self, path: str, data: bytes = b"") -> bool:
        """Create a persistent znode, with its parents, unless it is there; whether it was new."""
        try:
            await until_answered(lambda: self.session.create(path, data))
            return True
        except NodeExists:
            return False
        except NoNode:
            parent = path.rpartition("/")[0]
            if not parent:  # even the root is missing: the chroot was deleted
                raise
            await self.ensure(parent)
            return await self.ensure(path, data)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat] | None:
        """Data and Stat, or None where there is no znode (the watch is then not armed)."""
        try:
            return await until_answered(lambda: self.session.get(path, watch))
        except NoNode:
            return None

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        return await until_answered(lambda: self.session.exists(path, watch))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The sorted names; of the fixed paths, which exist unless someone deletes them."""
        try:
            return await until_answered(lambda: self.session.children(path, watch))
        except NoNode:
            await self.ensure(path)
            return await until_answered(lambda: self.session.children(path, watch))

    async def put(self, path: str, data: bytes) -> None:
        """Replace the data whatever it was, creating the znode if need be; the last writer wins."""
        try:
            await until_answered(lambda: self.session.set(path, data, ANY_VERSION))
        except NoNode:
            if not await self.ensure(path, data):
                await until_answered(lambda: self.session.set(path, data, ANY_VERSION))

    async def remove(self, path: str) -> None:
        """Delete a leaf; absent is as good."""
        with contextlib.suppress(NoNode):
            await until_answered(lambda: self.session.delete(path))

    async def broker_ids(self, watch: Watch | None = None) -> list[int]:
        """Those of the registered brokers; names that are no ids are reported and left out."""
        names = await self.children(znodes.BROKER_IDS, watch)
        for name in names:
            if not is_broker_id(name):
                self.report(MalformedZnode(f"{znodes.BROKER_IDS}/{name}", "not a broker's id"))
        return sorted(int(name) for name in names if is_broker_id(name))

    async def brokers(self, watch: Watch | None = None) -> dict[int, znodes.Broker]:
        """Every registered broker by id, its epoch filled in."""
        found = await in_chunks(self.broker, await self.broker_ids(watch))
        return {broker.broker_id: broker for broker in found if broker is not None}

    async def broker(self, broker_id: int) -> znodes.Broker | None:
        path = znodes.broker_path(broker_id)
        return self._decoded(
            await self.get(path),
            lambda data, stat: znodes.decode_broker(broker_id, data, stat.czxid),
        )

    async def topics(self, watch: Watch | None = None) -> list[str]:
        return await self.children(znodes.TOPICS, watch)

    async def topic(self, topic: str, watch: Watch | None = None) -> znodes.TopicZnode | None:
        return self._decoded(
            await self.get(znodes.topic_path(topic), watch),
            lambda data, _: znodes.decode_topic(topic, data),
        )

    async def topic_assignments(
        self, topics: Sequence[str], watch: Watch | None = None
    ) -> dict[str, znodes.TopicZnode]:
        found = await in_chunks(lambda topic: self.topic(topic, watch), topics)
        return {topic: node for topic, node in zip(topics, found, strict=True) if node is not None}

    async def state(self, partition: TopicPartition) -> LeaderAndIsr | None:
        written = await self._written_state(partition)
        return written.state if written is not None else None

    async def states(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        return {p: written.state for p, written in (await self.written_states(partitions)).items()}

    async def written_states(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, WrittenState]:
        found = await in_chunks(self._written_state, partitions)
        return {p: written for p, written in zip(partitions, found, strict=True) if written}

    async def _written_state(self, partition: TopicPartition) -> WrittenState | None:
        try:
            return await self.written_state(partition)
        except MalformedZnode as error:
            self.report(error)
            return None

    async def written_state(
        self, partition: TopicPartition, watch: Watch | None = None
    ) -> WrittenState | None:
        """None without a znode; raises MalformedZnode."""
        found = await self.get(znodes.state_path(partition), watch)
        if found is None:
            return None
        data, stat = found
        return WrittenState(znodes.decode_state(partition, data, stat.version), stat.mzxid)

    async def note_log_dir_failure(self, broker_id: int) -> None:
        """Tell the controller that one of this broker's log directories failed."""
        path = f"{znodes.LOG_DIR_EVENTS}/log_dir_event_"
        data = znodes.encode_log_dir_event(broker_id)
        # A second note, where the answer to the first was lost, does no harm.
        await until_answered(lambda: self.session.create(path, data, sequential=True))

    async def log_dir_events(self, watch: Watch | None = None) -> dict[str, int]:
        """The notes by name, with the broker that left each (-1 where that is unreadable)."""
        found = {}
        for name in await self.children(znodes.LOG_DIR_EVENTS, watch):
            path = f"{znodes.LOG_DIR_EVENTS}/{name}"
            broker_id = self._decoded(
                await self.get(path),
                lambda data, _, path=path: znodes.decode_log_dir_event(path, data),  # type: ignore[misc]
            )
            found[name] = -1 if broker_id is None else broker_id
        return found

    async def topics_to_delete(self, watch: Watch | None = None) -> list[str]:
        return await self.children(znodes.DELETE_TOPICS, watch)

    async def topic_config(self, topic: str) -> dict[str, str]:
        """The topic's overrides; empty without a znode, or one that can be understood."""
        return await self._topic_overrides(topic) or {}

    async def topic_configs(self, topics: Sequence[str]) -> dict[str, Mapping[str, str]]:
        """The overrides of each of the topics, but for those that cannot be understood."""
        found = await in_chunks(self._topic_overrides, topics)
        return {topic: c for topic, c in zip(topics, found, strict=True) if c is not None}

    async def _topic_overrides(self, topic: str) -> dict[str, str] | None:
        path = znodes.topic_config_path(topic)
        found = await self.get(path)
        if found is None:
            return {}
        return self._decoded(found, lambda data, _: znodes.decode_config(path, data))

    def _decoded(
        self, found: tuple[bytes, Stat] | None, decode: Callable[[bytes, Stat], T]
    ) -> T | None:
        if found is None:
            return None
        try:
            return decode(*found)
        except MalformedZnode as error:
            self.report(error)
            return None

    def report(self, error: MalformedZnode, partition: TopicPartition | None = None) -> None:
        """Say loudly that a znode is left out, and why."""
        logger.error("ignoring a znode that cannot be understood: %s", error)
        self.events.record(EventKind.ZNODE_MALFORMED, error.why, partition, path=error.path)
