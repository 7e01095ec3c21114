"""The files of one segment and their names: `<base>.log`, kept open, and its indexes.

Called as `Segment`. I/O errors are OSError.
"""

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.index import offset_index, time_index, transaction_index
from barnabas_broker.log.index.offset_index import OffsetIndex
from barnabas_broker.log.index.time_index import TimeIndex
from barnabas_broker.log.index.transaction_index import TransactionIndex

LOG_SUFFIX = ".log"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
"""A segment that compaction is writing."""
SWAP_SUFFIX = ".swap"
"""A whole segment that compaction is putting in the place of others."""
UNFINISHED_SUFFIX = ".tmp"
"""A file without its name yet; a start removes it."""


class SegmentFiles:
    """`index_bytes` is `segment.index.bytes`; `suffix` follows the names of all files."""

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, index_bytes: int, suffix: str
    ) -> None:
        self._disk = disk
        self._directory = directory
        self.base_offset = base_offset
        path = f"{directory}/{base_offset:020d}"
        self.path = path + LOG_SUFFIX + suffix
        offsets, times = path + offset_index.SUFFIX + suffix, path + time_index.SUFFIX + suffix
        self.offset_index = OffsetIndex(disk, offsets, base_offset, index_bytes)
        self.time_index = TimeIndex(disk, times, base_offset, index_bytes)
        transactions = path + transaction_index.SUFFIX + suffix
        self.txn_index = TransactionIndex(disk, transactions)
        self.log = disk.open(self.path, create=True)
        self.is_deleted = False
        self._is_in_rebuild = False

    # ---- flushing

    def flush(self, indexes_too: bool) -> None:
        """fsync. May run off the event loop during appends."""
        self.log.flush()
        if indexes_too:
            self.sync_indexes()

    def sync_indexes(self) -> None:
        """fsync the saved indexes."""
        self.offset_index.sync()
        self.time_index.sync()
        self.txn_index.sync()

    # ---- while the indexes are rebuilt

    def begin_rebuild(self) -> None:
        """Take the name of the offset index away, durably, before any index is changed.

        A start rebuilds all indexes of a segment that has none. Without this, one after a crash
        would take for complete what was rebuilt in part. The last segment does not need it: a start
        after a crash always rebuilds its indexes.
        """
        if self._is_in_rebuild:
            return
        name = self.offset_index.path
        if self._disk.exists(name):
            self._disk.rename(name, name + UNFINISHED_SUFFIX, sync=False)
            self._disk.sync_directory(self._directory)
        self.offset_index.path = name + UNFINISHED_SUFFIX
        self._is_in_rebuild = True

    def end_rebuild(self) -> None:
        """Give the name back, durably, once all indexes are saved and durable."""
        if self._is_in_rebuild:
            self.sync_indexes()
            name = self.offset_index.path.removesuffix(UNFINISHED_SUFFIX)
            self._disk.rename(self.offset_index.path, name)
            self.offset_index.path = name
            self._is_in_rebuild = False

    # ---- the end

    def mark_deleted(self) -> None:
        """Rename the files to `.deleted`, not durably; they stay readable."""
        if self.is_deleted:
            return
        self.is_deleted = True
        for path in self._paths():
            if self._disk.exists(path):
                self._disk.rename(path, path + DELETED_SUFFIX, sync=False)

    def unmark_deleted(self) -> None:
        """Undo `mark_deleted`, not yet durably. Needs no descriptor."""
        self.is_deleted = False
        for path in self._paths():
            if self._disk.exists(path + DELETED_SUFFIX):
                self._disk.rename(path + DELETED_SUFFIX, path, sync=False)

    def change_suffix(self, old: str, new: str) -> None:
        """Rename the files, the log first, not durably. Needs no descriptor."""
        paths = self._paths()
        renamed = [path.removesuffix(old) + new for path in paths]
        for before, after in zip(paths, renamed, strict=True):
            if self._disk.exists(before):
                self._disk.rename(before, after, sync=False)
        self.path, self.offset_index.path, self.time_index.path, self.txn_index.path = renamed

    def destroy(self) -> None:
        """Close and remove the files, under either name."""
        self.close()
        for path in self._paths():
            self._disk.remove(path + DELETED_SUFFIX if self.is_deleted else path)

    def close(self) -> None:
        self.log.close()

    def _paths(self) -> tuple[str, ...]:
        return self.path, self.offset_index.path, self.time_index.path, self.txn_index.path
