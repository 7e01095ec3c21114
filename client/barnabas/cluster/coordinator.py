"""Finds the coordinator of a key, a group or a transactional id, and asks it until it answers."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

from barnabas_common.errors import (
    BarnabasError,
    CoordinatorNotAvailableError,
    KafkaError,
    RequestTimedOutError,
    TransportError,
    error_for,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    GROUP_KEY,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
)
from barnabas_common.runtime import Address, Service

from barnabas.cluster.cluster import Cluster

logger = logging.getLogger(__name__)

Codes = Callable[[Any], Iterable[int]]

# How long a coordinator may put off a request before another broker is asked who coordinates.
_CONFIRM_SECONDS = 3.0

_KINDS = {GROUP_KEY: "group"}


class NextAttempt(Enum):
    """What an error code in a coordinator's answer calls for."""

    NONE = "the answer is for the caller"
    SAME = "the request is sent again after a pause"
    FIND = "another broker coordinates the key now: find it, and send the request again"


class Coordinator:
    """The coordinator of one key, as far as it is known.

    `name` says in messages what the key is of. `last_failure`: why the coordinator is not known, or
    why the last attempt to ask it failed. `losses`: how often one that was known no longer was.
    """

    def __init__(
        self, cluster: Cluster, key: str, key_type: int = GROUP_KEY, client_id: str = ""
    ) -> None:
        self.cluster = cluster
        self.client_id = client_id
        self.name = f"{_KINDS.get(key_type, 'transactional id')} {key!r}"
        self.last_failure: BarnabasError | None = None
        self.broker_id = -1
        self.losses = 0
        self._key = key
        self._key_type = key_type
        self._address: Address | None = None
        self._previous: Address | None = None

    @property
    def known(self) -> bool:
        return self._address is not None

    def forget(self, why: BarnabasError, asked: Address | None = None) -> None:
        """Another broker may coordinate the key now: ask again before the next request.

        `asked`: who failed to answer; it is forgotten only if no other was found since.
        """
        if asked is not None and asked != self._address:
            return
        if self._address is not None:
            logger.info("%s: coordinator %d: %s", self.name, self.broker_id, why)
            self._previous = self._address
            self.losses += 1
        self.last_failure = why
        self._address = None

    async def find(self) -> Address:
        """Ask any broker; raises why it is not known, usually a retriable error.

        The previous coordinator is asked last: if it is cut off from the controller, it still
        names itself.
        """
        if self._address is not None:
            return self._address
        try:
            found = await self._look_up(self._previous)
        except KafkaError as error:
            self.last_failure = error
            raise
        self._address = Address(found.host, found.port)
        self.broker_id = found.node_id
        logger.info("%s: the coordinator is %d", self.name, found.node_id)
        return self._address

    async def confirm(self) -> None:
        """Ask another broker who coordinates the key; forget a coordinator that it does not name.

        If no other broker answers, what is known stays.
        """
        known = self._address
        if known is None:
            return
        try:
            found = await self._look_up(known)
        except BarnabasError as error:
            logger.debug("%s: coordinator %d not confirmed: %s", self.name, self.broker_id, error)
            return
        if Address(found.host, found.port) != known:
            why = f"another broker names {found.node_id} as the coordinator"
            self.forget(CoordinatorNotAvailableError(why), known)

    async def _look_up(self, avoid: Address | None) -> FoundCoordinator:
        request = FindCoordinatorRequest(self._key_type, [self._key], self.client_id)
        response: FindCoordinatorResponse = await self.cluster.ask(
            request, service=Service.COORDINATOR, avoid=avoid
        )
        for found in response.coordinators:
            if found.key == self._key and found.error_code == ErrorCode.NONE:
                return found
        refused = response.coordinators[0] if response.coordinators else None
        if refused is None:
            raise CoordinatorNotAvailableError(f"the answer does not name {self.name}")
        raise error_for(refused.error_code, refused.error_message or self._key)

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

    async def ask_until(
        self,
        request: Any,
        timeout: float | None,
        codes: Codes,
        next_attempt: Callable[[int], NextAttempt],
        short_pauses: Mapping[int, float] | None = None,
        on_failure: Callable[[BarnabasError], None] = lambda failure: None,
    ) -> Any:
        """The answer, in which no code calls for another attempt; attempts for `timeout` seconds.

        `short_pauses`: seconds before the next attempt after some codes, in place of the backoff.
        `on_failure` is called after each attempt that failed; what it raises ends them.

        A coordinator that puts off the request for long is confirmed (beyond Kafka): one that was
        replaced while it was cut off would wait forever for what its successor has done.

        Raises `RequestTimedOutError` with the last failure. Other errors are for the caller to
        find in the answer.
        """
        clock = self.cluster.clock
        deadline = None if timeout is None else clock.monotonic() + timeout
        limit = self.cluster.request_timeout
        failures = 0
        put_off_since: float | None = None
        while True:
            pause = None
            try:
                if deadline is not None:
                    limit = self.cluster.request_time(deadline)
                response = await self.call(request, limit)
                failed = self._obstacle(codes(response), next_attempt)
                if failed is None:
                    return response
                failure: BarnabasError = error_for(failed, self.name)
                pause = (short_pauses or {}).get(failed)
            except BarnabasError as error:
                if not error.retriable:
                    raise
                failure = error
            failures += 1
            self.last_failure = failure
            on_failure(failure)
            pause = pause or self.cluster.backoff.seconds(failures)
            if deadline is not None and clock.monotonic() + pause >= deadline:
                raise RequestTimedOutError(
                    f"{self.name}: no success in {timeout:.1f} s; last failure: {failure}"
                ) from failure
            put_off_since = await self._confirmed(put_off_since)
            await asyncio.sleep(pause)

    async def _confirmed(self, put_off_since: float | None) -> float | None:
        """Confirm the coordinator if it has put off a request for long. Returns since when it has
        done so; None if no coordinator is known."""
        now = self.cluster.clock.monotonic()
        if put_off_since is not None and now - put_off_since >= _CONFIRM_SECONDS:
            await self.confirm()
            put_off_since = None
        if not self.known:
            return None
        return now if put_off_since is None else put_off_since

    def _obstacle(
        self, codes: Iterable[int], next_attempt: Callable[[int], NextAttempt]
    ) -> int | None:
        """The code that calls for another attempt, if there is one."""
        for code in codes:
            step = next_attempt(code)
            if step is NextAttempt.FIND:
                self.forget(error_for(code, self.name))
            if step is not NextAttempt.NONE:
                return code
        return None
