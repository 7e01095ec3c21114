"""Who asks for reassignments: administrators by request, old tools by a znode.

Both are checked alike (`reassignment.judge`), and a partition that cannot be reassigned keeps no
other from it. The latest word counts, whichever way it came.
"""

import logging
from collections.abc import Mapping, Sequence

from barnabas.error_code import ErrorCode
from barnabas.events import EventKind
from barnabas.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingReassignment,
    ReassignmentResult,
)
from barnabas.topic_partition import TopicPartition

from barnabas_controller.errors import MalformedZnode
from barnabas_controller.reassignment import Rejected, in_progress, judge, reassigned
from barnabas_controller.reassignment_znode import (
    Targets,
    decode_reassignments,
    forget_reassignments,
)
from barnabas_controller.reassignments import Reassignments
from barnabas_controller.reign import Reign
from barnabas_controller.znodes import REASSIGN_PARTITIONS
from barnabas_controller.zookeeper.session import WatchEvent

logger = logging.getLogger(__name__)


class ReassignmentRequests:
    """Takes the wishes of one reign."""

    def __init__(self, reign: Reign, reassignments: Reassignments) -> None:
        self._reign = reign
        self._context = reign.context
        self._reassignments = reassignments

    # ---- by request

    async def alter(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """Begin, redirect or cancel; each partition succeeds or fails by itself."""
        wishes = {
            TopicPartition(item.topic, item.partition): None if item.cancel else item.replicas
            for item in request.partitions
        }
        if len(wishes) != len(request.partitions):
            return AlterPartitionReassignmentsResponse(
                ErrorCode.INVALID_REQUEST, "a partition is named twice"
            )
        rejections = await self._take(wishes, "an administrator asked for it", supersede=True)
        results = []
        for partition in wishes:
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
        """What is under way: of the partitions named, or of all."""
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
            if in_progress(assignment) and (request.all or partition in wanted)
        ]
        return ListPartitionReassignmentsResponse(partitions=ongoing)

    async def _take(
        self,
        wishes: Mapping[TopicPartition, Sequence[int] | None],
        cause: str,
        supersede: bool,
    ) -> dict[TopicPartition, Rejected]:
        """Judge each and go on with the legal ones; returns the others. `supersede`: what the
        znode says of a partition no longer counts."""
        rejections: dict[TopicPartition, Rejected] = {}
        for partition, target in wishes.items():
            ruling = judge(
                self._context.assignment(partition), target, self._context.live_brokers()
            )
            if not isinstance(ruling, Rejected) and self._context.is_to_be_deleted(partition.topic):
                ruling = Rejected(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic is being deleted"
                )
            if not isinstance(ruling, Rejected) and partition in self._context.doubtful:
                why = f"its state cannot be trusted: {self._context.doubtful[partition]}"
                ruling = Rejected(ErrorCode.LEADER_NOT_AVAILABLE, why)
            if isinstance(ruling, Rejected):
                rejected: Rejected | None = ruling
            else:
                if supersede:
                    await forget_reassignments(self._reign.store, {partition: None})
                rejected = await self._reassignments.go_on(partition, ruling, cause)
            if rejected is not None:
                rejections[partition] = rejected
                self._report(partition, target, rejected)
        return rejections

    def _report(
        self, partition: TopicPartition, target: Sequence[int] | None, rejected: Rejected
    ) -> None:
        cause = f"{rejected.code.name}: {rejected.reason}"
        logger.warning("%s: reassignment to %s refused, %s", partition, target, cause)
        self._reign.events.record(
            EventKind.REASSIGNMENT_REFUSED,
            cause,
            partition,
            target=None if target is None else list(target),
        )

    # ---- by znode

    def watch(self, _: WatchEvent) -> None:
        self._reign.enqueue("reassignments wished for in ZooKeeper", self.on_znode_changed)

    async def on_znode_changed(self) -> None:
        """The znode came, changed or went; also called at failover. Always leaves a watch."""
        store = self._reign.store.store
        found = await store.get(REASSIGN_PARTITIONS, self.watch)
        if found is None:
            if await store.exists(REASSIGN_PARTITIONS, self.watch) is not None:
                await self.on_znode_changed()
            return
        try:
            targets = decode_reassignments(found[0])
        except MalformedZnode as error:
            self._reign.store.store.report(error)
            await self._reign.store.delete_tree(REASSIGN_PARTITIONS)
            return
        await self._begin(targets)

    async def _begin(self, targets: Targets) -> None:
        """Those not under way already; those refused, and those done at once, leave the znode."""
        new = {
            partition: target
            for partition, target in targets.items()
            if partition not in self._context.reassigning
            or self._context.assignment(partition)
            != reassigned(self._context.assignment(partition), target)
        }
        cause = f"{REASSIGN_PARTITIONS} asks for it"
        rejections = await self._take(new, cause, supersede=False)
        over = {p: None for p in targets if p in rejections}
        if over or not targets:
            await forget_reassignments(self._reign.store, over)
