"""Keeps a log's epochs in its `leader-epoch-checkpoint`.

The rule that makes recovery right: the file is durable before the recovery point passes the offsets
it speaks of. What lies above the recovery point is read again after a crash, and every batch there
names its own epoch.
"""

from barnabas.runtime import Offload

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.checkpoint_file import CheckpointFile, encode_epochs
from barnabas_broker.log.leader_epoch_cache import LeaderEpochCache

NAME = "leader-epoch-checkpoint"


class LeaderEpochFile:
    """Called by the log, inline, and by the log manager in the background."""

    def __init__(self, disk: Disk, directory: str, cache: LeaderEpochCache) -> None:
        self._file = CheckpointFile(disk, f"{directory}/{NAME}")
        self._cache = cache
        self.durable_version = 0
        """Of the cache: the changes up to it survive a power loss. A cache just read has 0."""

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def is_durable(self) -> bool:
        return self.durable_version == self._cache.version

    def write(self) -> None:
        """Bring the file up to date before returning. Raises OSError."""
        if not self.is_durable:
            self._file.write(encode_epochs(self._cache.entries))
            self.durable_version = self._cache.version

    async def write_in_background(self, offload: Offload) -> None:
        """Bring the file up to date without blocking the loop. Raises OSError."""
        while not self.is_durable:
            written = -1

            def content() -> bytes:
                nonlocal written
                written = self._cache.version
                return encode_epochs(self._cache.entries)

            await self._file.write_in_background(content, offload)
            self.durable_version = max(self.durable_version, written)
