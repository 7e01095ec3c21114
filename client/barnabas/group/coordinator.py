"""Finds the coordinator of a group, and asks it until it answers."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from barnabas_common.errors import (
    BarnabasError,
    CoordinatorNotAvailableError,
    RequestTimedOutError,
    TransportError,
    error_for,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas_common.runtime import Address, Service

from barnabas.cluster import Cluster
from barnabas.group.states import PLAIN, Reaction, reaction

logger = logging.getLogger(__name__)

Codes = Callable[[Any], Iterable[int]]


class GroupCoordinator:
    """The coordinator of one group, as far as it is known. `last_failure`: why it is not."""

    def __init__(self, cluster: Cluster, group_id: str, client_id: str) -> None:
        self.cluster = cluster
        self.group_id = group_id
        self.client_id = client_id
        self.last_failure: BarnabasError | None = None
        self.broker_id = -1
        self._address: Address | None = None
        self._previous: Address | None = None

    @property
    def known(self) -> bool:
        return self._address is not None

    def forget(self, why: BarnabasError, asked: Address | None = None) -> None:
        """Another broker may coordinate the group now: ask again before the next request.

        `asked`: who failed to answer; it is forgotten only if no other was found since.
        """
        if asked is not None and asked != self._address:
            return
        if self._address is not None:
            logger.info("group %s: coordinator %d: %s", self.group_id, self.broker_id, why)
            self._previous = self._address
        self.last_failure = why
        self._address = None

    async def find(self) -> Address:
        """Ask any broker; raises why it is not known, usually a retriable error.

        The previous coordinator is asked last: if it is cut off from the controller, it still
        names itself.
        """
        if self._address is not None:
            return self._address
        request = FindCoordinatorRequest(coordinator_keys=[self.group_id], client_id=self.client_id)
        response: FindCoordinatorResponse = await self.cluster.ask(
            request, service=Service.COORDINATOR, avoid=self._previous
        )
        for found in response.coordinators:
            if found.key == self.group_id and found.error_code == ErrorCode.NONE:
                self._address = Address(found.host, found.port)
                self.broker_id = found.node_id
                logger.info("group %s: the coordinator is %d", self.group_id, found.node_id)
                return self._address
        refused = response.coordinators[0] if response.coordinators else None
        self.last_failure = (
            CoordinatorNotAvailableError("the answer does not name the group")
            if refused is None
            else error_for(refused.error_code, refused.error_message or self.group_id)
        )
        raise self.last_failure

    async def call(self, request: Any, timeout: float) -> Any:
        """One attempt: the coordinator's answer. A failure in transit makes it unknown."""
        address = await self.find()
        try:
            return await self.cluster.channel_to(address, Service.COORDINATOR).call(
                request, timeout
            )
        except TransportError as error:
            self.forget(error, address)
            raise

    async def ask(
        self,
        request: Any,
        timeout: float,
        codes: Codes,
        table: Mapping[ErrorCode, Reaction] = PLAIN,
    ) -> Any:
        """The answer, in which no code calls for another attempt; attempts for `timeout` seconds.

        Raises `RequestTimedOutError` with the last failure. Other errors are for the caller to
        find in the answer.
        """
        clock = self.cluster.clock
        deadline = clock.monotonic() + timeout
        failures = 0
        while True:
            try:
                left = max(deadline - clock.monotonic(), 0.1)
                response = await self.call(request, min(self.cluster.request_timeout, left))
                failure = self._obstacle(codes(response), table)
                if failure is None:
                    return response
            except BarnabasError as error:
                if not error.retriable:
                    raise
                failure = error
            failures += 1
            pause = self.cluster.backoff.seconds(failures)
            if clock.monotonic() + pause >= deadline:
                raise RequestTimedOutError(
                    f"group {self.group_id!r}: no success in {timeout:.1f} s; "
                    f"last failure: {failure}"
                ) from failure
            await asyncio.sleep(pause)

    def _obstacle(
        self, codes: Iterable[int], table: Mapping[ErrorCode, Reaction]
    ) -> BarnabasError | None:
        """The error that calls for another attempt, if there is one."""
        for code in codes:
            step = reaction(table, code)
            if step is Reaction.FIND_COORDINATOR:
                error = error_for(code, f"group {self.group_id!r}")
                self.forget(error)
                return error
            if step is Reaction.TRY_AGAIN:
                return error_for(code, f"group {self.group_id!r}")
        return None
