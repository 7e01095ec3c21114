"""The preferred leader rebalance (`auto.leader.rebalance.enable`).

Failures of brokers move leadership away from the preferred replicas; the rebalance moves it back.
"""

import asyncio

from barnabas_common.events import EventKind
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.partitions.partition_state_machine import PartitionStateMachine
from barnabas_controller.state.context import ControllerContext

FIRST_CHECK_SECONDS = 5.0
CAUSE = "the rebalance moves leadership back to the preferred replica, which is in sync"


class PreferredRebalance:
    """Checks the balance of leaderships periodically; `run` is a task of the controller term."""

    def __init__(self, term: ControllerTerm, partitions: PartitionStateMachine) -> None:
        self._term = term
        self._partitions = partitions

    async def run(self) -> None:
        """Enqueue a check in every interval, the first one soon after failover."""
        await asyncio.sleep(FIRST_CHECK_SECONDS)
        while True:
            self._term.enqueue("preferred leader rebalance", self.check)
            await asyncio.sleep(self._term.config.leader_imbalance_check_interval_seconds)

    async def check(self) -> None:
        """If enabled, elect preferred leaders for every broker above the allowed imbalance."""
        if not self._term.config.auto_leader_rebalance_enable:
            return
        percentage = self._term.config.leader_imbalance_per_broker_percentage
        partitions = imbalanced_partitions(self._term.context, percentage)
        if partitions:
            self._term.events.record(
                EventKind.PREFERRED_REBALANCE,
                "brokers lead too few of the partitions whose preferred replica they are"
                f" (over {percentage} % have another leader)",
                partitions=len(partitions),
            )
            await self._partitions.elect_preferred(partitions, CAUSE)


def imbalanced_partitions(context: ControllerContext, percentage: int) -> list[TopicPartition]:
    """The partitions for which preferred leaders should be elected.

    A broker should lead the partitions whose preferred replica it is; its imbalance is the share of
    them that other brokers lead. Partitions whose preferred replica is offline or outside the ISR
    are left out, because the election would fail.
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
