"""The way from the caller's thread to the event loop: a queue, emptied in bulk.

Passing each record alone would cost two thread switches for each. So `put` only appends, and wakes
the loop if it is not already at work; the loop takes the whole queue.
"""

import asyncio
import logging
from collections import deque
from typing import Any

from barnabas_common.errors import BarnabasError, ClientError, UnknownTopicOrPartitionError

from barnabas.producer import Producer
from barnabas.sync.handle import SyncHandle
from barnabas.sync.loop_thread import LoopThread

logger = logging.getLogger(__name__)

# Records in the queue; beyond that `put` blocks, as `await send` would.
_MOST_QUEUED = 20_000
_REFUSALS_KEPT = 1_000


class SendLane:
    """`put` is called in the caller's threads, everything else on the loop."""

    def __init__(self, producer: Producer, thread: LoopThread) -> None:
        self._producer = producer
        self._thread = thread
        self._queue: deque[SyncHandle] = deque()
        self._working = False
        self._passing = 0
        self._scheduled = False
        self._room = asyncio.Event()
        self._passed = 0
        self._awaited: deque[tuple[int, asyncio.Future[None]]] = deque()
        # Where there is no topic or partition, up to which record that counts, and the error.
        self._missing: dict[tuple[object, object], tuple[int, BarnabasError]] = {}
        self._refused: deque[SyncHandle] = deque(maxlen=_REFUSALS_KEPT)
        self._task: asyncio.Task[None] | None = None

    def put(self, arguments: tuple[Any, ...]) -> SyncHandle:
        """Queue the arguments of one `Producer.send`; blocks while the queue is full."""
        handle = SyncHandle(self._thread, arguments)
        self._queue.append(handle)
        if not self._scheduled:
            self._scheduled = True
            self._thread.loop.call_soon_threadsafe(self._start)
        if len(self._queue) > _MOST_QUEUED:
            self._thread.call(self._wait_for_room())
        return handle

    @property
    def waiting(self) -> int:
        """How many records were queued and not given to the producer yet."""
        return len(self._queue) + self._passing

    async def drained(self) -> None:
        """Wait until every record that is queued now was given to the producer.

        Other threads may go on sending: the queue need never be empty.
        """
        waiting = self.waiting
        if not waiting:
            return
        self._start()
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited.append((self._passed + waiting, given))
        await given

    def take_refusals(self) -> list[BarnabasError]:
        """Errors of refused records whose handles were not asked; each is returned once."""
        refusals = [handle.unobserved_refusal for handle in self._refused]
        self._refused.clear()
        return [error for error in refusals if error is not None]

    async def _wait_for_room(self) -> None:
        while len(self._queue) > _MOST_QUEUED // 2:
            self._room.clear()
            await self._room.wait()

    def _start(self) -> None:
        if not self._working:
            self._working = True
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while True:
                # Cleared before the last check: a record queued after it wakes the loop again.
                self._scheduled = False
                if not self._queue:
                    self._missing.clear()
                    return
                self._scheduled = True
                await self._pass_on()
        finally:
            self._working = False
            self._room.set()

    async def _pass_on(self) -> None:
        queue = self._queue
        send = self._producer.send
        while queue:
            self._passing = 1
            handle = queue.popleft()
            assert handle.arguments is not None
            try:
                if self._missing:
                    self._check_not_missing(*handle.arguments[:4])
                handle.accepted(await send(*handle.arguments))
            except UnknownTopicOrPartitionError as error:
                self._note_missing(error, *handle.arguments[:4])
                self._refuse(handle, error)
            except BarnabasError as error:
                self._refuse(handle, error)
            except Exception as error:
                logger.exception("a record could not be sent")
                self._refuse(handle, ClientError(repr(error)))
            self._passing = 0
            self._passed += 1
            if self._awaited:
                self._tell()
            if len(queue) == _MOST_QUEUED // 2:
                self._room.set()

    def _note_missing(
        self, error: BarnabasError, topic: str, _value: object, _key: object, partition: object
    ) -> None:
        """The brokers were asked about it for seconds while the records that are queued now waited:
        each of these would wait as long."""
        self._missing.setdefault((topic, partition), (self._passed + len(self._queue), error))

    def _check_not_missing(
        self, topic: object, _value: object, _key: object, partition: object
    ) -> None:
        if isinstance(topic, str) and isinstance(partition, int | None):
            last, error = self._missing.get((topic, partition), (-1, None))
            if error is not None and self._passed <= last:
                raise error
            self._missing.pop((topic, partition), None)

    def _tell(self) -> None:
        """End the waits for records up to the last one that was given to the producer."""
        while self._awaited and self._awaited[0][0] <= self._passed:
            _, given = self._awaited.popleft()
            if not given.done():
                given.set_result(None)

    def _refuse(self, handle: SyncHandle, error: BarnabasError) -> None:
        self._refused.append(handle)
        handle.refused(error)
