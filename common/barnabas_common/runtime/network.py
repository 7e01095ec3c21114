"""The network, as an interface: requests and responses between addresses.

A channel sends many concurrent requests over one connection and matches the responses by
correlation id; responses may arrive out of order. There are two adapters, gRPC over sockets and the
simulator's memory network; both pass the same contract tests.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

# A request or response is one of the dataclasses of `barnabas_common.messages`.
Message = Any


class Address(NamedTuple):
    """The address of a listener: a host name or IP address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Parse `host:port`, where an IPv6 address may be in brackets.

        Raises ValueError with the text if it has another form.
        """
        host, separator, port = text.strip().rpartition(":")
        number = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535
        if not separator or not host or not host.isprintable() or not number:
            raise ValueError(f"not an address of the form host:port: {text!r}")
        return cls(host.strip("[]"), int(port))


class Service(Enum):
    """The services of a broker; each is one gRPC service with its own file under `proto/`."""

    DATA = "Data"  # produce, fetch, offsets: any listener
    ADMIN = "Admin"  # metadata, topics, configs: any listener
    COORDINATOR = "Coordinator"  # groups and their offsets: any listener
    REPLICA = "Replica"  # followers' fetches and epoch look-ups: inter-broker listener only
    CONTROL = "Control"  # controller and ISR changes: inter-broker listener only


@dataclass(frozen=True)
class Peer:
    """The sender of a request: the listener that received it, and the remote address."""

    listener: str
    address: str


# Takes one request and returns its response, or None if the request has no response (acks=0).
# It raises `DropConnection` to close the connection, for instance after a failed acks=0 request.
Handler = Callable[[Message, Peer], Awaitable[Message | None]]


class ProbeResult(Enum):
    """The outcome of one attempt to connect to an address."""

    ANSWERED = "a process listens there"
    REFUSED = "refused: no process listens there"
    FAILED = "failed: the network reports that the address cannot be reached"
    SILENT = "no answer in time"  # proves nothing: a full queue, a partition, a slow host


class DropConnection(Exception):
    """Raised by a handler to close the connection of this request without a response."""


class Channel(Protocol):
    """One connection to one service of a peer; connects at the first use, and again as needed."""

    address: Address

    async def open(self, timeout: float) -> Awaitable[str]:
        """Connect now, unless connected; `timeout` is in seconds.

        The returned awaitable completes with the reason when this connection has ended, whether or
        not a call was in flight. Raises `errors.NotApplied` if there is no connection in time.
        """
        ...

    async def call(self, request: Message, timeout: float) -> Message:
        """Send a request and return its response; `timeout`, in seconds, includes connecting.

        Raises `errors.NotApplied` if the request was certainly not applied (no process listens, the
        message is over the limit, the channel is closed). Raises `errors.MaybeApplied` if the
        connection broke or the time ran out after the request was sent.
        """
        ...

    async def send(self, request: Message, timeout: float) -> None:
        """Send a request that has no response.

        Returns when the connection has taken it. Raises as `call` does, after at most `timeout`
        seconds.
        """
        ...

    async def close(self) -> None:
        """Close the connection; calls that were sent fail with `MaybeApplied`."""
        ...


class Network(Protocol):
    """Opens channels, and probes addresses."""

    async def probe(self, address: Address, timeout: float) -> ProbeResult:
        """Try to connect to an address, then close; `timeout` is in seconds. Never raises.

        If a name has several addresses, the result is REFUSED only if every one refuses.
        """
        ...

    def connect(self, address: Address, service: Service) -> Channel:
        """A channel to a service at an address; it does not connect yet."""
        ...


class Listener(Protocol):
    """A bound, serving listener."""

    address: Address

    async def close(self, grace: float = 0.0) -> None:
        """Stop accepting, wait up to `grace` seconds for requests in flight, then close all
        connections."""
        ...


class Listen(Protocol):
    """Binds listeners; the gRPC one is in the broker, the memory one in the simulator."""

    async def __call__(
        self, name: str, address: Address, handlers: Mapping[Service, Handler]
    ) -> Listener:
        """Bind one listener and serve the given services on it.

        Port 0 picks a free port. Raises `OSError` with the address if the port is in use.
        """
        ...
