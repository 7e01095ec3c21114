"""The options of `spark.read.format("barnabas")`: those of Spark's own Kafka source, by name.

Spark passes option keys in lower case, whatever the user wrote.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.consumer.config import IsolationLevel

EARLIEST = -2
LATEST = -1

# {"topic": {partition: offset}}, or one of the two words for every partition.
Offsets = dict[str, dict[int, int]] | int

KNOWN = {
    name.lower(): name
    for name in (
        "bootstrap.servers",
        "kafka.bootstrap.servers",
        "isolation.level",
        "kafka.isolation.level",
        "subscribe",
        "assign",
        "startingOffsets",
        "endingOffsets",
        "failOnDataLoss",
        "minPartitions",
        "pollTimeoutMs",
    )
}


class OptionError(ValueError):
    """An option that does not exist, is missing, or has an invalid value."""


@dataclass(frozen=True)
class ReadOptions:
    """What to read.

    `topics` with None as partitions means all of a topic's. `poll_timeout_ms`: how long a task
    waits without any progress (a partition without a leader, a leader whose high watermark is
    still below the planned end) before it fails.
    """

    bootstrap_servers: str
    topics: dict[str, list[int] | None]
    starting_offsets: Offsets = EARLIEST
    ending_offsets: Offsets = LATEST
    fail_on_data_loss: bool = True
    min_partitions: int = 0
    poll_timeout_ms: int = 120_000
    isolation_level: IsolationLevel = "read_uncommitted"


def parse_options(options: Mapping[str, str]) -> ReadOptions:
    """Check the options; raises OptionError naming the invalid one."""
    given = {key.lower(): value for key, value in options.items()}
    unknown = sorted(set(given) - set(KNOWN) - {"path"})
    if unknown:
        raise OptionError(f"unknown option {unknown[0]!r}; known: {', '.join(KNOWN.values())}")
    bootstrap = given.get("bootstrap.servers") or given.get("kafka.bootstrap.servers")
    if not bootstrap:
        raise OptionError("the option bootstrap.servers is required: host:port,...")
    return ReadOptions(
        bootstrap_servers=bootstrap,
        topics=_topics(given),
        starting_offsets=_offsets(given, "startingOffsets", "earliest"),
        ending_offsets=_offsets(given, "endingOffsets", "latest"),
        fail_on_data_loss=_boolean(given, "failOnDataLoss", True),
        min_partitions=_integer(given, "minPartitions", 0),
        poll_timeout_ms=_integer(given, "pollTimeoutMs", 120_000),
        isolation_level=_isolation(given),
    )


def _isolation(given: Mapping[str, str]) -> IsolationLevel:
    level = given.get("isolation.level") or given.get("kafka.isolation.level", "read_uncommitted")
    if level == "read_committed":
        return "read_committed"
    if level == "read_uncommitted":
        return "read_uncommitted"
    raise OptionError(f"isolation.level must be read_committed or read_uncommitted, not {level!r}")


def _topics(given: Mapping[str, str]) -> dict[str, list[int] | None]:
    if ("subscribe" in given) == ("assign" in given):
        raise OptionError("give exactly one of subscribe (topic,...) and assign (JSON)")
    if "subscribe" in given:
        names = [name.strip() for name in given["subscribe"].split(",") if name.strip()]
        if not names:
            raise OptionError("subscribe names no topic")
        return dict.fromkeys(names)
    try:
        assigned: dict[str, list[int] | None] = {
            topic: [_whole(partition) for partition in partitions]
            for topic, partitions in json.loads(given["assign"]).items()
        }
    except (ValueError, TypeError, AttributeError):
        raise OptionError(
            f'assign is not JSON like {{"topic": [0, 1]}}: {given["assign"]!r}'
        ) from None
    if not assigned or not all(assigned.values()):
        raise OptionError(f"assign names no partition: {given['assign']}")
    return assigned


def _offsets(given: Mapping[str, str], name: str, default: str) -> Offsets:
    text = given.get(name.lower(), default).strip()
    words = {"earliest": EARLIEST, "latest": LATEST}
    if text.lower() in words:
        if text.lower() != default:
            raise OptionError(f"{name} of a batch cannot be {text!r}")
        return words[text.lower()]
    try:
        offsets = {
            topic: {int(partition): _whole(offset) for partition, offset in by_partition.items()}
            for topic, by_partition in json.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError):
        raise OptionError(
            f'{name} is neither "{default}" nor JSON like {{"topic": {{"0": 23}}}}: {text!r}'
        ) from None
    other = {LATEST: "latest (-1)", EARLIEST: "earliest (-2)"}
    del other[words[default]]
    for offset in [o for by_partition in offsets.values() for o in by_partition.values()]:
        if offset in other:
            raise OptionError(f"{name} of a batch cannot be {other[offset]}")
    return offsets


def _whole(number: object) -> int:
    """Return the number. Raises ValueError for 1.5 and true, which JSON has too."""
    if type(number) is not int:
        raise ValueError(number)
    return number


def _boolean(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise OptionError(f"{name} must be true or false, not {text!r}")
    return text == "true"


def _integer(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name.lower(), str(default))
    if not text.isdigit():
        raise OptionError(f"{name} must be a whole number, not {text!r}")
    return int(text)
