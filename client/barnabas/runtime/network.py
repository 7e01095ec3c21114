"""The network, as the rest of the code sees it: requests and responses between addresses.

A channel carries many requests at once over one connection and matches the answers by correlation
id; answers may arrive out of order. Two adapters exist: gRPC over sockets, and the simulator's
memory network. Both are held to the same contract tests.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

# A request or response is one of the dataclasses of `barnabas.messages`.
Message = Any


class Address(NamedTuple):
    """Where a listener is reached: a host name or IP address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """From `host:port`; raises ValueError with the text when it is neither."""
        host, separator, port = text.strip().rpartition(":")
        if not separator or not host or not port.isdigit() or not 0 <= int(port) <= 65535:
            raise ValueError(f"not an address of the form host:port: {text!r}")
        return cls(host.strip("[]"), int(port))


class Service(Enum):
    """The doors of a broker; each is one gRPC service in a file of its own under `proto/`."""

    DATA = "Data"  # produce, fetch, offsets: any listener
    ADMIN = "Admin"  # metadata, topics, configs: any listener
    REPLICA = "Replica"  # followers' fetches and epoch look-ups: inter-broker listener only
    CONTROL = "Control"  # controller and ISR changes: inter-broker listener only


@dataclass(frozen=True)
class Peer:
    """Who sent a request: the listener it came through and the remote address."""

    listener: str
    address: str


# Takes one request and returns its response, or None when the request wants none (acks=0).
# To drop the connection (an acks=0 request that failed) it raises `DropConnection`.
Handler = Callable[[Message, Peer], Awaitable[Message | None]]


class Knock(Enum):
    """What became of one attempt to connect to an address."""

    ANSWERED = "somebody listens there"
    REFUSED = "refused: nobody listens there"
    FAILED = "failed: the network said that nobody can be reached there"
    SILENT = "no answer in time"  # which says nothing: a full queue, a cut wire, a slow machine


class DropConnection(Exception):
    """Raised by a handler: close the connection this request came from, without an answer."""


class Channel(Protocol):
    """One connection to one service of a peer; connects when first used, reconnects by itself."""

    address: Address

    async def open(self, timeout: float) -> Awaitable[str]:
        """Connect now, unless connected; `timeout` in seconds.

        What is returned completes when that very connection has ended, with the reason, whether a
        call was in flight or not. Raises `errors.Refused` if there is no connection in time.
        """
        ...

    async def call(self, request: Message, timeout: float) -> Message:
        """Send a request and return its response; `timeout` in seconds covers connecting too.

        Raises `errors.Refused` if the request was certainly not applied (nobody listens, the
        message is over the limit, the channel is closed), `errors.MaybeApplied` if the connection
        broke or the time ran out after sending.
        """
        ...

    async def send(self, request: Message, timeout: float) -> None:
        """Send a request that has no response; returns when it was handed to the connection."""
        ...

    async def close(self) -> None:
        """Close the connection; calls in flight fail with `MaybeApplied`."""
        ...


class Network(Protocol):
    """Opens channels, and looks whether anybody is there."""

    async def knock(self, address: Address, timeout: float) -> Knock:
        """Try to connect to an address, and hang up; `timeout` in seconds. Never raises.

        Where a name stands for several addresses, one that answers or is silent decides.
        """
        ...

    def connect(self, address: Address, service: Service) -> Channel:
        """A channel to a service at an address; nothing is sent yet."""
        ...


class Listener(Protocol):
    """A bound, serving listener."""

    address: Address

    async def close(self, grace: float = 0.0) -> None:
        """Stop accepting, give requests in flight `grace` seconds, close every connection."""
        ...


class Listen(Protocol):
    """Binds listeners; the gRPC one lives in the broker, the memory one in the simulator."""

    async def __call__(
        self, name: str, address: Address, handlers: Mapping[Service, Handler]
    ) -> Listener:
        """Bind and serve the given services on one listener.

        Port 0 takes a free one. Raises `OSError` with the address when the port is taken.
        """
        ...
