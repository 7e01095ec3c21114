"""Repeating a request of an administrator after errors that may pass."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from barnabas_common.errors import BarnabasError, RequestTimedOutError
from barnabas_common.messages.metadata import MetadataRequest

from barnabas.cluster import Cluster

T = TypeVar("T")


async def repeated(
    cluster: Cluster, attempt: Callable[[], Awaitable[T]], timeout: float, what: str
) -> T:
    """The result of an attempt, again after each retriable error for `timeout` seconds.

    `what` has failed if the time runs out: it begins the message of `RequestTimedOutError`.
    """
    deadline = cluster.clock.monotonic() + timeout
    failures = 0
    while True:
        try:
            return await attempt()
        except BarnabasError as error:
            if not error.retriable:
                raise
            failures += 1
            pause = cluster.backoff.seconds(failures)
            if cluster.clock.monotonic() + pause >= deadline:
                raise RequestTimedOutError(f"{what}: {error}") from error
            cluster.request_refresh()
            await asyncio.sleep(pause)


async def every_broker(
    cluster: Cluster, ask: Callable[[int, float], Awaitable[T]], timeout: float, what: str
) -> list[T]:
    """What every registered broker answers to `ask(broker_id, seconds)`; repeated as a whole.

    A broker that has died may be registered for a while; others take over what it coordinated.
    """
    deadline = cluster.clock.monotonic() + timeout

    async def attempt() -> list[T]:
        brokers = (await cluster.refresh(MetadataRequest(), deadline)).brokers
        seconds = cluster.request_time(deadline)
        answers = await asyncio.gather(
            *(ask(broker.broker_id, seconds) for broker in brokers), return_exceptions=True
        )
        found = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            found.append(answer)
        return found

    return await repeated(cluster, attempt, timeout, what)
