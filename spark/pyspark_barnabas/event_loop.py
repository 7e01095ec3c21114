"""One event loop for a Spark worker process, which plans or reads one task after the other.

A closed gRPC channel still has events in flight; if each task closed its loop, the next task's loop
would report them as errors.
"""

import asyncio
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine and return its result.

    Must not be called while an event loop runs in this thread, nor from two threads.
    """
    return _runner().run(coroutine)


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()
