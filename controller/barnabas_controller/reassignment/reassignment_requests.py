"""Requests for reassignments: by AlterPartitionReassignments, or by a znode that old tools write.

Both are checked in the same way (`reassignment_rules.judge`), each partition independently. The
latest request for a partition counts.
"""

from collections.abc import Mapping, Sequence

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingReassignment,
    ReassignmentResult,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.reassignment.reassignment_rules import Rejected, judge, reassigned
from barnabas_controller.reassignment.reassignment_znode import (
    Targets,
    decode_reassignments,
    remove_from_znode,
)
from barnabas_controller.reassignment.reassignments import Reassignments
from barnabas_controller.store.znodes import REASSIGN_PARTITIONS, ReplicaAssignment


class ReassignmentRequests:
    """Checks requests, passes the legal ones to `Reassignments`, and reports the others."""

    def __init__(self, term: ControllerTerm, reassignments: Reassignments) -> None:
        self._term = term
        self._context = term.context
        self._reassignments = reassignments
        self._watch = term.watch("reassignments requested in ZooKeeper", self.on_znode_changed)

    # ---- by request

    async def alter(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """Start, change or cancel reassignments; each partition succeeds or fails independently."""
        requested = {
            TopicPartition(item.topic, item.partition): None if item.cancel else item.replicas
            for item in request.partitions
        }
        if len(requested) != len(request.partitions):
            return AlterPartitionReassignmentsResponse(
                ErrorCode.INVALID_REQUEST, "a partition is named twice"
            )
        rejections = await self._take(requested, "an administrator requested it", supersede=True)
        results = []
        for partition in requested:
            rejected = rejections.get(partition)
            results.append(
                ReassignmentResult(*partition)
                if rejected is None
                else ReassignmentResult(*partition, rejected.code, rejected.reason)
            )
        return AlterPartitionReassignmentsResponse(partitions=results)

    async def ongoing(
        self, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        """The reassignments in progress, of all partitions or of those that the request names."""
        wanted = {TopicPartition(p.topic, p.partition) for p in request.partitions}
        ongoing = [
            OngoingReassignment(
                *partition,
                list(assignment.replicas),
                list(assignment.adding),
                list(assignment.removing),
            )
            for partition, assignment in (
                (p, self._context.assignment(p)) for p in sorted(self._context.reassigning)
            )
            if assignment.is_being_reassigned and (request.all or partition in wanted)
        ]
        return ListPartitionReassignmentsResponse(partitions=ongoing)

    async def _take(
        self,
        requested: Mapping[TopicPartition, Sequence[int] | None],
        cause: str,
        supersede: bool,
    ) -> dict[TopicPartition, Rejected]:
        """Carry out the legal requests, and return why the others were rejected.

        `supersede` removes the partitions from the znode, whose requests are older.
        """
        rejections: dict[TopicPartition, Rejected] = {}
        for partition, target in requested.items():
            decision: ReplicaAssignment | Rejected | None = self._judge(partition, target)
            if isinstance(decision, ReplicaAssignment):
                if supersede:
                    await remove_from_znode(self._term.fenced, {partition: None})
                decision = await self._reassignments.go_on(partition, decision, cause)
            if isinstance(decision, Rejected):
                rejections[partition] = decision
                self._report(partition, target, decision)
        return rejections

    def _judge(
        self, partition: TopicPartition, target: Sequence[int] | None
    ) -> ReplicaAssignment | Rejected:
        context = self._context
        wanted = judge(context.assignment(partition), target, context.alive_brokers())
        if isinstance(wanted, Rejected):
            return wanted
        # A cancel is carried out, because the deletion waits for the end of the reassignment.
        if target is not None and context.is_to_be_deleted(partition.topic):
            return Rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic is being deleted")
        if partition in context.invalid_states:
            why = f"its state is invalid: {context.invalid_states[partition]}"
            return Rejected(ErrorCode.LEADER_NOT_AVAILABLE, why)
        return wanted

    def _report(
        self, partition: TopicPartition, target: Sequence[int] | None, rejected: Rejected
    ) -> None:
        self._term.events.record(
            EventKind.REASSIGNMENT_REFUSED,
            f"{rejected.code.name}: {rejected.reason}",
            partition,
            target=None if target is None else list(target),
        )

    # ---- by znode

    async def on_znode_changed(self) -> None:
        """Handle the znode if it exists; also called at failover. A watch is armed in any case."""
        store = self._term.store
        found = await store.get(REASSIGN_PARTITIONS, self._watch)
        if found is None:
            if await store.exists(REASSIGN_PARTITIONS, self._watch) is not None:
                await self.on_znode_changed()
            return
        try:
            targets = decode_reassignments(found[0])
        except MalformedZnode as error:
            self._term.store.report(error)
            await self._term.fenced.delete_tree(REASSIGN_PARTITIONS)
            return
        await self._begin(targets)

    async def _begin(self, targets: Targets) -> None:
        """Start the reassignments that are not in progress; remove refused ones from the znode."""
        new = {
            partition: target
            for partition, target in targets.items()
            if partition not in self._context.reassigning
            or self._context.assignment(partition)
            != reassigned(self._context.assignment(partition), target)
        }
        cause = f"{REASSIGN_PARTITIONS} requests it"
        rejections = await self._take(new, cause, supersede=False)
        refused = {p: None for p in targets if p in rejections}
        if refused or not targets:
            await remove_from_znode(self._term.fenced, refused)
