"""What an application may want to do when its partitions change."""

import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from barnabas_common.errors import InvalidArgumentError
from barnabas_common.topic_partition import TopicPartition


class RebalanceListener:
    """Override what is needed; each may be a plain or an `async` method.

    They run inside `poll` (and `close`), so no record is worked on meanwhile. In
    `on_partitions_revoked` the partitions are still this consumer's: what was done can be
    committed. In `on_partitions_lost` others may read them already: a commit would fail.
    """

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> Any:
        """After every rebalance, with the partitions that are new; there may be none."""

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> Any:
        """Before these partitions go to other members."""

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> Any:
        """The partitions went without this consumer's consent. Unless overridden: as if revoked."""
        return self.on_partitions_revoked(partitions)


def check_listener(listener: object) -> None:
    """Raise `InvalidArgumentError` unless it is a listener, or None."""
    names = ("on_partitions_assigned", "on_partitions_revoked", "on_partitions_lost")
    if listener is not None and not all(callable(getattr(listener, name, None)) for name in names):
        raise InvalidArgumentError(f"listener must be a RebalanceListener, not {listener!r}")


# The listener of a blocking consumer that runs in this context, in a thread of its own.
LISTENING: ContextVar[RebalanceListener | None] = ContextVar("listening", default=None)

Callback = Callable[[Sequence[TopicPartition]], Any]


async def invoke(callback: Callback, partitions: Sequence[TopicPartition]) -> None:
    """Call one method of a listener, whether it is plain or `async`."""
    result = callback(partitions)
    if inspect.isawaitable(result):
        await result
