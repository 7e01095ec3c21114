"""The coordinator of a group, and which of its answers call for another attempt."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from barnabas_common.errors import BarnabasError
from barnabas_common.errors.error_code import ErrorCode

from barnabas.cluster import Cluster
from barnabas.cluster.coordinator import Codes, Coordinator, NextAttempt
from barnabas.group.states import PLAIN, Reaction, reaction

_ATTEMPTS = {
    Reaction.FIND_COORDINATOR: NextAttempt.FIND,
    Reaction.TRY_AGAIN: NextAttempt.SAME,
}


class GroupCoordinator(Coordinator):
    """The coordinator of one group, as far as it is known."""

    def __init__(self, cluster: Cluster, group_id: str, client_id: str) -> None:
        super().__init__(cluster, group_id, client_id=client_id)
        self.group_id = group_id

    async def ask(
        self,
        request: Any,
        timeout: float | None,
        codes: Codes,
        table: Mapping[ErrorCode, Reaction] = PLAIN,
        on_failure: Callable[[BarnabasError], None] = lambda failure: None,
    ) -> Any:
        """`ask_until`, with the reactions that a table names."""

        def next_attempt(code: int) -> NextAttempt:
            return _ATTEMPTS.get(reaction(table, code), NextAttempt.NONE)

        return await self.ask_until(request, timeout, codes, next_attempt, on_failure=on_failure)

    async def keep_confirming(self) -> None:
        """As often as metadata is refreshed, ask another broker whether this still coordinates.

        Beyond Kafka: a coordinator that is cut off from the other brokers answers heartbeats still,
        and a member that has nothing to commit would never notice that the group is elsewhere.
        """
        while True:
            await asyncio.sleep(self.cluster.config.metadata_max_age_ms / 1000)
            await self.confirm()
