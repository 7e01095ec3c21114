"""Requested elections: ElectLeaders (KIP-183, KIP-460), or a znode that old tools write.

    /admin/preferred_replica_election
    {"version":1,"partitions":[{"topic":"flights","partition":0}]}

The znode requests preferred leaders. It is deleted after the elections, whether they succeeded or
not; a malformed one is deleted too.
"""

import logging
from collections.abc import Mapping

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.elections import (
    PREFERRED,
    UNCLEAN,
    ElectionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.election.decision import Decision, Refused
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.partitions.partition_state_machine import PartitionStateMachine
from barnabas_controller.partitions.unconfirmed_states import UnconfirmedStates
from barnabas_controller.store.leader_and_isr import NO_LEADER
from barnabas_controller.store.znode_json import JsonReader
from barnabas_controller.store.znodes import PREFERRED_REPLICA_ELECTION

logger = logging.getLogger(__name__)

CAUSES = {
    PREFERRED: "an administrator requested the preferred leader",
    UNCLEAN: "an administrator requested a leader even if records are lost",
}
NOT_AVAILABLE = {
    PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


class LeaderElections:
    """Handles both requests; `PartitionStateMachine` holds the elections."""

    def __init__(
        self,
        term: ControllerTerm,
        partitions: PartitionStateMachine,
        unconfirmed: UnconfirmedStates,
    ) -> None:
        self._term = term
        self._context = term.context
        self._partitions = partitions
        self._unconfirmed = unconfirmed
        self._watch = term.watch("preferred replica election requested", self.on_znode_changed)

    # ---- by request

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """Hold the elections; each partition succeeds or fails independently.

        If the request is for all partitions, the response leaves out those that need no election.
        """
        kind = request.election_type
        if kind not in CAUSES:
            return ElectLeadersResponse(
                ErrorCode.INVALID_REQUEST, f"unknown type of election: {kind!r}"
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
            await self._unconfirmed.elect_now(electable)
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
        """Why no election is held for the partition, or None."""
        context = self._context
        if not context.replicas(partition):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition} does not exist"
        if context.is_to_be_deleted(partition.topic):
            return ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {partition.topic} is being deleted"
        if not self._needs_election(kind, partition):
            what = "its preferred replica" if kind == PREFERRED else "an online replica"
            return ErrorCode.ELECTION_NOT_NEEDED, f"{partition} is led by {what} already"
        return None

    def _needs_election(self, kind: str, partition: TopicPartition) -> bool:
        state = self._context.leadership.get(partition)
        leader = NO_LEADER if state is None else state.leader
        if kind == PREFERRED:
            return leader != self._context.replicas(partition)[0]
        return partition in self._context.unconfirmed or not self._context.is_online(
            leader, partition
        )

    # ---- by znode

    async def on_znode_changed(self) -> None:
        """Handle the znode if it exists; also called at failover."""
        store = self._term.store
        # The watch is armed in both cases. The deletion below triggers one more call.
        if await store.exists(PREFERRED_REPLICA_ELECTION, self._watch) is None:
            return
        found = await store.get(PREFERRED_REPLICA_ELECTION)
        if found is None:
            return
        try:
            named = JsonReader(PREFERRED_REPLICA_ELECTION, found[0]).partitions()
        except MalformedZnode as error:
            store.report(error)
            named = []
        cause = f"{PREFERRED_REPLICA_ELECTION} requests the preferred leader"
        for result in await self._elect(PREFERRED, list(dict.fromkeys(named)), cause):
            if result.error_code:
                logger.warning("no preferred leader elected: %s", result.error_message)
        await self._term.fenced.delete_tree(PREFERRED_REPLICA_ELECTION)
