"""The blocking stream of events.

with admin.events() as stream:
    for event in stream:
        ...
"""

from typing import Self

from barnabas_common.errors import ClientError, ClosedError
from barnabas_common.events import Event

from barnabas.admin import EventStream as AsyncEventStream
from barnabas.admin import Interruption
from barnabas.sync.blocking import Blocking


class EventStream:
    """`barnabas.admin.EventStream` for `with`; ends when it or its admin client is closed."""

    def __init__(self, admin: Blocking, stream: AsyncEventStream) -> None:
        self._admin = admin
        self._stream = stream
        self._open: bool | None = None

    def __enter__(self) -> Self:
        self._admin._call(self._stream.__aenter__())
        self._open = True
        return self

    def __exit__(self, *_: object) -> None:
        self._open = False
        self._admin._thread.call(self._stream.__aexit__(None, None, None))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event | Interruption:
        if self._open is None:
            raise ClientError("the stream of events is not open: use it with `with`")
        if not self._open:
            raise StopIteration
        try:
            return self._admin._call(self._stream.__anext__())
        except (ClosedError, StopAsyncIteration):
            raise StopIteration from None
