"""One event loop in a background thread, shared by all blocking clients of the process.

The thread of a notebook or script waits for it; a `KeyboardInterrupt` there cancels the call and
leaves the loop running. After a fork the child gets its own loop.
"""

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from barnabas_common.errors import ClientError
from barnabas_common.runtime.event_loop import ProgramLoop

logger = logging.getLogger(__name__)

T = TypeVar("T")

_shared: "LoopThread | None" = None
_lock = threading.Lock()


class LoopThread:
    """A daemon thread that runs an event loop until the interpreter ends."""

    def __init__(self) -> None:
        self.loop = ProgramLoop()
        self.process = os.getpid()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="barnabas", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    @staticmethod
    def shared() -> "LoopThread":
        """The loop of this process."""
        global _shared
        with _lock:
            if _shared is None or _shared.process != os.getpid():
                _shared = LoopThread()
            return _shared

    def call(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine on the loop and wait for its result.

        Raises its exception; `TimeoutError` after `timeout` seconds. If the wait ends early, also
        by Ctrl-C, the coroutine is cancelled.
        """
        try:
            self.check_outside()
            self.check_running()
        except (ClientError, RuntimeError):
            coroutine.close()
            raise
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result(timeout)
        except BaseException:
            future.cancel()
            raise

    def check_outside(self) -> None:
        """Raise `RuntimeError` on the loop's own thread, which cannot wait for itself."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("blocking calls are not possible in an on_delivery callback")

    def check_running(self) -> None:
        """Raise `ClientError` after a fork, and once the loop has ended: nothing would answer."""
        self.check_process()
        if self._stopped:
            raise ClientError(
                "the program is ending and the blocking clients have stopped: use and close them "
                "before, or in an exit handler that is registered after the first was made"
            )

    def check_process(self) -> None:
        """Raise `ClientError` in a child process: a fork does not copy the thread."""
        if self.process != os.getpid():
            raise ClientError(
                f"this client was made in process {self.process} and the process was forked since:"
                " close it before forking, or start processes by the method 'spawn', and make new"
                " clients in each"
            )

    def stop(self) -> None:
        """End the loop; the interpreter calls it at exit."""
        if self.process == os.getpid():
            self._stopped = True
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(timeout=2.0)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self._stopped:
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt):  # would end this thread, not the program
                logger.exception("a callback tried to end the program: use the main thread")
            else:
                return
