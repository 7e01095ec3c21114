"""What brokers have on their disks, read and damaged from outside."""

import asyncio
import contextlib
import shutil
import time
from pathlib import Path

from barnabas_tools.cli.log.segment_check import check_partition

LOG, OFFSET_INDEX, TIME_INDEX = ".log", ".index", ".timeindex"


def partition_folders(data: Path) -> list[Path]:
    """Return the partitions' folders in a data directory."""
    return sorted(
        path
        for path in data.iterdir()
        if path.is_dir() and not path.name.endswith(("-delete", "lost+found"))
    )


def assert_sound(data: Path) -> None:
    """Assert that `barnabas log verify` finds no fault in any partition of the data directory."""
    folders = partition_folders(data)
    assert folders, f"{data} holds no partition"
    for folder in folders:
        faults = check_partition(folder).faults
        assert not faults, f"{folder}: {faults}"


async def until_sound(data: Path) -> None:
    """The same of a running broker, which writes leader epochs a little later than batches."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return assert_sound(data)
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.1)


def segments(folder: Path, suffix: str = LOG) -> list[Path]:
    """Return a partition's files of one kind, oldest first."""
    return sorted(folder.glob(f"*{suffix}"))


def content(folder: Path) -> bytes:
    """Return all batches of a partition as they are on disk."""
    return b"".join(segment.read_bytes() for segment in segments(folder))


def size(folder: Path) -> int:
    """Return the bytes of all segments; a segment that is being deleted counts as 0."""
    total = 0
    for segment in segments(folder):
        with contextlib.suppress(FileNotFoundError):
            total += segment.stat().st_size
    return total


def append(file: Path, garbage: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(garbage)


def cut(file: Path, count: int) -> None:
    """Remove `count` bytes from the end."""
    with file.open("ab") as opened:
        opened.truncate(file.stat().st_size - count)


def flip(file: Path, from_end: int) -> None:
    """Flip one byte, counted from the end (1: the last)."""
    spoiled = bytearray(file.read_bytes())
    spoiled[-from_end] ^= 0xFF
    file.write_bytes(spoiled)


def remove(folder: Path) -> None:
    shutil.rmtree(folder)
