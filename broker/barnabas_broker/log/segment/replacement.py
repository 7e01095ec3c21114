"""A compacted segment on its way into the place of those it was made from.

    1. prepare    `.cleaned` becomes `.swap`, durably: a crash leaves the old ones or the new one
    2. (the log reads from the new segment)
    3. put_aside  the old files become `.deleted`
    4. complete   `.swap` is dropped from the names

`prepare` and `put_aside` run off the event loop, for they may take long; the rest runs on it. A
truncation may come between two steps, or during one. It must not leave `.swap` files behind that
would bring truncated records back at the next start, so it first settles the replacement, by
`abandon` or `complete`, and waits by the lock for a step that is running. I/O errors are OSError.
"""

import threading
from collections.abc import Sequence

from barnabas_broker.disk.disk import Disk, is_out_of_descriptors
from barnabas_broker.log.segment.segment import Segment
from barnabas_broker.log.segment.segment_files import CLEANED_SUFFIX, SWAP_SUFFIX


class Replacement:
    """`old` are neighbours and sealed; `cleaned` is durable. Created by the log.

    `is_untouched`: none of the files has another name yet. `is_abandoned`: the old segments stay.
    `is_in_use`: the log reads from `cleaned`. `is_complete`: there is nothing left to do.
    """

    def __init__(
        self, disk: Disk, directory: str, old: Sequence[Segment], cleaned: Segment
    ) -> None:
        self.old = old
        self.cleaned = cleaned
        self.is_untouched = True
        self.is_abandoned = False
        self.is_in_use = False
        self.is_complete = False
        self._disk = disk
        self._directory = directory
        self._is_put_aside = False
        self._failure: OSError | None = None
        self._lock = threading.Lock()

    @property
    def merged_bases(self) -> set[int]:
        """Where old segments began that the new one begins before."""
        return {segment.base_offset for segment in self.old} - {self.cleaned.base_offset}

    def prepare(self) -> None:
        """After a lack of descriptors everything is as before."""
        with self._lock:
            if self.is_abandoned:
                return
            self.is_untouched = False
            self.cleaned.change_suffix(CLEANED_SUFFIX, SWAP_SUFFIX)
            try:
                self._disk.sync_directory(self._directory)
            except OSError as error:
                if is_out_of_descriptors(error):
                    self.cleaned.change_suffix(SWAP_SUFFIX, CLEANED_SUFFIX)
                    self.is_untouched = True
                raise

    def abandon(self) -> None:
        """Remove the new segment, durably: no start may put it in the place of the old ones."""
        with self._lock:
            self.is_abandoned = True
            self.cleaned.destroy()
            if not self.is_untouched:
                self._disk.sync_directory(self._directory)

    def put_aside(self) -> None:
        """Before `.swap` is dropped: old files beside the new ones would be read at a start."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._is_put_aside:
                return
            try:
                for segment in self.old:
                    segment.mark_deleted()
            except OSError as error:
                self._failure = error
                raise
            self._is_put_aside = True

    def complete(self) -> None:
        """Give the new segment its names, not durably; until they are, a start does the same."""
        self.put_aside()
        self.cleaned.change_suffix(SWAP_SUFFIX, "")
        self.is_complete = True
