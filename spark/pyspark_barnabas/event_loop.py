"""One event loop for the life of a Spark worker, which plans or reads one task after the other.

Closing a gRPC channel leaves events on their way; were the loop closed as soon as a task is done,
the next task's would report them as errors.
"""

import asyncio
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result. Not for use where a loop runs already, or from two threads."""
    return _runner().run(coroutine)


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()
