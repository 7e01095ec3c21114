"""`barnabas produce`: send each line of stdin or of a file as a record."""

import asyncio
import logging
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas_tools.cli.output import counted, note, print_json
from barnabas_tools.cli.records.lines import lines
from barnabas_tools.cli.settings import CommandFailed, Settings, run_async, settings_of

if TYPE_CHECKING:
    from barnabas.producer import Producer, RecordMetadata
    from barnabas_common.errors import BarnabasError

app = typer.Typer(add_completion=False)

LINGER_MS = 5
REPORTED_FAILURES = 10
SILENCE_SECONDS = 3


class AcksOption(StrEnum):
    """What acknowledges a record: nothing, its leader, all in-sync replicas."""

    NONE = "0"
    LEADER = "1"
    ALL = "all"


class CompressionOption(StrEnum):
    """The codec of a batch."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Deliveries:
    """Counts delivered and failed records, and keeps the first failure."""

    def __init__(self, each: bool) -> None:
        self.delivered = 0
        self.failed = 0
        self.first_failure: BarnabasError | None = None
        self._each = each

    def settle(self, metadata: "RecordMetadata | None", error: "BarnabasError | None") -> None:
        """Record the outcome of one record; the producer's `on_delivery`."""
        if metadata is not None:
            self.delivered += 1
            if self._each:
                print_json(metadata._asdict())
            return
        self.failed += 1
        self.first_failure = self.first_failure or error
        if self.failed <= REPORTED_FAILURES:
            note(f"barnabas: a record was not delivered: {error}")

    def conclude(self) -> None:
        """Print the summary on stderr; raises CommandFailed if a record was not delivered."""
        if self.failed:
            raise CommandFailed(
                f"{self.failed} of {self.failed + self.delivered} records were not delivered:"
                f" {self.first_failure}"
            )
        self.report()

    def report(self) -> None:
        """Print on stderr how many records have been delivered."""
        note(f"{counted(self.delivered, 'record')} delivered")


@app.command()
def produce(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(help="The topic.")],
    acks: Annotated[
        AcksOption, typer.Option(help="The replicas that acknowledge a record.")
    ] = AcksOption.ALL,
    key_separator: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The text between key and value in a line."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option(min=0, help="Default: by the key, or sticky without one.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Read this instead of stdin.")
    ] = None,
    compression: Annotated[
        CompressionOption, typer.Option(help="The codec of the batches.")
    ] = CompressionOption.NONE,
) -> None:
    """Send each line of stdin as one record.

    With --output json, one object per delivered record: topic, partition, offset, timestamp.
    """
    if key_separator == "":
        raise typer.BadParameter("must not be empty", param_hint="--key-separator")
    if file is None and sys.stdin.isatty():
        note(f"one record a line to {topic}; Ctrl-D ends")
    descriptor = os.open(file, os.O_RDONLY) if file is not None else sys.stdin.fileno()
    separator = os.fsencode(key_separator) if key_separator is not None else None
    settings = settings_of(context)
    run_async(_produce(settings, topic, acks, compression, partition, separator, descriptor))


def split_line(line: bytes, separator: bytes | None, number: int) -> tuple[bytes | None, bytes]:
    """Split a line into key and value, both as they are; the key is None without `separator`.

    Raises CommandFailed with the line's `number` if the line lacks the separator.
    """
    if separator is None:
        return None, line
    key, found, value = line.partition(separator)
    if not found:
        raise CommandFailed(f"line {number} has no key separator {os.fsdecode(separator)!r}")
    return key, value


async def _produce(
    settings: Settings,
    topic: str,
    acks: AcksOption,
    compression: CompressionOption,
    partition: int | None,
    separator: bytes | None,
    descriptor: int,
) -> None:
    from barnabas import Producer
    from barnabas_common.errors import MessageTooLargeError
    from barnabas_common.runtime import TaskScope

    # The producer logs each failed batch; `deliveries` reports them already, and only the first.
    logging.getLogger("barnabas.producer").setLevel(logging.CRITICAL)
    deliveries = Deliveries(each=settings.json)
    producer = Producer(
        bootstrap_servers=settings.bootstrap,
        acks=acks.value,
        compression_type=compression.value,
        linger_ms=LINGER_MS,
    )
    tasks = TaskScope("produce")
    try:
        async with producer:
            tasks.spawn(_tell_of_waiting(producer, deliveries), "waiting")
            number = 0
            async for line in lines(descriptor):
                number += 1
                key, value = split_line(line, separator, number)
                try:
                    await producer.send(
                        topic, value, key=key, partition=partition, on_delivery=deliveries.settle
                    )
                except MessageTooLargeError as error:
                    raise CommandFailed(f"line {number}: {error}") from None
            await producer.flush()
    except BaseException:
        deliveries.report()  # earlier lines are on the brokers
        raise
    finally:
        await tasks.close()
    deliveries.conclude()


async def _tell_of_waiting(producer: "Producer", deliveries: Deliveries) -> None:
    """Print once that records wait, because the producer retries silently for up to two minutes."""
    before, now = None, None
    while now is None or now != before:  # until records wait and none was delivered since
        before = now
        await asyncio.sleep(SILENCE_SECONDS)
        now = deliveries.delivered if producer.undelivered else None
    oldest = producer.undelivered_partitions[0]
    note(
        f"{counted(producer.undelivered, 'record')} not acknowledged yet, still trying;"
        f" `barnabas explain {oldest}` says why"
    )
