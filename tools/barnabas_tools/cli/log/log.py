"""`barnabas log`: print a broker's files as kafka-dump-log does, and check them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from barnabas_common.printable import printable

from barnabas_tools.cli.output import json_bytes, note, print_json, print_rows
from barnabas_tools.cli.settings import CommandFailed, Settings, settings_of

app = typer.Typer(no_args_is_help=True, help="Print and check a broker's log files.")

_VERIFY_COLUMNS = (
    "partition",
    "segments",
    "batches",
    "records",
    "log_start_offset",
    "log_end_offset",
    "faults",
)


@app.callback()
def log() -> None:
    """Print and check a broker's log files; the broker need not run."""


@app.command()
def dump(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="A segment (N.log), or a partition's folder.")],
    records: Annotated[bool, typer.Option("--records", help="Print the records too.")] = False,
    compaction: Annotated[
        bool,
        typer.Option(
            "--compaction",
            help="Print what a pass over all but the active segment would do with each record now,"
            " and why. It ignores the topic's compaction lag and the recovery point.",
        ),
    ] = False,
) -> None:
    """Print every batch's header, one per line; exit code 1 if a batch is corrupt."""
    from barnabas_tools.cli.log.segment_check import is_segment, segment_files

    settings = settings_of(context)
    files = segment_files(path) if path.is_dir() else [path]
    if not files or not all(file.is_file() and is_segment(file) for file in files):
        raise CommandFailed(f"{path} is neither a segment (N.log) nor a folder that holds one")
    if compaction:
        _dump_compaction(settings, files)
        return
    valid = [_dump_segment(settings, file, records) for file in files]
    if not all(valid):
        raise typer.Exit(1)


@app.command()
def verify(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(help="A partition's folder, or a data directory.")],
) -> None:
    """Check CRCs, offsets, epochs and every index entry; exit code 1 if there is a fault."""
    from barnabas_tools.cli.log.segment_check import check_partition

    folders = list(_partition_folders(directory))
    if not folders:
        raise CommandFailed(f"{directory} holds no partition")
    checks = [check_partition(folder) for folder in folders]
    settings = settings_of(context)
    rows = [
        {
            "partition": check.directory.name,
            "segments": check.segments,
            "batches": check.batches,
            "records": check.records,
            "log_start_offset": check.log_start_offset,
            "log_end_offset": check.log_end_offset,
            "faults": check.faults if settings.json else len(check.faults),
        }
        for check in checks
    ]
    print_rows(settings, _VERIFY_COLUMNS, rows)
    faults = [f"{check.directory.name}: {fault}" for check in checks for fault in check.faults]
    if not settings.json:
        for fault in faults:
            print(printable(fault))
    if faults:
        raise typer.Exit(1)


def _partition_folders(directory: Path) -> Iterator[Path]:
    """Yield the folder itself or its subfolders that hold a log and are not being deleted."""
    from barnabas_tools.cli.log.segment_check import segment_files

    for folder in (directory, *sorted(directory.glob("*-*"))):
        if segment_files(folder) and not folder.name.endswith("-delete"):
            yield folder


def _dump_segment(settings: Settings, file: Path, records: bool) -> bool:
    """Print a segment; returns whether every batch in it is valid."""
    from barnabas_common.record.batch import CorruptBatch
    from barnabas_common.record.reader import read_batch

    from barnabas_tools.cli.log.segment_check import read_batches

    data = file.read_bytes()
    if not settings.json:
        print(f"Dumping {printable(str(file))}\nStarting offset: {file.stem.lstrip('0') or '0'}")
    valid = True
    try:
        for batch in read_batches(data):
            row = batch_row(batch.position, batch.header, valid=batch.fault is None)
            valid = valid and batch.fault is None
            _print_row(settings, {"segment": str(file), **row} if settings.json else row, "")
            if records and batch.fault is None:
                control = batch.header.is_control
                for record in read_batch(data, batch.position):
                    row = control_row(record) if control else record_row(record, settings.json)
                    _print_row(settings, row, "| ")
    except CorruptBatch as error:
        raise CommandFailed(f"{file}: {error}") from None
    return valid


def _dump_compaction(settings: Settings, files: list[Path]) -> None:
    """Print the fate of every record below the active segment."""
    from time import time

    from barnabas_common.record.batch import CorruptBatch

    from barnabas_tools.cli.log.compaction_preview import preview

    if len(files) == 1:
        note("there is only the active segment, and a pass leaves it as it is")
    try:
        for found in preview(files, int(time() * 1000)):
            row = {
                "offset": found.offset,
                "key": _shown(found.key, settings.json),
                "stays": found.stays,
                "because": found.because,
            }
            _print_row(settings, row, "")
    except CorruptBatch as error:
        raise CommandFailed(str(error)) from None


def batch_row(position: int, header: Any, valid: bool) -> dict[str, Any]:
    """Return a batch's header with the names of kafka-dump-log."""
    from barnabas_common.record.sequence import last_sequence_of

    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": last_sequence_of(header),
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "position": position,
        ("LogAppendTime" if header.timestamp_type else "CreateTime"): header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "compresscodec": _codec_name(header.compression),
        "crc": header.crc,
        "isvalid": valid,
    }


def record_row(record: Any, json: bool) -> dict[str, Any]:
    """Return a record; its bytes as text, in JSON without loss."""
    headers = [(name, _shown(value, json)) for name, value in record.headers]
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "headers": headers if json else "[" + ",".join(map(_header, headers)) + "]",
        "key": _shown(record.key, json),
        "payload": _shown(record.value, json),
    }


def control_row(record: Any) -> dict[str, Any]:
    """Return a marker as kafka-dump-log names it; a control record of another type has no names."""
    from barnabas_common.record.transactional import marker_of

    marker = marker_of(record.key, record.value)
    named = (
        {}
        if marker is None
        else {
            "endTxnMarker": "COMMIT" if marker.commit else "ABORT",
            "coordinatorEpoch": marker.coordinator_epoch,
        }
    )
    return {"offset": record.offset, "timestamp": record.timestamp, **named}


def _header(header: tuple[str, object]) -> str:
    name, value = header
    return f"{name}={'null' if value is None else value}"


def _print_row(settings: Settings, row: dict[str, Any], indent: str) -> None:
    if settings.json:
        print_json(row)
        return
    words = {True: "true", False: "false", None: "null"}
    shown = (
        f"{name}: {words[value] if value is None or isinstance(value, bool) else value}"
        for name, value in row.items()
    )
    print(indent + printable(" ".join(shown)))


def _codec_name(codec: int) -> str:
    from barnabas_common.record.compression import Compression

    known = codec in Compression.__members__.values()
    return Compression(codec).name.lower() if known else f"unknown({codec})"


def _shown(data: bytes | None, json: bool) -> object:
    if json or data is None:
        return json_bytes(data)
    return data.decode(errors="backslashreplace")
