"""Listeners: the named addresses that a broker binds and advertises."""

from typing import NamedTuple

from barnabas_common.runtime import Address

from barnabas_broker.config.key import InvalidConfig


class Listener(NamedTuple):
    """A name such as CLIENT or INTERNAL, and its address."""

    name: str
    address: Address

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"


def parse_listeners(text: str) -> list[Listener]:
    """Parse `NAME://host:port,...`; an empty host means all interfaces. Raises InvalidConfig."""
    listeners: list[Listener] = []
    for item in text.split(","):
        name, separator, address = item.strip().partition("://")
        host, colon, port = address.rpartition(":")
        numeric = port.isascii() and port.isdigit() and int(port) <= 65535
        if not separator or not name or not colon or not numeric:
            raise InvalidConfig(f"not a listener of the form NAME://host:port: {item.strip()!r}")
        listeners.append(Listener(name, Address(host.strip("[]") or "0.0.0.0", int(port))))
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        raise InvalidConfig(f"listeners: a name is used twice: {text}")
    return listeners
