"""The overrides under `/config`: read, changed, and announced to every broker.

An entity is what can have overrides: `topics/<name>`, `brokers/<id>`, and for all brokers
`brokers/<default>`. Whoever changes one writes its znode and then a notification, a sequential
znode under `/config/changes`. The notification only names the entity: readers read its znode anew,
so that one that comes late or twice does no harm.
"""

from collections.abc import Callable, Mapping

from barnabas.errors import InvalidTopicError

from barnabas_controller.errors import MalformedZnode
from barnabas_controller.retrying import until_answered
from barnabas_controller.store import Store
from barnabas_controller.topic_name import validate_topic_name
from barnabas_controller.znode_json import JsonReader, encode
from barnabas_controller.znodes import CONFIG_CHANGES, decode_config, encode_config
from barnabas_controller.zookeeper.session import BadVersion, Stat, Watch

BROKER_DEFAULT = "brokers/<default>"
EXPIRATION_MS = 15 * 60 * 1000

Overrides = Mapping[str, str]


def topic_entity(topic: str) -> str:
    return f"topics/{topic}"


def broker_entity(broker_id: int) -> str:
    return f"brokers/{broker_id}"


def entity_path(entity: str) -> str:
    return f"/config/{entity}"


async def read_overrides(store: Store, entity: str) -> dict[str, str]:
    """None at all without a znode; raises MalformedZnode."""
    return (await _read(store, entity))[0]


async def _read(store: Store, entity: str) -> tuple[dict[str, str], Stat | None]:
    path = entity_path(entity)
    found = await store.get(path)
    return ({}, None) if found is None else (decode_config(path, found[0]), found[1])


async def change_overrides(
    store: Store, entity: str, edit: Callable[[dict[str, str]], Overrides]
) -> None:
    """Replace an entity's overrides by what `edit` makes of them, and announce it.

    Kafka lets the last writer win; here the write expects the version that was read, and is made
    anew on top of another's, so that two changes of different keys both stay. Raises MalformedZnode
    and what `edit` raises; then nothing is written.
    """
    while True:
        present, stat = await _read(store, entity)
        if await _replace(store, entity_path(entity), encode_config(edit(present)), stat):
            break
    await announce(store, entity)


async def _replace(store: Store, path: str, data: bytes, stat: Stat | None) -> bool:
    """Whether the znode was still as read; if not, that may be our own write, its answer lost."""
    if stat is None:
        return await store.ensure(path, data)
    try:
        await until_answered(lambda: store.session.set(path, data, stat.version))
    except BadVersion:
        return False
    return True


async def announce(store: Store, entity: str) -> None:
    """Have every broker read the entity anew; a second notification does no harm."""
    data = encode({"version": 2, "entity_path": entity})
    prefix = f"{CONFIG_CHANGES}/config_change_"
    await until_answered(lambda: store.session.create(prefix, data, sequential=True))


def decode_notification(path: str, data: bytes) -> str:
    """The entity that changed; version 1 named its type and name apart. Raises MalformedZnode."""
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
    """The notifications as one session sees them: each is reported once, in order."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = -1

    async def news(self, watch: Watch) -> list[str]:
        """The entities changed since the last call, each once; `watch` is armed by the reading.

        Removes what is 15 minutes older than the newest: by then every broker with a session has
        seen it.
        """
        names = [n for n in await self._store.children(CONFIG_CHANGES, watch) if number_of(n) >= 0]
        names.sort(key=number_of)
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
        """By ZooKeeper's clock alone. (Kafka takes the broker's: one that is fast removes what the
        others have yet to read.)"""
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
    """The sequence number at the end of a notification's name, -1 for what is none."""
    number = name.rpartition("_")[2]
    return int(number) if number.isascii() and number.isdigit() else -1
