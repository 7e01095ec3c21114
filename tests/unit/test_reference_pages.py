"""docs/configuration.md and docs/events.md describe every key and every kind of event."""

import re
from collections.abc import Mapping
from pathlib import Path

from barnabas_broker.config.key import MAX_INT, MAX_LONG, Key
from barnabas_broker.config.keys import BROKER_KEYS, NOT_BUILT
from barnabas_broker.config.log_config import TOPIC_KEYS
from barnabas_common.events.event import LOG_LEVELS, EventKind

DOCS = Path(__file__).parents[2] / "docs"
_LEVELS = {0: "never logged", 20: "INFO", 30: "WARNING", 40: "ERROR"}


def key_row(key: Key) -> str:  # type: ignore[type-arg]
    dynamic = "yes" if key.dynamic else ""
    return f"| `{key.name}` | {_default(key)} | {dynamic} | {key.doc.replace('|', chr(92) + '|')} |"


def _default(key: Key) -> str:  # type: ignore[type-arg]
    value = key.default
    if value is None or (key.is_list and not isinstance(value, str)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return {MAX_INT: "2^31 - 1", MAX_LONG: "2^63 - 1"}.get(value, str(value))


def _missing(page: str, keys: Mapping[str, Key]) -> list[str]:  # type: ignore[type-arg]
    return [row for key in keys.values() if (row := key_row(key)) not in page]


def test_every_configuration_key_is_documented_with_its_default() -> None:
    page = (DOCS / "configuration.md").read_text()
    brokers, topics = page.split("## Topics")
    assert not _missing(brokers, BROKER_KEYS)
    assert not _missing(topics, TOPIC_KEYS)
    named = re.findall(r"^\| `([a-z.]+)` \|", page, re.MULTILINE)
    assert len(named) == len(BROKER_KEYS) + len(TOPIC_KEYS), "a row without a key"
    assert all(f"`{name}`" in page for name in NOT_BUILT)


def test_every_kind_of_event_is_documented_with_its_log_level() -> None:
    page = (DOCS / "events.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| ([A-Za-z ]+) \| .{10,}\|$", page, re.MULTILINE))
    assert rows == {kind.value: _LEVELS[level] for kind, level in LOG_LEVELS.items()}
    assert list(rows) == [kind.value for kind in EventKind], "in the order of EventKind"
