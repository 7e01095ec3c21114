"""Since when a data directory has lost nothing: it distinguishes `kill -9` from a power loss.

The writes of a killed process stay in the kernel's page cache; a power loss loses those that were
not flushed. To the next process both look the same. So each process writes `.barnabas_history`: the
boot id of the machine, which changes with every power cycle, and the broker epoch since which
nothing was lost. After a failed flush the page cache cannot be trusted: the next start counts as
having lost the unflushed records. Plain decisions; `LogDirectory` has the files.
"""

from collections.abc import Sequence
from typing import NamedTuple

UNKNOWN_BOOT = ""
"""The boot id is not available: an unclean shutdown counts as a power loss."""
LOST_SINCE = -1
"""A start writes this in place of the broker epoch when it finds that records may be lost. The
process replaces it once it is registered."""


class HistoryNote(NamedTuple):
    """What the previous process wrote; see `LogHistory`. `directories`: how many `log.dirs` it had,
    0 if it did not say so."""

    boot_id: str
    unbroken_since: int
    directories: int = 0


class LogHistory(NamedTuple):
    """`unbroken_since` is the broker epoch since which nothing was lost, None if records may have
    been lost since the previous process; `is_new`: there was none, or the disk was replaced."""

    unbroken_since: int | None
    is_new: bool


def history_of(
    note: HistoryNote | None,
    boot_id: str,
    had_clean_shutdown: bool,
    has_failed_flush: bool = False,
    is_outdated: bool = False,
) -> LogHistory:
    """Return the history of one directory, at the start of a broker.

    Nothing is lost if all was flushed (`had_clean_shutdown`), or if the machine still runs since
    the note was written; unless a flush has failed, or the directory `is_outdated`: an older copy
    of the one this broker last wrote to.
    """
    if note is None:
        return LogHistory(None, is_new=True)
    if note.unbroken_since == LOST_SINCE:  # a clean shutdown does not undo the loss
        return LogHistory(None, is_new=is_outdated)
    same_boot = boot_id != UNKNOWN_BOOT and boot_id == note.boot_id
    is_unbroken = (had_clean_shutdown or same_boot) and not has_failed_flush and not is_outdated
    # An older copy is another disk: what the replaced one had made durable is not on it.
    return LogHistory(note.unbroken_since if is_unbroken else None, is_new=is_outdated)


def history_of_all(directories: Sequence[LogHistory]) -> LogHistory:
    """Return the history of a broker: the worst of its directories."""
    since = [history.unbroken_since for history in directories]
    known = [epoch for epoch in since if epoch is not None]
    return LogHistory(
        max(known) if known and len(known) == len(since) else None,
        is_new=any(history.is_new for history in directories),
    )
