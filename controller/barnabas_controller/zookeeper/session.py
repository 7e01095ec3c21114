"""The interface to ZooKeeper: one session, as the controller and the brokers use it.

There are two implementations, kazoo with a real ensemble and the simulator's in-memory tree; one
contract test suite covers both. A `Session` object is one ZooKeeper session: after it has expired,
its owner opens a new one. All methods run on the event loop. Watches and state changes are
delivered there too, in ZooKeeper's order; they must only enqueue work.

Requests made while there is no connection wait for the next connection. Only requests in flight
when the connection is lost fail, with `ConnectionLoss`. Watches survive a reconnection: if the
znode has changed, the watch fires before anything newer can be read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

ANY_VERSION = -1

# ZooKeeper's `jute.maxbuffer`, in bytes. A server closes the connection of a client that sends
# more, so every retry would end in a connection loss. The overhead covers headers and the ACL.
REQUEST_LIMIT = 0xFFFFF
_REQUEST_OVERHEAD = 128
_PATH_SHOWN = 200


class ZooKeeperError(Exception):
    """ZooKeeper reported an error or did not answer; the message names the path.

    The subclasses without a description are named after ZooKeeper's error codes.
    """


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
    """The connection was lost; the operation may or may not have been applied."""


class SessionExpired(ZooKeeperError):
    """The session is over; none of its ephemeral nodes exists any more."""


class RolledBack(ZooKeeperError):
    """The operation of a multi was not tried, or was undone, because another one failed."""


class TooLarge(ZooKeeperError):
    """The request is over ZooKeeper's limit of 1 MiB; it was not sent."""


class ZooKeeperUnreachable(ZooKeeperError):
    """No server of the ensemble answered within the connection timeout."""


class ZooKeeperBehind(ZooKeeperUnreachable):
    """A server answers but is behind what this process has seen: it was restored from a copy."""


@dataclass(frozen=True)
class Stat:
    """The metadata of a znode. Times are in ms; `children` is the number of children.

    `czxid` and `mzxid` are the transactions that created the znode and last changed its data.
    `ephemeral_owner` is a session id, 0 for a persistent znode.
    """

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
    """A one-shot watch fired. (Changes of the session are reported by `on_state`.)"""

    type: EventType
    path: str


Watch = Callable[[WatchEvent], None]


class State(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"  # no connection; the session may still be open on the servers
    EXPIRED = "expired"  # reported by a server after reconnecting; final
    CLOSED = "closed"  # closed by its owner; final


@dataclass(frozen=True)
class Create:
    """`sequential`: ZooKeeper appends ten digits to the path."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


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
    """Fails with BadVersion unless the znode has this version."""

    path: str
    version: int


Operation = Create | Delete | SetData | Check
# The result of one operation: the created path, the Stat after SetData, None after Delete and
# Check, or the error of an operation that failed (the whole multi is then undone).
OperationResult = str | Stat | None | ZooKeeperError


def check_size(operations: Sequence[Operation]) -> None:
    """Raise TooLarge if a request with these operations exceeds ZooKeeper's limit."""
    size = sum(_REQUEST_OVERHEAD + len(operation.path.encode()) for operation in operations)
    size += sum(len(op.data) for op in operations if isinstance(op, Create | SetData))
    if size > REQUEST_LIMIT:
        raise TooLarge(
            f"{operations[0].path[:_PATH_SHOWN]}: a request of {size} bytes is over ZooKeeper's"
            f" limit of {REQUEST_LIMIT} bytes"
        )


def check_path(path: str) -> None:
    """Raise TooLarge if a request with nothing but this path exceeds ZooKeeper's limit."""
    check_size([Check(path, ANY_VERSION)])


def unreachable(what: str, server_zxid: int | None, last_zxid: int) -> "ZooKeeperUnreachable":
    """The error to raise when no server serves a session; `what` is its text if none is behind.

    `server_zxid` is what a server answered outside the session, or None. A server refuses sessions
    that have seen a later transaction than it has. So, within a session, a server that was restored
    from an old copy looks like a stopped one.
    """
    if server_zxid is not None and server_zxid < last_zxid:
        return ZooKeeperBehind(
            f"ZooKeeper is at zxid {server_zxid:#x}, behind {last_zxid:#x}, which this broker has"
            " seen: it was restored from an older copy. Put the newer data back; or accept the"
            " older copy by restarting every broker"
        )
    return ZooKeeperUnreachable(what)


EXPIRED_AT_SERVER = "the ZooKeeper session expired"


class Session(Protocol):
    """One ZooKeeper session. Paths are absolute and below the chroot.

    Every method that sends a request raises ConnectionLoss and SessionExpired. TooLarge is raised
    for data or a path beyond ZooKeeper's limit.
    """

    @property
    def session_id(self) -> int:
        """The id that `Stat.ephemeral_owner` has for the session's znodes."""
        ...

    @property
    def password(self) -> bytes:
        """The secret that another process must have to attach to the session (see `Connect`)."""
        ...

    @property
    def state(self) -> State: ...

    @property
    def end_cause(self) -> str:
        """Why the session is EXPIRED, for humans."""
        ...

    @property
    def last_zxid(self) -> int:
        """The zxid of the newest transaction that a server has shown to this session."""
        ...

    async def diagnose(self) -> "ZooKeeperUnreachable":
        """Why no server serves a SUSPENDED session; asks the servers outside the session."""
        ...

    def on_state(self, listener: Callable[[State], None]) -> None:
        """Call `listener` on every later change of state."""
        ...

    async def create(
        self,
        path: str,
        data: bytes | None = b"",
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> str:
        """Create a znode and return its path (with the 10-digit suffix when sequential).

        Data of None are ZooKeeper's null. Other clients can distinguish null from empty data; `get`
        returns empty data for both.

        Raises NodeExists, NoNode (the parent is missing), NoChildrenForEphemerals.
        """
        ...

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """The data and the Stat; raises NoNode, and then does not set the watch."""
        ...

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """The Stat, or None without a znode; the watch is set in both cases."""
        ...

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The names of the children, sorted; raises NoNode."""
        ...

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace the data if the version matches; return the new Stat.

        Raises NoNode, BadVersion.
        """
        ...

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete the znode if the version matches; raises NoNode, BadVersion, NotEmpty."""
        ...

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Apply all operations or none; return one result for each, in order.

        If one operation fails, its result is its error, and every other result is RolledBack.
        """
        ...

    async def close(self) -> None:
        """End the session on the servers, which delete its ephemeral nodes immediately."""
        ...


class Connect(Protocol):
    """Opens sessions."""

    async def __call__(
        self,
        session_timeout_ms: int,
        connection_timeout_ms: int,
        attach: tuple[int, bytes] | None = None,
        last_zxid: int = 0,
    ) -> Session:
        """A connected session: a new one, or the open one with the id and password in `attach`.

        Servers behind `last_zxid` are not used. Raises ZooKeeperUnreachable after
        `connection_timeout_ms` (ZooKeeperBehind if a server answers but is behind), and
        SessionExpired if the session to attach to is over.
        """
        ...
