"""A disk in memory whose broker dies at a chosen change of the disk, or where that change fails."""

import errno

from barnabas_broker.disk.page_cache import disk_error
from barnabas_simulator.disk import MemoryDisk


class Killed(BaseException):
    """Simulates the death of the process: after it no task of the process changes the disk."""


class MortalDisk(MemoryDisk):
    """`changes_left` counts the changes until the death; None means no death.

    With `only_fails` that change fails once with EIO, and the process continues.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.changes_left: int | None = None
        self.only_fails = False
        self.is_dead = False

    def crash(self, keep_unflushed: bool) -> None:
        super().crash(keep_unflushed)
        self.changes_left, self.only_fails, self.is_dead = None, False, False

    def before_read(self) -> None:
        if self.is_dead:
            raise Killed
        super().before_read()

    def before_write(self, length: int = 0, size: int = 0) -> None:
        if self.changes_left is not None:
            self.changes_left -= 1
            if self.changes_left == -1 and self.only_fails:
                raise disk_error(errno.EIO)
            self.is_dead |= self.changes_left == -1
        super().before_write(length, size)
