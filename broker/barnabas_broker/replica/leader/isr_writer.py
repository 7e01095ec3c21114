"""The way around a controller that cannot be reached: leaders' ISR changes go to ZooKeeper.

Before KIP-497 every leader wrote its partition's state itself. `server/` implements this port, so
that nothing here depends on ZooKeeper.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from barnabas_common.messages.control import AlteredPartition, AlterPartitionItem


@dataclass(frozen=True)
class IsrWriteResult:
    """`answer` is what the controller would have answered; `source` names who did, for humans."""

    answer: AlteredPartition
    source: str


class IsrWriter(Protocol):
    """Writes ISR changes that the controller has not answered."""

    async def write(
        self, items: Sequence[AlterPartitionItem], why: str
    ) -> Sequence[IsrWriteResult]:
        """Return the results of the settled changes; the others wait, and may be passed again.

        `why` says what is wrong with the controller.
        """
        ...
