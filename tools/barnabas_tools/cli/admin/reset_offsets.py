"""Which offsets a reset gives a group: `kafka-consumer-groups --reset-offsets`, as plain functions.

A partition's new offset is never outside its log.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas_tools.cli.settings import UsageFailed

if TYPE_CHECKING:
    from barnabas_common.topic_partition import TopicPartition

_DURATION = re.compile(
    r"(?a)P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)S)?)?"
)


@dataclass(frozen=True)
class Target:
    """Where to: exactly one field is set. `timestamp` in ms; `file`: offsets by partition."""

    offset: int | None = None
    timestamp: int | None = None
    shift: int | None = None
    earliest: bool = False
    latest: bool = False
    current: bool = False
    file: "Mapping[TopicPartition, int] | None" = None


@dataclass(frozen=True)
class Log:
    """What is known of one partition. `at_time`: the offset at the target's timestamp, or None."""

    earliest: int
    latest: int
    committed: int | None
    at_time: int | None = None


def wanted_offset(partition: "TopicPartition", target: Target, log: Log) -> int:
    """Kafka's rules: without a commit, "current" is the end, and there is nothing to shift."""
    if target.offset is not None:
        return target.offset
    if target.timestamp is not None:
        return log.latest if log.at_time is None else log.at_time
    if target.shift is not None:
        if log.committed is None:
            raise UsageFailed(f"{partition} has no committed offset to shift")
        return log.committed + target.shift
    if target.file is not None:
        return target.file[partition]
    if target.current:
        return log.latest if log.committed is None else log.committed
    return log.earliest if target.earliest else log.latest


def inside(offset: int, log: Log) -> int:
    """The offset, or the nearest one that a reader can start from."""
    return max(log.earliest, min(offset, log.latest))


def target_of(
    *, offset: int | None, at: str | None, duration: str | None, shift: int | None,
    earliest: bool, latest: bool, current: bool, file: Path | None, now_ms: int,
) -> Target:  # fmt: skip
    """The one target that was named."""
    given = (offset, at, duration, shift, earliest or None, latest or None, current or None, file)
    if sum(value is not None for value in given) != 1:
        raise UsageFailed(
            "name exactly one of --to-offset, --to-datetime, --by-duration, --shift-by,"
            " --to-earliest, --to-latest, --to-current, --from-file"
        )
    timestamp = None
    if at is not None:
        timestamp = max(milliseconds(at), 0)
    elif duration is not None:
        timestamp = max(now_ms - duration_ms(duration), 0)
    return Target(
        offset, timestamp, shift, earliest, latest, current, None if file is None else read(file)
    )


def milliseconds(text: str) -> int:
    """A point in time, ISO 8601; in UTC if it names no zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageFailed(
            f"--to-datetime wants a time as 2026-11-22T16:00:00, not {text!r}"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def duration_ms(text: str) -> int:
    """A duration, ISO 8601: `PT2H30M`, `P1D`."""
    found = _DURATION.fullmatch(text)
    try:
        parts = {} if found is None else {k: int(v) for k, v in found.groupdict().items() if v}
        if parts:
            return round(timedelta(**parts).total_seconds() * 1000)
    except (OverflowError, ValueError):  # more digits than `timedelta`, or `int`, takes
        pass
    raise UsageFailed(f"--by-duration wants a duration as PT2H30M or P1D, not {text!r}")


def read(file: Path) -> "dict[TopicPartition, int]":
    """Lines `topic,partition,offset`, as `--export` writes them."""
    from barnabas_common.topic_partition import TopicPartition

    found = {}
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageFailed(f"{file} cannot be read: {error}") from None
    for line in filter(None, lines):
        try:
            topic, partition, offset = next(csv.reader([line]))
            read_on = TopicPartition(topic, int(partition))
            if read_on in found:
                raise UsageFailed(f"{file} names {read_on} twice")
            found[read_on] = int(offset)
        except (ValueError, csv.Error):
            raise UsageFailed(
                f"{file} wants lines topic,partition,offset, not {line[:80]!r}"
            ) from None
    if not found:
        raise UsageFailed(f"{file} has no line of the form topic,partition,offset")
    return found


def selected(topics: Iterable[str]) -> dict[str, list[int] | None]:
    """`flights` or `flights:0,2`: by topic the partitions, or None for all of them.

    A topic may be named several times.
    """
    found: dict[str, list[int] | None] = {}
    for text in topics:
        topic, colon, numbers = text.partition(":")
        try:
            named = [int(number) for number in numbers.split(",")] if colon else None
        except ValueError:
            raise UsageFailed(f"--topic wants TOPIC or TOPIC:0,2, not {text!r}") from None
        before = found.get(topic, [])
        found[topic] = None if named is None or before is None else [*before, *named]
    return found


def is_selected(partition: "TopicPartition", chosen: Mapping[str, list[int] | None]) -> bool:
    """Whether `selected` names the partition; nothing is named: everything is."""
    numbers = chosen.get(partition.topic, [])
    return not chosen or numbers is None or partition.partition in numbers
