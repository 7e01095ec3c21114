"""Elections on request: by an administrator (KIP-183, KIP-460), or by a znode of old tools.

    /admin/preferred_replica_election
    {"version":1,"partitions":[{"topic":"flights","partition":0}]}

The znode asks for preferred leaders, and is deleted as soon as the elections were tried, whatever
came of them. What cannot be understood is deleted too: nobody else would.
"""

import logging
from collections.abc import Mapping

from barnabas.error_code import ErrorCode
from barnabas.messages.elections import (
    PREFERRED,
    UNCLEAN,
    ElectionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from barnabas.topic_partition import TopicPartition

from barnabas_controller.election import Decision, Refused
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.leader_and_isr import NO_LEADER
from barnabas_controller.partition_states import PartitionStateMachine
from barnabas_controller.reign import Reign
from barnabas_controller.znode_json import JsonReader
from barnabas_controller.znodes import PREFERRED_REPLICA_ELECTION
from barnabas_controller.zookeeper.session import WatchEvent

logger = logging.getLogger(__name__)

CAUSES = {
    PREFERRED: "an administrator asked for the preferred leader",
    UNCLEAN: "an administrator asked for a leader, even at the price of records",
}
NOT_AVAILABLE = {
    PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


class LeaderElections:
    """Takes the wishes of one reign."""

    def __init__(self, reign: Reign, partitions: PartitionStateMachine) -> None:
        self._reign = reign
        self._context = reign.context
        self._partitions = partitions

    # ---- by request

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """Each partition has its election, or its refusal, by itself.

        With `all`, partitions that need no election are not mentioned.
        """
        kind = request.election_type
        if kind not in CAUSES:
            return ElectLeadersResponse(
                ErrorCode.INVALID_REQUEST, f"no such type of election: {kind!r}"
            )
        if request.all:
            wanted = [p for p in self._context.partitions() if self._refusal(kind, p) is None]
        else:
            wanted = [TopicPartition(p.topic, p.partition) for p in request.partitions]
        wanted = list(dict.fromkeys(wanted))
        return ElectLeadersResponse(partitions=await self._elect(kind, wanted, CAUSES[kind]))

    async def _elect(
        self, kind: str, partitions: list[TopicPartition], cause: str
    ) -> list[ElectionResult]:
        refused = {p: refusal for p in partitions if (refusal := self._refusal(kind, p))}
        electable = [p for p in partitions if p not in refused]
        outcome: Mapping[TopicPartition, Decision]
        if kind == PREFERRED:
            outcome = await self._partitions.elect_preferred(electable, cause)
        else:
            outcome = await self._partitions.elect(electable, cause, even_unclean=True)
        for partition in electable:
            if self._needs_election(kind, partition):
                decision = outcome.get(partition)
                why = decision.reason if isinstance(decision, Refused) else "no replica can lead"
                refused[partition] = (NOT_AVAILABLE[kind], why)
        return [
            ElectionResult(*partition, *refused.get(partition, (ErrorCode.NONE, "")))
            for partition in partitions
        ]

    def _refusal(self, kind: str, partition: TopicPartition) -> tuple[ErrorCode, str] | None:
        """Why no election is tried, if so."""
        context = self._context
        if not context.replicas(partition):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition} does not exist"
        if context.is_to_be_deleted(partition.topic):
            return ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {partition.topic} is being deleted"
        if not self._needs_election(kind, partition):
            what = "its preferred replica" if kind == PREFERRED else "a live replica"
            return ErrorCode.ELECTION_NOT_NEEDED, f"{partition} is led by {what} already"
        return None

    def _needs_election(self, kind: str, partition: TopicPartition) -> bool:
        state = self._context.leadership.get(partition)
        leader = NO_LEADER if state is None else state.leader
        if kind == PREFERRED:
            return leader != self._context.replicas(partition)[0]
        return not self._context.is_online(leader, partition)

    # ---- by znode

    def _watch(self, _: WatchEvent) -> None:
        self._reign.enqueue("preferred replica election asked for", self.on_znode_changed)

    async def on_znode_changed(self) -> None:
        """Somebody created the znode, or it was there when the reign began."""
        store = self._reign.store.store
        # Armed whether the znode is there or not. Our deletion of it brings us here once more.
        if await store.exists(PREFERRED_REPLICA_ELECTION, self._watch) is None:
            return
        found = await store.get(PREFERRED_REPLICA_ELECTION)
        if found is None:
            return
        try:
            partitions = decode_elections(found[0])
        except MalformedZnode as error:
            store.report(error)
            partitions = []
        cause = f"{PREFERRED_REPLICA_ELECTION} asked for the preferred leader"
        for result in await self._elect(PREFERRED, partitions, cause):
            if result.error_code:
                logger.warning("no preferred leader elected: %s", result.error_message)
        await self._reign.store.delete_tree(PREFERRED_REPLICA_ELECTION)


def decode_elections(data: bytes) -> list[TopicPartition]:
    """The partitions, each once; raises MalformedZnode."""
    content = JsonReader(PREFERRED_REPLICA_ELECTION, data)
    items = content.objects("partitions")
    named = (TopicPartition(item.string("topic"), item.integer("partition")) for item in items)
    return list(dict.fromkeys(named))
