"""Repeating a request of an administrator after errors that may pass."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from barnabas_common.errors import BarnabasError, RequestTimedOutError

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
