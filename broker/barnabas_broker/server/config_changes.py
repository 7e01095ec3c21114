"""Dynamic configuration: the broker follows `/config`, one ZooKeeper session after the other.

In a new session the broker first arms the watch on `/config/changes` and then reads everything
again, so that it misses no change that was announced while it had no session. From then on it reads
the entity that a notification names. An entity that is malformed keeps its last valid values, and
its znode is watched until it is repaired.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from barnabas_common.events import EventKind, EventLog
from barnabas_common.runtime import TaskScope
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store.config_store import (
    BROKER_DEFAULT,
    ConfigNotifications,
    broker_entity,
    entity_path,
    topic_entity,
)
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import decode_config
from barnabas_controller.zookeeper.requests import in_chunks
from barnabas_controller.zookeeper.session import SessionExpired, WatchEvent

from barnabas_broker.config import (
    DynamicConfig,
    InvalidConfig,
    LogConfig,
    Source,
    parse_topic_overrides,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConfigListeners:
    """The functions that apply changes.

    `configure_logs(topic, config_of)` changes the open logs of a topic, or of all topics for None;
    `topic_changed` and `broker_changed` apply everything else. `usable_again` is called when a
    topic whose logs could not be opened has valid settings again.
    """

    open_topics: Callable[[], list[str]]
    configure_logs: Callable[[str | None, Callable[[str], LogConfig]], Awaitable[None]]
    topic_changed: Callable[[str, Mapping[str, str]], None]
    broker_changed: Callable[[], None]
    usable_again: Callable[[], None]


class _Following:
    """One session: the entities to read in it, and the event that is set when there are some."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.alarm = asyncio.Event()
        self.repaired: dict[str, None] = {}
        self._seen: dict[str, int] = {}
        self._notifications = ConfigNotifications(store)

    async def news(self) -> list[str]:
        """The entities to read again."""
        repaired, self.repaired = self.repaired, {}
        announced = await self._notifications.news(lambda _: self.alarm.set())
        return list({**repaired, **dict.fromkeys(announced)})

    async def read(self, entity: str) -> dict[str, str]:
        """The overrides of an entity, empty without a znode. Raises MalformedZnode."""
        overrides, self._seen[entity] = {}, -1
        path = entity_path(entity)
        found = await self.store.get(path)
        if found is not None:
            self._seen[entity] = found[1].mzxid
            overrides = decode_config(path, found[0])
        return overrides

    async def watch_until_repaired(self, entity: str) -> None:
        """Have the entity read again when it differs from what was read."""

        def changed(_: WatchEvent | None = None) -> None:
            self.repaired[entity] = None
            self.alarm.set()

        stat = await self.store.exists(entity_path(entity), changed)
        if (-1 if stat is None else stat.mzxid) != self._seen[entity]:
            changed()  # it changed before the watch was armed


class ConfigChanges:
    """Call `follow` with every new session. Before the first one only defaults are known."""

    def __init__(
        self,
        config: DynamicConfig,
        broker_id: int,
        events: EventLog,
        listeners: ConfigListeners,
    ) -> None:
        self._config = config
        self._events = events
        self._listeners = listeners
        self._brokers = {
            BROKER_DEFAULT: Source.CLUSTER,
            broker_entity(broker_id): Source.BROKER,
        }
        self._topics: dict[str, dict[str, str]] = {}
        self._unusable: dict[str, None] = {}
        self._unknown = dict.fromkeys(self._brokers)  # no valid settings have been read yet
        self._following: _Following | None = None
        self._tasks = TaskScope("config changes")

    async def follow(self, store: Store) -> None:
        """Read everything in a new session, then follow the changes until it ends."""
        following = _Following(store)
        self._following = following
        await following.news()  # arms the watch; everything is read below
        for entity in self._brokers:
            await self._read_broker(following, entity)
        topics = self._listeners.open_topics()
        await in_chunks(lambda topic: self._read_topic_again(following, topic), topics)
        await self._listeners.configure_logs(None, self._log_config)
        self._tasks.spawn(self._run(following), "notifications")

    async def close(self) -> None:
        """Follow no further changes."""
        await self._tasks.close()

    async def topic_overrides(self, topic: str) -> dict[str, str]:
        """Return the settings to open a topic's logs with: those read now, or the last valid ones.

        Raises SessionExpired, also between two sessions: unknown overrides are not the same as no
        overrides. Raises InvalidConfig if there never were valid values, also of the settings of
        all brokers or of this one.
        """
        if self._following is None:
            raise SessionExpired("no session yet to read the topic's configuration with")
        overrides = await self._read_topic(self._following, topic)
        unknown = [*self._unknown, *([topic_entity(topic)] if overrides is None else [])]
        if overrides is None or unknown:
            self._unusable[topic] = None
            where = entity_path(unknown[0])
            raise InvalidConfig(f"{where} cannot be used, and no earlier settings are known")
        return overrides

    # ---- following

    async def _run(self, following: _Following) -> None:
        try:
            while following is self._following:
                await following.alarm.wait()
                following.alarm.clear()
                for entity in await following.news():
                    await self._apply(following, entity)
        except SessionExpired:
            logger.info("the configuration is no longer followed: the session has ended")

    async def _apply(self, following: _Following, entity: str) -> None:
        kind, _, name = entity.partition("/")
        if entity in self._brokers:
            await self._read_broker(following, entity)
            await self._listeners.configure_logs(None, self._log_config)
        elif kind == "topics" and name:
            overrides = await self._read_topic(following, name)
            if overrides is not None:
                await self._apply_topic(name, overrides)

    async def _apply_topic(self, topic: str, overrides: dict[str, str]) -> None:
        text = ", ".join(f"{key}={value}" for key, value in overrides.items()) or "no overrides"
        cause = f"{entity_path(topic_entity(topic))} was changed"
        self._events.record(EventKind.CONFIG_CHANGED, cause, topic=topic, overrides=text)
        await self._listeners.configure_logs(topic, self._log_config)
        self._listeners.topic_changed(topic, overrides)
        if topic in self._unusable:
            del self._unusable[topic]
            self._listeners.usable_again()

    def _log_config(self, topic: str) -> LogConfig:
        return self._config.log_config(self._topics.get(topic))

    # ---- reading

    async def _read_broker(self, following: _Following, entity: str) -> None:
        source = self._brokers[entity]
        overrides = await self._read(following, entity)
        if overrides is None:
            return
        if overrides == self._config.overrides(source):
            self._is_known(entity)
            return
        try:
            self._config.override(source, overrides)
        except InvalidConfig as error:
            await self._refuse(following, entity, str(error))
            return
        self._is_known(entity)
        text = ", ".join(f"{key}={value}" for key, value in overrides.items()) or "no overrides"
        cause = f"{entity_path(entity)} was changed"
        self._events.record(EventKind.CONFIG_CHANGED, cause, entity=entity, overrides=text)
        self._listeners.broker_changed()

    def _is_known(self, entity: str) -> None:
        """Valid settings were read: logs that waited for them can be opened."""
        self._unknown.pop(entity, None)
        if self._unusable and not self._unknown:
            self._unusable.clear()
            self._listeners.usable_again()

    async def _read_topic_again(self, following: _Following, topic: str) -> None:
        before = self._topics.get(topic)
        overrides = await self._read_topic(following, topic)
        if overrides is not None and overrides != before:
            self._listeners.topic_changed(topic, overrides)

    async def _read_topic(self, following: _Following, topic: str) -> dict[str, str] | None:
        """The overrides, the last valid ones, or None if there never were valid ones."""
        entity = topic_entity(topic)
        overrides = await self._read(following, entity)
        if overrides is not None:
            try:
                parse_topic_overrides(overrides)
                self._topics[topic] = overrides
            except InvalidConfig as error:
                await self._refuse(following, entity, str(error))
        return self._topics.get(topic)

    async def _read(self, following: _Following, entity: str) -> dict[str, str] | None:
        try:
            return await following.read(entity)
        except MalformedZnode as error:
            following.store.report(error)
            await following.watch_until_repaired(entity)
            return None

    async def _refuse(self, following: _Following, entity: str, problem: str) -> None:
        self._events.record(EventKind.CONFIG_REFUSED, problem, path=entity_path(entity))
        await following.watch_until_repaired(entity)
