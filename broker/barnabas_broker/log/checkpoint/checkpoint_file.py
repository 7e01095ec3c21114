"""Kafka's checkpoint files: a version line, a count line, then one entry a line.

`replication-offset-checkpoint`, `recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`
and `cleaner-offset-checkpoint` hold `topic partition offset`; `leader-epoch-checkpoint` holds
`epoch startOffset`. All have version 0 and are replaced atomically. An empty file has no entries:
Kafka creates such files.
"""

import asyncio
import posixpath
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

from barnabas_common.runtime import Offload
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.errors import MalformedCheckpoint

_VERSION = "0"


def encode_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    return _encode([f"{epoch} {start_offset}" for epoch, start_offset in entries])


def decode_epochs(data: bytes) -> list[tuple[int, int]]:
    """The entries, which must rise. Raises MalformedCheckpoint."""
    entries: list[tuple[int, int]] = []
    for line in _decode(data):
        epoch, start_offset = _integers(line, line.split(), 2)
        if epoch < 0 or start_offset < 0:
            raise MalformedCheckpoint(f"negative number in line {line!r}")
        if entries and (epoch <= entries[-1][0] or start_offset <= entries[-1][1]):
            raise MalformedCheckpoint(f"entry {line!r} does not follow {entries[-1]}")
        entries.append((epoch, start_offset))
    return entries


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Sorted by name, so that equal offsets make equal files."""
    return _encode(
        [f"{name.topic} {name.partition} {offset}" for name, offset in sorted(offsets.items())]
    )


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    """Raises MalformedCheckpoint."""
    offsets: dict[TopicPartition, int] = {}
    for line in _decode(data):
        topic, _, numbers = line.partition(" ")
        partition, offset = _integers(line, numbers.split(), 2)
        if partition < 0 or offset < 0:
            raise MalformedCheckpoint(f"negative number in line {line!r}")
        offsets[TopicPartition(topic, partition)] = offset
    return offsets


def _encode(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in (_VERSION, str(len(lines)), *lines)).encode()


def _decode(data: bytes) -> list[str]:
    if not data:
        return []
    if not data.endswith(b"\n"):  # an incomplete number would still be a number
        raise MalformedCheckpoint("the last line does not end")
    lines = data.decode(errors="replace").splitlines()
    if lines[0] != _VERSION:
        raise MalformedCheckpoint(f"version {lines[0][:20]!r}, only 0 is known")
    (count,) = _integers("count", lines[1:2], 1)
    if len(lines) - 2 != count:
        raise MalformedCheckpoint(f"{count} entries announced, {len(lines) - 2} found")
    return lines[2:]


def _integers(line: str, words: list[str], count: int) -> list[int]:
    try:
        numbers = [int(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != count:
        raise MalformedCheckpoint(f"malformed line {line!r}")
    return numbers


class CheckpointFile:
    """One file with two writers: the event loop, if the write must precede what follows, and the
    background, which must not block the loop.

    The background writes and flushes a new file off the loop, and renames it on the loop. If the
    loop has written in the meantime, the background starts again.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self._version = 0
        self._background = asyncio.Lock()

    def read(self) -> bytes:
        """The content; empty if there is no file."""
        try:
            return self._disk.read_file(self.path)
        except FileNotFoundError:
            return b""

    def write(self, data: bytes) -> None:
        """Replace the content, durably, now. Raises OSError."""
        self._version += 1
        self._disk.write_file(self.path, data)

    def write_unsynced(self, data: bytes) -> None:
        """Replace the content, now; a power loss may bring the old one back. Raises OSError."""
        self._version += 1
        unnamed = self.path + ".tmp"
        self._disk.remove(unnamed)
        with closing(self._disk.open(unnamed, create=True)) as file:
            file.append([data])
            file.flush()  # else a power loss may leave the new name with no content
        self._disk.rename(unnamed, self.path, sync=False)

    def supersede(self) -> None:
        """Make a background write in progress start again with new content."""
        self._version += 1

    async def write_in_background(
        self,
        content: Callable[[], bytes],
        offload: Offload,
        replaced: Callable[[], None] = lambda: None,
    ) -> None:
        """Replace the content by `content()`, durably. Raises OSError.

        `replaced` is called once the file has the last `content()`, before that is durable.
        """
        staged = self.path + ".staged"
        async with self._background:
            while True:
                version = self._version
                await offload.run(_stage, self._disk, staged, content())
                if version == self._version:
                    self._disk.rename(staged, self.path, sync=False)
                    replaced()
                    break
            await offload.run(self._disk.sync_directory, posixpath.dirname(self.path))


def _stage(disk: Disk, path: str, data: bytes) -> None:
    disk.remove(path)
    with closing(disk.open(path, create=True)) as file:
        file.append([data])
        file.flush()
