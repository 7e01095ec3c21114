"""The ZooKeeper seam: one session, as the controller and the brokers use it.

Two implementations: kazoo against a real ensemble, and the simulator's in-memory tree; one contract
suite holds both. A `Session` object is one ZooKeeper session: when it expires it is dead for good,
and its owner opens a new one. All methods run on the event loop; watches and state changes are
delivered there too, in ZooKeeper's order, and must only enqueue work.

What is asked while the connection is broken waits for the reconnection; only what was in flight
when it broke fails, with `ConnectionLoss`. Watches survive a reconnection: one whose znode changed
meanwhile fires before anything newer can be read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

ANY_VERSION = -1

# ZooKeeper's `jute.maxbuffer`: a server breaks the connection of a client that sends more, which
# would then look like a connection loss for ever. The overhead is generous: headers and the ACL.
REQUEST_LIMIT = 0xFFFFF
_REQUEST_OVERHEAD = 128


class ZooKeeperError(Exception):
    """An answer of ZooKeeper that is not success, or none; the message names the path."""


class NoNode(ZooKeeperError):
    pass


class NodeExists(ZooKeeperError):
    pass


class BadVersion(ZooKeeperError):
    pass


class NotEmpty(ZooKeeperError):
    pass


class NoChildrenForEphemerals(ZooKeeperError):
    pass


class ConnectionLoss(ZooKeeperError):
    """The connection broke: the operation may have been applied or not."""


class SessionExpired(ZooKeeperError):
    """The session is over; none of its ephemeral nodes exists any more."""


class RolledBack(ZooKeeperError):
    """This operation of a multi was not tried, or was undone, because another one failed."""


class TooLarge(ZooKeeperError):
    """The request is over ZooKeeper's limit of 1 MiB; it was not sent."""


class ZooKeeperUnreachable(ZooKeeperError):
    """No server of the ensemble answered within the connection timeout."""


@dataclass(frozen=True)
class Stat:
    """What ZooKeeper knows of a znode; times in ms, `ephemeral_owner` 0 for persistent nodes."""

    czxid: int
    mzxid: int
    version: int
    ephemeral_owner: int
    created_ms: int
    modified_ms: int
    children: int


class EventType(Enum):
    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILDREN = "children"


@dataclass(frozen=True)
class WatchEvent:
    """A one-shot watch fired. Session trouble is not reported here but by `on_state`."""

    type: EventType
    path: str


Watch = Callable[[WatchEvent], None]


class State(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"  # no connection; the session may still live on the servers
    EXPIRED = "expired"  # told by a server after reconnecting; final
    CLOSED = "closed"  # closed by its owner; final


@dataclass(frozen=True)
class Create:
    path: str
    data: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True)
class Delete:
    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True)
class SetData:
    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True)
class Check:
    path: str
    version: int


Operation = Create | Delete | SetData | Check
# One per operation: the created path, the Stat after SetData, None after Delete and Check,
# or the error of an operation that failed (the whole multi is then undone).
OperationResult = str | Stat | None | ZooKeeperError


def check_size(operations: Sequence[Operation]) -> None:
    """Raises TooLarge if ZooKeeper would not accept so many bytes in one request."""
    size = sum(_REQUEST_OVERHEAD + len(operation.path.encode()) for operation in operations)
    size += sum(len(op.data) for op in operations if isinstance(op, Create | SetData))
    if size > REQUEST_LIMIT:
        raise TooLarge(
            f"{operations[0].path}: a request of {size} bytes is over ZooKeeper's limit of"
            f" {REQUEST_LIMIT} bytes"
        )


EXPIRED_AT_SERVER = "the ZooKeeper session expired"


class Session(Protocol):
    """One ZooKeeper session. Paths are absolute, below the chroot; data are bytes (never None)."""

    @property
    def session_id(self) -> int:
        """As in `Stat.ephemeral_owner`."""
        ...

    @property
    def password(self) -> bytes:
        """Proves ownership of the session when attaching to it from another process."""
        ...

    @property
    def state(self) -> State: ...

    @property
    def end_cause(self) -> str:
        """Why it is EXPIRED, for people."""
        ...

    def on_state(self, listener: Callable[[State], None]) -> None:
        """Call `listener` on every later change of state."""
        ...

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Create a znode and return its path (with the 10-digit suffix when sequential).

        Raises NodeExists, NoNode (the parent is missing), NoChildrenForEphemerals.
        """
        ...

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """Data and Stat; raises NoNode (then the watch is not set)."""
        ...

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """The Stat or None; the watch is set in both cases."""
        ...

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The names of the children, sorted; raises NoNode."""
        ...

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Replace the data if the version matches; raises NoNode, BadVersion."""
        ...

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Raises NoNode, BadVersion, NotEmpty."""
        ...

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """All or nothing. Never raises for a failed operation: the results carry the errors.

        If one fails its own place holds its error and every other place holds RolledBack.
        Raises ConnectionLoss and SessionExpired like all methods.
        """
        ...

    async def close(self) -> None:
        """End the session on the servers; its ephemeral nodes vanish at once."""
        ...


class Connect(Protocol):
    """Opens sessions."""

    async def __call__(
        self,
        session_timeout_ms: int,
        connection_timeout_ms: int,
        attach: tuple[int, bytes] | None = None,
    ) -> Session:
        """A connected session: a new one, or the living one with this id and password.

        Raises ZooKeeperUnreachable after `connection_timeout_ms`, SessionExpired if the session
        to attach to is over.
        """
        ...
