"""Notifications: sequential znodes in a directory that the controller watches.

The controller reads all of them, handles them together, and deletes them.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.zookeeper.session import Stat

T = TypeVar("T")


class Notifications(Generic[T]):
    """The notifications in one directory.

    `handle` receives all that are there, decoded. `decode(path, data, stat)` may raise
    MalformedZnode; that notification is then left out.
    """

    def __init__(
        self,
        term: ControllerTerm,
        directory: str,
        decode: Callable[[str, bytes, Stat], T],
        handle: Callable[[Sequence[T]], Awaitable[None]],
    ) -> None:
        self._term = term
        self._directory = directory
        self._decode = decode
        self._handle = handle
        self._watch = term.watch(f"notifications in {directory}", self._on_children_changed)

    async def start(self) -> None:
        """At failover: delete old notifications; the failover reads the state afterwards."""
        await self._term.store.children(self._directory, self._watch)
        await self._term.fenced.delete_children(self._directory)

    async def _on_children_changed(self) -> None:
        """Handle and delete all notifications; the deletion triggers one more call, without any."""
        store = self._term.store
        names = await store.children(self._directory, self._watch)
        paths = [f"{self._directory}/{name}" for name in names]
        found = [await store.read(path, partial(self._decode, path)) for path in paths]
        await self._handle([notification for notification in found if notification is not None])
        for path in paths:
            await self._term.fenced.delete_tree(path)
