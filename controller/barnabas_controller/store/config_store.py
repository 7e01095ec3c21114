"""The configuration overrides under `/config`: reads and changes them, and notifies all brokers.

An entity has overrides: `topics/<name>`, `brokers/<id>`, or `brokers/<default>` for all brokers. A
change writes the entity's znode and a notification, a sequential znode under `/config/changes`. The
notification only names the entity, whose znode the brokers re-read. So a late or repeated
notification does no harm.
"""

from collections.abc import Callable, Mapping
from functools import partial

from barnabas_common.errors import InvalidTopicError
from barnabas_common.topic_name import validate_topic_name

from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store.store import Store
from barnabas_controller.store.znode_json import JsonReader, encode
from barnabas_controller.store.znodes import (
    CONFIG_CHANGES,
    decode_config,
    decode_minimum_since,
    encode_config,
)
from barnabas_controller.zookeeper.requests import until_answered
from barnabas_controller.zookeeper.session import (
    BadVersion,
    Create,
    NodeExists,
    NoNode,
    Operation,
    RolledBack,
    SetData,
    Stat,
    Watch,
    ZooKeeperError,
)

BROKER_DEFAULT = "brokers/<default>"
MIN_ISR_KEY = "min.insync.replicas"
EXPIRATION_MS = 15 * 60 * 1000

Overrides = Mapping[str, str]


def topic_entity(topic: str) -> str:
    return f"topics/{topic}"


def broker_entity(broker_id: int) -> str:
    return f"brokers/{broker_id}"


def entity_path(entity: str) -> str:
    return f"/config/{entity}"


async def read_overrides(store: Store, entity: str) -> dict[str, str]:
    """The overrides of an entity, empty without a znode; raises MalformedZnode."""
    return (await _read(store, entity))[0]


async def minimum_since(store: Store, path: str) -> int:
    """The zxid of the last change that may have changed the minimum ISR in the settings at `path`;
    0 without a znode."""
    found = await store.get(path)
    return 0 if found is None else decode_minimum_since(path, found[0], found[1].mzxid)


async def _read(store: Store, entity: str) -> tuple[dict[str, str], int, Stat | None]:
    """The overrides, since when their minimum ISR is the same, and the version to overwrite."""
    path = entity_path(entity)
    found = await store.get(path)
    if found is None:
        return {}, 0, None
    data, stat = found
    return decode_config(path, data), decode_minimum_since(path, data, stat.mzxid), stat


async def change_overrides(
    store: Store, entity: str, edit: Callable[[dict[str, str]], Overrides]
) -> None:
    """Replace an entity's overrides by what `edit` returns for them, and notify all brokers.

    In Kafka the last write replaces all others. Here a write expects the version that was read, and
    after a conflict `edit` is called again, so that two changes of different keys both stay. Raises
    MalformedZnode and what `edit` raises; then nothing is written. A change that keeps the minimum
    ISR also keeps the zxid since which it is the same (`eligibility/min_isr.py`).

    Both znodes are written in one transaction. (In two in Kafka: a broker that died between them
    would leave a change that the others do not know until their next session.)
    """
    path = entity_path(entity)
    while True:
        present, minimum_since, stat = await _read(store, entity)
        edited = edit(dict(present))
        is_same_minimum = edited.get(MIN_ISR_KEY) == present.get(MIN_ISR_KEY)
        data = encode_config(edited, minimum_since if is_same_minimum else None)
        write = Create(path, data) if stat is None else SetData(path, data, stat.version)
        operations: list[Operation] = [write, notification(entity)]
        results = await until_answered(partial(store.session.multi, operations))
        errors = [r for r in results if isinstance(r, ZooKeeperError)]
        failure = next((e for e in errors if not isinstance(e, RolledBack)), None)
        if failure is None:
            return
        if isinstance(failure, NoNode):  # the entity's znode, or one above, was deleted
            await store.ensure(CONFIG_CHANGES)
            await store.ensure(path.rpartition("/")[0])
        elif not isinstance(failure, BadVersion | NodeExists):  # not a conflict, or a lost answer
            raise failure


def notification(entity: str) -> Create:
    """Makes every broker re-read the entity."""
    data = encode({"version": 2, "entity_path": entity})
    return Create(f"{CONFIG_CHANGES}/config_change_", data, sequential=True)


def decode_notification(path: str, data: bytes) -> str:
    """The changed entity. Version 1 has its type and name in two fields. Raises MalformedZnode."""
    content = JsonReader(path, data)
    if content.has("entity_path"):
        entity = content.string("entity_path")
    else:
        entity = f"{content.string('entity_type')}/{content.string('entity_name')}"
    kind, _, name = entity.partition("/")
    if kind == "topics":  # the name becomes part of a path
        try:
            validate_topic_name(name)
        except InvalidTopicError as error:
            raise content.malformed(str(error)) from None
    return entity


class ConfigNotifications:
    """Reads the notifications in one session; each is returned once, in order."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = -1

    async def news(self, watch: Watch) -> list[str]:
        """The entities changed since the last call, each once; arms `watch`.

        Deletes notifications that are 15 minutes older than the newest, because every broker with a
        session has read them by then.
        """
        names = [n for n in await self._store.children(CONFIG_CHANGES, watch) if number_of(n) >= 0]
        names.sort(key=number_of)
        if names and number_of(names[-1]) < self._last:
            self._last = -1  # the directory was deleted, and the new one counts from 0 again
        entities: dict[str, None] = {}
        for name in names:
            if number_of(name) > self._last:
                self._last = number_of(name)
                entity = await self._entity(f"{CONFIG_CHANGES}/{name}")
                if entity is not None:
                    entities[entity] = None
        await self._purge(names)
        return list(entities)

    async def _entity(self, path: str) -> str | None:
        found = await self._store.get(path)
        if found is None:
            return None
        try:
            return decode_notification(path, found[0])
        except MalformedZnode as error:
            self._store.report(error)
            return None

    async def _purge(self, names: list[str]) -> None:
        """Compare ZooKeeper's times only. (Kafka uses the broker's clock. A clock that is fast
        deletes notifications that other brokers have not read yet.)"""
        paths = [f"{CONFIG_CHANGES}/{name}" for name in names]
        newest = await self._store.exists(paths[-1]) if paths else None
        if newest is None:
            return
        for path in paths:
            stat = await self._store.exists(path)
            if stat is not None:
                if stat.created_ms + EXPIRATION_MS >= newest.created_ms:
                    return  # the later ones are younger
                await self._store.remove(path)


def number_of(name: str) -> int:
    """The sequence number at the end of a notification's name, or -1."""
    number = name.rpartition("_")[2]
    return int(number) if number.isascii() and number.isdigit() else -1
