"""A shortage of file descriptors (EMFILE, ENFILE): not a failure of the disk, and temporary.

Work that needs a descriptor is refused with a retriable error, or retried later. This module
reports the shortage once, and detects its end. Created and closed by the log manager.
"""

import asyncio
from collections.abc import Awaitable, Callable

from barnabas_common.runtime import Offload, TaskScope

from barnabas_broker.disk.disk import Disk, is_out_of_descriptors

RETRY_SECONDS = 1.0
"""Between two attempts of background work."""

_OPEN_AT_ONCE = 8  # twice what a roll needs, the step that needs most


class DescriptorShortage:
    """`on_change` is called with an error at the start of a shortage, and with None at its end.

    `path` returns a file that can be opened if there are descriptors; `catch_up` does the work that
    was left out.
    """

    def __init__(
        self,
        offload: Offload,
        disk: Disk,
        path: Callable[[], str],
        catch_up: Callable[[], Awaitable[None]],
        on_change: Callable[[OSError | None], None],
    ) -> None:
        self._offload = offload
        self._disk = disk
        self._path = path
        self._catch_up = catch_up
        self._on_change = on_change
        self._tasks = TaskScope("descriptor shortage")
        self._met_again = False
        self.lasts = False

    async def close(self) -> None:
        await self._tasks.close()

    def met(self, error: OSError) -> None:
        """Report that a call found no descriptor. Returns immediately."""
        self._met_again = True
        if not self.lasts:
            self.lasts = True
            self._on_change(error)
            self._tasks.spawn(self._wait_for_the_end(), "wait for the end")

    async def _wait_for_the_end(self) -> None:
        while self._met_again:
            await asyncio.sleep(RETRY_SECONDS)
            self._met_again = False
            try:
                await self._offload.run(self._open_several)
            except OSError as error:
                self._met_again = is_out_of_descriptors(error)
            else:
                await self._catch_up()
        self.lasts = False
        self._on_change(None)

    def _open_several(self) -> None:
        path, files = self._path(), []
        try:
            for _ in range(_OPEN_AT_ONCE):
                files.append(self._disk.open(path))
        finally:
            for file in files:
                file.close()
