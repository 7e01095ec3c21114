"""The common base of the three blocking clients: each waits for an asyncio client's answers."""

from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from barnabas_common.errors import ClientError, ClosedError

from barnabas.sync.loop_thread import LoopThread

P = ParamSpec("P")
T = TypeVar("T")


class Blocking:
    """Starts the asyncio client `_client` on the background loop, and closes it.

    Use after `close` raises `ClosedError`, use after a fork `ClientError`.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._what = type(client).__name__
        self._thread = LoopThread.shared()
        self._closed = False
        self._thread.call(client.start())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the client. May be called twice."""
        self._close_by(self._client.close)

    def _close_by(self, closing: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Refuse further use, then wait for `closing`; a Ctrl-C cancels it, and it cleans up."""
        if self._closed:
            return
        self._check_usable()
        self._thread.check_outside()
        self._closed = True
        self._thread.call(closing())

    def _check_usable(self) -> None:
        self._thread.check_process()
        if self._closed:
            raise ClosedError(f"this {self._what} is closed")
        self._thread.check_running()

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        try:
            self._check_usable()
        except ClientError:
            coroutine.close()
            raise
        return self._thread.call(coroutine)


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """Make a method of a blocking client, which waits for the result of the asyncio method."""

    @wraps(method)
    def call(self: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._call(method(self._client, *args, **kwargs))

    return call


def on_loop(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Like `blocking`, for a plain method that must run on the event loop."""

    @wraps(method)
    def call(self: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def run() -> T:
            return method(self._client, *args, **kwargs)

        return self._call(run())

    return call
