"""All options of one query, parsed and checked."""

import logging
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark_barnabas.options.kafka_settings import bootstrap_servers, consumer_options
from pyspark_barnabas.options.limits import (
    FROM_EARLIEST,
    TO_LATEST,
    Limit,
    ending_limit,
    starting_limit,
)
from pyspark_barnabas.options.names import BATCH_ONLY, SOURCES, STREAM_ONLY, check_names
from pyspark_barnabas.options.values import (
    MOST_INT,
    Given,
    OptionError,
    boolean,
    check_topic,
    duration_ms,
    integer,
    json_of,
    optional_integer,
    partition_number,
)

Mode = Literal["batch", "stream"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReadOptions:
    """What to read.

    `topics` with None as partitions means all of a topic's; with `pattern` all topics whose whole
    name matches. `poll_timeout_ms`: how long a task waits without any progress (a partition
    without a leader, a leader whose high watermark is still below the planned end) before it
    fails. `consumer`: options of the consumers that read.
    """

    bootstrap_servers: str
    topics: dict[str, list[int] | None] = field(default_factory=dict)
    pattern: str | None = None
    starting: Limit = FROM_EARLIEST
    ending: Limit = TO_LATEST
    fail_on_data_loss: bool = True
    include_headers: bool = False
    min_partitions: int = 0
    max_records_per_partition: int | None = None
    poll_timeout_ms: int = 120_000
    offset_retries: int = 3
    offset_retry_interval_ms: int = 10
    group_id: str | None = None
    group_id_prefix: str = "spark-barnabas-source"
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    consumer: Mapping[str, Any] = field(default_factory=dict)


def parse_options(options: Mapping[str, str], mode: Mode = "batch") -> ReadOptions:
    """Check the options; raises OptionError naming the invalid one."""
    given = {key.lower(): value for key, value in options.items()}
    _check_mode(given, mode)
    return _parsed(given, mode)


def check_options(options: Mapping[str, str]) -> ReadOptions:
    """Check what can be checked before it is known whether a batch or a stream reads."""
    given = {key.lower(): value for key, value in options.items()}
    later = {"startingoffsets", *(name.lower() for name in BATCH_ONLY)}
    return _parsed({key: value for key, value in given.items() if key not in later}, "batch")


def _parsed(given: Given, mode: Mode) -> ReadOptions:
    check_names(given)
    topics, pattern = _what(given)
    limits = _limits_per_trigger(given)
    return ReadOptions(
        bootstrap_servers=bootstrap_servers(given),
        topics=topics,
        pattern=pattern,
        starting=starting_limit(given, batch=mode == "batch"),
        ending=ending_limit(given),
        fail_on_data_loss=boolean(given, "failOnDataLoss", True),
        include_headers=boolean(given, "includeHeaders", False),
        min_partitions=integer(given, "minPartitions", 0, 1, MOST_INT),
        max_records_per_partition=optional_integer(given, "maxRecordsPerPartition"),
        poll_timeout_ms=_poll_timeout_ms(given),
        offset_retries=_int(given, "fetchOffset.numRetries", ReadOptions.offset_retries),
        offset_retry_interval_ms=_int(
            given, "fetchOffset.retryIntervalMs", ReadOptions.offset_retry_interval_ms
        ),
        group_id=_named(given, "kafka.group.id"),
        group_id_prefix=_named(given, "groupIdPrefix") or ReadOptions.group_id_prefix,
        max_offsets_per_trigger=limits[0],
        min_offsets_per_trigger=limits[1],
        max_trigger_delay_ms=duration_ms(
            given, "maxTriggerDelay", ReadOptions.max_trigger_delay_ms
        ),
        consumer=consumer_options(given),
    )


def _check_mode(given: Given, mode: Mode) -> None:
    if mode == "stream":
        for name in BATCH_ONLY:
            if name.lower() in given:
                raise OptionError(f"{name} is for batches: a stream has no end")
    else:
        # Spark's Kafka source warns too: one dict of options often serves both.
        for name in STREAM_ONLY:
            if name.lower() in given:
                logger.warning("%s is for streams: a batch ignores it", name)


def _what(given: Given) -> tuple[dict[str, list[int] | None], str | None]:
    named = [name for name in SOURCES if name.lower() in given]
    if len(named) != 1:
        raise OptionError(
            "give exactly one of subscribe (topic,...), subscribePattern (a regular expression)"
            f" and assign (JSON), not {' and '.join(named) or 'none'}"
        )
    text = given[named[0].lower()]
    if named[0] == "assign":
        return _assigned(text), None
    if named[0] == "subscribePattern":
        return {}, _pattern(text)
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise OptionError("subscribe names no topic")
    for name in names:
        check_topic("subscribe", name)
    return dict.fromkeys(names), None


def _assigned(text: str) -> dict[str, list[int] | None]:
    try:
        assigned: dict[str, list[int] | None] = {
            topic: sorted({partition_number(partition) for partition in partitions})
            for topic, partitions in json_of(text).items()
        }
    except (ValueError, TypeError, AttributeError):
        raise OptionError(f'assign is not JSON like {{"topic": [0, 1]}}: {text!r}') from None
    if not assigned or not all(assigned.values()):
        raise OptionError(f"assign names no partition: {text}")
    for topic in assigned:
        check_topic("assign", topic)
    return assigned


def _pattern(text: str) -> str:
    if not text.strip():
        raise OptionError("subscribePattern is empty")
    try:
        with warnings.catch_warnings():
            # Java's && and -- in a set mean something that Python does not have.
            warnings.simplefilter("error", FutureWarning)
            re.compile(text)
    except (re.error, FutureWarning) as error:
        raise OptionError(
            f"subscribePattern {text!r} is no regular expression of Python's re module, which"
            f" differs from Java's in some constructs: {error}"
        ) from None
    return text


def _limits_per_trigger(given: Given) -> tuple[int | None, int | None]:
    most = optional_integer(given, "maxOffsetsPerTrigger")
    least = optional_integer(given, "minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        raise OptionError(f"minOffsetsPerTrigger ({least}) is above maxOffsetsPerTrigger ({most})")
    return most, least


def _poll_timeout_ms(given: Given) -> int:
    old, name = "pollTimeoutMs", "kafkaConsumer.pollTimeoutMs"
    found = _int(given, name, _int(given, old, ReadOptions.poll_timeout_ms))
    if old.lower() in given and found != _int(given, old, 0):
        raise OptionError(f"{old} and {name} contradict one another")
    return found


def _int(given: Given, name: str, default: int) -> int:
    return integer(given, name, default, maximum=MOST_INT)


def _named(given: Given, name: str) -> str | None:
    value = given.get(name.lower())
    if value is not None and not value.strip():
        raise OptionError(f"{name} is empty")
    return value
