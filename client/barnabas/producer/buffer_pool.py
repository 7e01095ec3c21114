"""The producer's memory: the records that wait for delivery never exceed `buffer_memory`.

A batch takes its share when it is opened and returns it when it is done. Waiters are served in
order, so small batches do not starve a large one.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from barnabas_common.errors import BufferExhaustedError
from barnabas_common.record.record import Headers

# The most a record adds to its key, value and headers (Kafka's MAX_RECORD_OVERHEAD).
RECORD_OVERHEAD = 21
# The most a header adds to its name and value: two varints.
_HEADER_OVERHEAD = 10


class BufferPool:
    """Lends bytes. It is single-threaded, so taking bytes without waiting is plain arithmetic.

    `on_contended()` is called when a caller has to wait.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.available = capacity
        self.on_contended: Callable[[], None] = lambda: None
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def contended(self) -> bool:
        """Whether a caller waits for memory, so that batches should not linger."""
        return bool(self._waiters)

    def try_allocate(self, size: int) -> bool:
        """Take `size` bytes if they are free and no caller waits."""
        if self._waiters or size > self.available:
            return False
        self.available -= size
        return True

    async def allocate(self, size: int, timeout: float) -> None:
        """Wait for `size` bytes. Raises `BufferExhaustedError` after `timeout` seconds."""
        if self.try_allocate(size):
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size, granted)
        self._waiters.append(entry)
        self.on_contended()
        try:
            async with asyncio.timeout(timeout):
                await granted
        except BaseException as error:
            self._withdraw(entry)
            if isinstance(error, TimeoutError):
                raise BufferExhaustedError(
                    f"no {size} bytes became free in {timeout:.1f} s of the {self.capacity} of "
                    "buffer_memory: records are sent faster than the brokers accept them"
                ) from None
            raise

    def deallocate(self, size: int) -> None:
        """Return `size` bytes, and serve the waiters whose requests fit, in order."""
        self.available += size
        while self._waiters and self._waiters[0][0] <= self.available:
            wanted, granted = self._waiters.popleft()
            if not granted.done():
                self.available -= wanted
                granted.set_result(None)

    def _withdraw(self, entry: tuple[int, asyncio.Future[None]]) -> None:
        size, granted = entry
        if granted.done() and not granted.cancelled():
            self.deallocate(size)  # granted just as the waiter gave up
            return
        if entry in self._waiters:
            self._waiters.remove(entry)
        self.deallocate(0)


def headers_size(headers: Headers) -> int:
    """The most that the headers of one record take up."""
    return sum(
        len(name) * 4 + (len(value) if value is not None else 0) + _HEADER_OVERHEAD
        for name, value in headers
    )
