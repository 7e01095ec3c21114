"""FindCoordinator: which broker coordinates a group."""

from dataclasses import dataclass, field

GROUP_KEY = 0
TRANSACTION_KEY = 1


@dataclass(slots=True)
class FindCoordinatorRequest:
    """`key_type` is GROUP_KEY or TRANSACTION_KEY."""

    key_type: int = GROUP_KEY
    coordinator_keys: list[str] = field(default_factory=list)
    client_id: str = ""


@dataclass(slots=True)
class FoundCoordinator:
    """The address is that of the listener the request came through."""

    key: str
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: int = 0
    error_message: str = ""


@dataclass(slots=True)
class FindCoordinatorResponse:
    coordinators: list[FoundCoordinator] = field(default_factory=list)
