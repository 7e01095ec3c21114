"""Leadership drifts when brokers fail; now and then it is handed back to the preferred replicas."""

import asyncio
import logging

from barnabas.events import EventKind
from barnabas.topic_partition import TopicPartition

from barnabas_controller.context import ControllerContext
from barnabas_controller.partition_states import PartitionStateMachine
from barnabas_controller.reign import Reign

logger = logging.getLogger(__name__)

FIRST_CHECK_SECONDS = 5.0
CAUSE = "the rebalance hands leadership back to the preferred replica, which is in sync"


class PreferredRebalance:
    """The timer and what it does; `run` is a task of the reign's."""

    def __init__(self, reign: Reign, partitions: PartitionStateMachine) -> None:
        self._reign = reign
        self._partitions = partitions

    async def run(self) -> None:
        """Ask for a check at every interval, the first one soon after failover."""
        await asyncio.sleep(FIRST_CHECK_SECONDS)
        while True:
            self._reign.enqueue("preferred leader rebalance", self.check)
            await asyncio.sleep(self._reign.config.leader_imbalance_check_interval_seconds)

    async def check(self) -> None:
        """Elect the preferred leaders of every broker that lost too many, if that is wanted."""
        if not self._reign.config.auto_leader_rebalance_enable:
            return
        percentage = self._reign.config.leader_imbalance_per_broker_percentage
        partitions = imbalanced_partitions(self._reign.context, percentage)
        if partitions:
            logger.info("handing %d partitions to their preferred leaders", len(partitions))
            self._reign.events.record(
                EventKind.PREFERRED_REBALANCE,
                f"brokers lead too few of the partitions they are preferred for"
                f" (over {percentage} % are led by others)",
                partitions=len(partitions),
            )
            await self._partitions.elect_preferred(partitions, CAUSE)


def imbalanced_partitions(context: ControllerContext, percentage: int) -> list[TopicPartition]:
    """What to elect: of each broker that leads too few of the partitions it is preferred for.

    The imbalance of a broker is the share of those partitions that another broker leads. Named are
    only partitions whose preferred replica is online and in sync, so that the election succeeds.
    """
    preferred: dict[int, list[TopicPartition]] = {}
    for partition in context.partitions_with_leaders():
        replicas = context.replicas(partition)
        if replicas:
            preferred.setdefault(replicas[0], []).append(partition)
    chosen: list[TopicPartition] = []
    for broker_id, partitions in sorted(preferred.items()):
        drifted = [p for p in partitions if context.leadership[p].leader != broker_id]
        if len(drifted) * 100 > percentage * len(partitions):
            chosen += [
                p
                for p in drifted
                if context.is_online(broker_id, p) and broker_id in context.leadership[p].isr
            ]
    return chosen
