"""Keeps a log's epochs in its `leader-epoch-checkpoint`.

Recovery relies on this rule: the file is durable before the recovery point passes the offsets that
it names. The batches above the recovery point are read after a crash, and carry their epochs.
"""

from barnabas_common.runtime import Offload

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.checkpoint.checkpoint_file import CheckpointFile, encode_epochs
from barnabas_broker.log.epochs.leader_epoch_cache import LeaderEpochCache

NAME = "leader-epoch-checkpoint"


class LeaderEpochFile:
    """Called by the log, inline, and by the log manager in the background."""

    def __init__(self, disk: Disk, directory: str, cache: LeaderEpochCache) -> None:
        self._file = CheckpointFile(disk, f"{directory}/{NAME}")
        self._cache = cache
        self.durable_version = 0
        """The version of the cache that survives a power loss; 0 for a cache just read."""

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def is_durable(self) -> bool:
        """Whether the file has the cache's present entries, and they survive a power loss."""
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
