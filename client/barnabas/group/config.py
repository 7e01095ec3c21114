"""How a consumer takes part in a group: the part of its options that a member needs."""

from dataclasses import dataclass

from barnabas.group.assignors import Assignor


@dataclass(frozen=True)
class GroupConfig:
    """Times in seconds. `max_poll_interval` is also the group's rebalance timeout (KIP-62)."""

    group_id: str
    group_instance_id: str
    client_id: str
    client_rack: str
    assignors: tuple[Assignor, ...]
    session_timeout: float
    heartbeat_interval: float
    max_poll_interval: float
    request_timeout: float
    api_timeout: float
    auto_commit_interval: float | None
    offsets_storage: str

    @property
    def cooperative(self) -> bool:
        """Whether members keep their partitions while they join: only if every assignor can."""
        return all(assignor.cooperative for assignor in self.assignors)

    @property
    def join_timeout(self) -> float:
        """A join is answered within the rebalance timeout, and a little later at worst."""
        return max(self.request_timeout, self.max_poll_interval + 5.0)
