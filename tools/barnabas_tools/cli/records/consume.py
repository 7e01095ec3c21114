"""`barnabas consume`: print a topic's records, one per line."""

import asyncio
import os
import re
import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from barnabas_common.printable import printable

from barnabas_tools.cli.output import counted, json_bytes, note, print_json
from barnabas_tools.cli.settings import (
    Settings,
    UsageFailed,
    in_any_case,
    run_until_interrupted,
    settings_of,
)

if TYPE_CHECKING:
    from barnabas import Consumer
    from barnabas.consumer import ConsumerRecord

app = typer.Typer(add_completion=False)

POLL_SECONDS = 0.5
_ENDS = ("beginning", "end")


class Isolation(StrEnum):
    """What is read of transactions."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


@dataclass(frozen=True)
class Start:
    """Where to start: in all partitions or one, and at which offset; or where a group is.

    `isolation_level`: whether to read what is not committed.
    """

    from_beginning: bool
    partition: int | None
    offset: str | None
    group: str | None
    isolation_level: Isolation


@dataclass(frozen=True)
class Line:
    """What a printed line shows besides the value."""

    key: bool
    offset: bool
    partition: bool
    timestamp: bool
    separator: str
    headers: bool = False


@app.command()
def consume(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(help="The topic.")],
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start with the oldest record.")
    ] = False,
    partition: Annotated[int | None, typer.Option(min=0, help="Only this partition.")] = None,
    offset: Annotated[
        str | None,
        typer.Option(metavar="N|beginning|end", help="Start here; needs --partition."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Share the topic with this group; what was printed is committed."
        ),
    ] = None,
    isolation_level: Annotated[
        Isolation, typer.Option(help="read_committed: no open or aborted transactions.")
    ] = Isolation.READ_UNCOMMITTED,
    max_messages: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many records.")
    ] = None,
    timeout_ms: Annotated[
        int | None, typer.Option(min=1, help="Stop after this time without a record.")
    ] = None,
    print_key: Annotated[bool, typer.Option("--print-key", help="Show the key.")] = False,
    print_offset: Annotated[bool, typer.Option("--print-offset", help="Show the offset.")] = False,
    print_partition: Annotated[
        bool, typer.Option("--print-partition", help="Show the partition.")
    ] = False,
    print_timestamp: Annotated[
        bool, typer.Option("--print-timestamp", help="Show the timestamp, in ms.")
    ] = False,
    print_headers: Annotated[
        bool, typer.Option("--print-headers", help="Show the headers, as NAME:VALUE,...")
    ] = False,
    separator: Annotated[
        str, typer.Option(help="The text between the shown parts.", show_default="a tab")
    ] = "\t",
) -> None:
    """Print a topic's records as they arrive, until Ctrl-C or one of the limits.

    With --output json, one object per record: topic, partition, offset, timestamp, key, value,
    headers; bytes that are not UTF-8 text are {"base64": "..."}.
    """
    if offset is not None and partition is None:
        raise UsageFailed("--offset needs --partition: offsets count within one partition")
    if offset is not None and from_beginning:
        raise UsageFailed("--offset and --from-beginning contradict each other")
    if offset is not None and offset not in _ENDS and not re.fullmatch("[0-9]{1,18}", offset):
        raise UsageFailed(f"--offset wants a number, beginning or end, not {offset!r}")
    if group is not None and partition is not None:
        raise UsageFailed("--group and --partition contradict each other: a group assigns")
    start = Start(from_beginning, partition, offset, group, isolation_level)
    line = Line(print_key, print_offset, print_partition, print_timestamp, separator, print_headers)
    run_until_interrupted(
        _consume(settings_of(context), topic, start, line, max_messages, timeout_ms)
    )


def record_row(record: "ConsumerRecord") -> dict[str, Any]:
    """Return a record as a JSON object."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": json_bytes(record.key),
        "value": json_bytes(record.value),
        "headers": [[name, json_bytes(value)] for name, value in record.headers],
    }


def record_line(record: "ConsumerRecord", line: Line) -> bytes:
    """Return a record as a line of text with its bytes unchanged; no bytes are `null`."""
    parts: list[bytes] = []
    if line.timestamp:
        parts.append(b"%d" % record.timestamp)
    if line.partition:
        parts.append(b"%d" % record.partition)
    if line.offset:
        parts.append(b"%d" % record.offset)
    if line.headers:
        parts.append(_headers(record))
    if line.key:
        parts.append(record.key if record.key is not None else b"null")
    parts.append(record.value if record.value is not None else b"null")
    return os.fsencode(line.separator).join(parts)  # also bytes that are not UTF-8


def _headers(record: "ConsumerRecord") -> bytes:
    """The headers as Kafka's console consumer prints them."""
    pairs = (
        name.encode() + b":" + (value if value is not None else b"null")
        for name, value in record.headers
    )
    return b",".join(pairs) or b"NO_HEADERS"


def for_terminal(line: bytes) -> bytes:
    """A record's line without anything that acts on a terminal; a pipe gets its bytes unchanged."""
    text = printable(line.decode(errors="backslashreplace"), keep="\n\t")
    return text.encode(sys.stdout.encoding, errors="backslashreplace")


async def _consume(
    settings: Settings,
    topic: str,
    start: Start,
    line: Line,
    max_messages: int | None,
    timeout_ms: int | None,
) -> None:
    from barnabas import Consumer

    reset: Literal["earliest", "latest"] = "earliest" if start.from_beginning else "latest"
    level: Literal["read_committed", "read_uncommitted"] = (
        "read_committed"
        if start.isolation_level is Isolation.READ_COMMITTED
        else "read_uncommitted"
    )
    topics = [] if start.partition is not None else [topic]
    count = 0
    try:
        consumer = Consumer(
            *topics,
            bootstrap_servers=settings.bootstrap,
            auto_offset_reset=reset,
            group_id=start.group,
            isolation_level=level,
            client_id="barnabas-consume",
        )
        async with consumer:
            await _position(consumer, topic, start)
            now = asyncio.get_running_loop().time
            last = now()
            try:
                while max_messages is None or count < max_messages:
                    left = None if max_messages is None else max_messages - count
                    records = await consumer.poll(_patience(timeout_ms), left)
                    try:
                        _write(settings, records, line)
                    except OSError:
                        _give_back(consumer, records)
                        raise
                    count += len(records)
                    if records:
                        last = now()
                    elif timeout_ms is not None and (now() - last) * 1000 >= timeout_ms:
                        break
            finally:
                # After Ctrl-C too: what was printed is committed.
                await in_any_case(consumer.close())
    finally:
        note(f"{counted(count, 'record')} consumed")


def _patience(timeout_ms: int | None) -> int:
    longest = int(POLL_SECONDS * 1000)
    return longest if timeout_ms is None else min(timeout_ms, longest)


async def _position(consumer: "Consumer", topic: str, start: Start) -> None:
    """Assign the requested partition, at the requested offset."""
    if start.partition is None:
        return
    from barnabas import TopicPartition

    chosen = TopicPartition(topic, start.partition)
    consumer.assign([chosen])
    if start.from_beginning or start.offset == "beginning":
        await consumer.seek_to_beginning(chosen)
    elif start.offset is None or start.offset == "end":
        await consumer.seek_to_end(chosen)
    else:
        consumer.seek(chosen, int(start.offset))


def _give_back(consumer: "Consumer", records: "list[ConsumerRecord]") -> None:
    """Let the group read again what could not be printed."""
    for record in reversed(records):
        consumer.seek(record.topic_partition, record.offset)


def _write(settings: Settings, records: "list[ConsumerRecord]", line: Line) -> None:
    if settings.json:
        for record in records:
            print_json(record_row(record))
    else:
        terminal = sys.stdout.isatty()
        for record in records:
            text = record_line(record, line)
            sys.stdout.buffer.write((for_terminal(text) if terminal else text) + b"\n")
    sys.stdout.flush()
