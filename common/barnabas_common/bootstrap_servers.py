"""The addresses of the brokers that a client asks first."""

from collections.abc import Iterable, Sequence

from barnabas_common.errors import InvalidArgumentError
from barnabas_common.runtime import Address


def parse_bootstrap_servers(value: str | Sequence[str]) -> tuple[Address, ...]:
    """Parse `"host:port,host:port"` or a list of such; at least one address, no duplicates."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, Iterable) or not all(isinstance(part, str) for part in given):
        raise InvalidArgumentError(f"bootstrap_servers are host:port,..., not {value!r}")
    parts = list(given)
    texts = [part.strip() for part in parts if part.strip()]
    if not texts:
        raise InvalidArgumentError("bootstrap_servers must name at least one host:port")
    try:
        return tuple(dict.fromkeys(Address.parse(text) for text in texts))
    except ValueError as error:
        raise InvalidArgumentError(f"bootstrap_servers: {error}") from None
