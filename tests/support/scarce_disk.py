"""A disk in a process that runs out of file descriptors."""

import errno
import os
import posixpath
from collections.abc import Callable
from typing import Any

from barnabas_broker.disk.disk import Disk

_NEED_A_DESCRIPTOR = {
    *("open", "read_file", "write_file"),
    *("list", "lock", "sync_directory", "remove_tree"),
}


class ScarceDisk:
    """Passes every call on to `below`, but refuses calls that need a descriptor once `left` is 0.

    `left` None means no limit. `refused` counts the refused calls.
    """

    def __init__(self, below: Disk) -> None:
        self._below = below
        self.left: int | None = None
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._below, name)
        return self._counted(found) if name in _NEED_A_DESCRIPTOR else found

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        self._below.rename(old, new, sync=False)
        if sync:
            self._take()
            self._below.sync_directory(posixpath.dirname(new))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            self._take()
            return call(*args, **options)

        return counted

    def _take(self) -> None:
        if self.left == 0:
            self.refused += 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        if self.left is not None:
            self.left -= 1
