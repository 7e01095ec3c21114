"""docs/configuration.md and docs/events.md describe every key, limit and kind of event."""

import re
from collections.abc import Mapping
from pathlib import Path

from barnabas_broker.api.transactions.write_txn_markers import _MOST_MARKERS
from barnabas_broker.config.key import MAX_INT, MAX_LONG, Key
from barnabas_broker.config.keys import BROKER_KEYS, NOT_BUILT
from barnabas_broker.config.log_config import TOPIC_KEYS
from barnabas_broker.coordinator.group.coordinator import _ANY_UUID, _MOST_PROTOCOLS
from barnabas_broker.coordinator.record_fields import MAX_STRING_BYTES
from barnabas_broker.log.record_validation import (
    MAX_UNPACKED_IN_REQUEST,
    MAX_UNPACKED_SIZE,
    MOST_BATCHES,
)
from barnabas_broker.replica.serve.consumer_fetch import MAX_WAIT_SECONDS
from barnabas_broker.rpc.acceptor import MIB, Limits
from barnabas_broker.rpc.grpc_server import MAX_STREAMS
from barnabas_common.events.event import LOG_LEVELS, EventKind
from barnabas_common.events.event_log import MOST_CHARACTERS, MOST_ITEMS
from barnabas_common.transport.item_limit import MAX_ITEMS
from barnabas_common.transport.stream import MAX_ANSWER_BYTES
from barnabas_controller.topics.admin_zk_client import MAX_ZNODE_BYTES

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


def test_the_fixed_limits_are_those_of_the_code() -> None:
    page = (DOCS / "configuration.md").read_text()
    rows = re.findall(r"^\| .+ \| (.+) \| .+ \|$", page.split("## Fixed limits")[1], re.MULTILINE)
    of_stream, of_broker = Limits().stream_bytes // MIB, Limits().broker_bytes // MIB
    assert rows[2:] == [
        f"{MAX_ITEMS:,}",
        f"{MOST_BATCHES:,}",
        f"{MAX_UNPACKED_IN_REQUEST // MIB} MiB",
        f"{MAX_UNPACKED_SIZE // MIB} MiB, or `max.message.bytes` if that is more",
        f"{MAX_STRING_BYTES:,} bytes",
        f"{MAX_STRING_BYTES:,} bytes",
        f"{MAX_STRING_BYTES - len(f'-{_ANY_UUID}'):,} bytes",
        f"{_MOST_PROTOCOLS:,}",
        f"{_MOST_MARKERS:,}",
        f"{MAX_ZNODE_BYTES:,} characters",
        f"{MAX_ANSWER_BYTES // (1024 * MIB)} GiB",
        f"{MAX_STREAMS}",
        f"{MAX_WAIT_SECONDS:g} s",
        f"{Limits().broker_requests:,} per broker",
        f"{of_stream} MiB per stream, {of_broker} MiB for all clients of a broker",
        f"{Limits().longest_stall:g} s",
        f"{MOST_CHARACTERS:,} characters; {MOST_ITEMS:,} items",
    ]


def test_every_kind_of_event_is_documented_with_its_log_level() -> None:
    page = (DOCS / "events.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| ([A-Za-z ]+) \| .{10,}\|$", page, re.MULTILINE))
    assert rows == {kind.value: _LEVELS[level] for kind, level in LOG_LEVELS.items()}
    assert list(rows) == [kind.value for kind in EventKind], "in the order of EventKind"
