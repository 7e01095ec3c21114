"""Since when a data directory has lost nothing: what a start after `kill -9` and one after a power
loss differ by.

What a killed process wrote is in the kernel's page cache and stays; what a machine had not written
back when its power went is gone. The two look alike to the next process, so each leaves a note, the
file `.barnabas_history`: the boot of the machine, which changes with every power cycle, and the
broker epoch since which nothing was lost here. A flush that fails ends the trust in the page cache:
whoever starts next on the directory counts as having lost what was not flushed. Plain decisions;
`LogDirectory` has the files.
"""

from collections.abc import Sequence
from typing import NamedTuple

UNKNOWN_BOOT = ""
"""Of a disk that cannot tell: an end without order counts as a loss of power."""


class HistoryNote(NamedTuple):
    """What the last life left: the boot it ran in, and the broker epoch since which all is here."""

    boot_id: str
    unbroken_since: int


class LogHistory(NamedTuple):
    """`unbroken_since` is the broker epoch since which nothing was lost, None if something may
    have been since the last life; `is_new`: there was no earlier life, or its disk is another."""

    unbroken_since: int | None
    is_new: bool


def history_of(
    note: HistoryNote | None, boot_id: str, left_in_order: bool, is_in_doubt: bool = False
) -> LogHistory:
    """Of one directory, at the start of a broker.

    Nothing is lost if all was flushed (`left_in_order`), or if the machine has not been switched
    off since the note was written. `is_in_doubt`: a flush has failed.
    """
    if note is None:
        return LogHistory(None, is_new=True)
    same_boot = boot_id != UNKNOWN_BOOT and boot_id == note.boot_id
    is_unbroken = (left_in_order or same_boot) and not is_in_doubt
    return LogHistory(note.unbroken_since if is_unbroken else None, is_new=False)


def history_of_all(directories: Sequence[LogHistory]) -> LogHistory:
    """Of a broker with these directories: the worst of them."""
    since = [history.unbroken_since for history in directories]
    known = [epoch for epoch in since if epoch is not None]
    return LogHistory(
        max(known) if known and len(known) == len(since) else None,
        is_new=any(history.is_new for history in directories),
    )
