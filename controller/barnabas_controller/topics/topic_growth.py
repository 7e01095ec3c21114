"""CreatePartitions: adds partitions to a topic.

The controller writes them into the topic's znode. The watch on the znode then starts them
(`TopicChanges`).
"""

from collections.abc import Mapping

from barnabas_common.errors import (
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidTopicError,
    KafkaError,
    ReassignmentInProgressError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.events import EventKind
from barnabas_common.messages.topics import NewPartitions, TopicResult

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.store.znodes import ReplicaAssignment
from barnabas_controller.topics.admin_zk_client import MAX_PARTITIONS, check_replicas
from barnabas_controller.topics.assignment import Racks, assign_more_replicas


class TopicGrowth:
    """Handles CreatePartitions, one topic at a time."""

    def __init__(self, term: ControllerTerm) -> None:
        self._term = term
        self._context = term.context

    async def grow(self, new: NewPartitions, validate_only: bool) -> TopicResult:
        """Write the new partitions, or only validate them; an error is in the result."""
        try:
            added = self._added(new)
            if not validate_only and not await self._term.fenced.write_assignments(
                new.topic, {p: ReplicaAssignment(replicas) for p, replicas in added.items()}
            ):
                raise InvalidPartitionsError(
                    f"the assignment of {new.count} partitions could not be written"
                )
        except KafkaError as error:
            return TopicResult(new.topic, error.code, error.message)
        if not validate_only:
            self._term.events.record(
                EventKind.TOPIC_GROWN,
                f"an administrator requested {new.count} partitions",
                topic=new.topic,
                added=list(added),
            )
        return TopicResult(new.topic, partitions=new.count)

    def _added(self, new: NewPartitions) -> dict[int, tuple[int, ...]]:
        context = self._context
        if context.is_to_be_deleted(new.topic):
            raise InvalidTopicError(f"topic {new.topic!r} is being deleted")
        existing = context.assignments.get(new.topic)
        if existing is None:
            raise UnknownTopicOrPartitionError(f"topic {new.topic!r} does not exist")
        racks = {b: context.brokers[b].rack for b in context.alive_brokers()}
        return added_partitions(new, existing, racks)


def added_partitions(
    new: NewPartitions, existing: Mapping[int, ReplicaAssignment], racks: Racks
) -> dict[int, tuple[int, ...]]:
    """The replicas of each new partition, by partition number.

    The checks and their order are Kafka's. Raises ReassignmentInProgressError, because the
    replication factor is not defined during a reassignment, InvalidPartitionsError,
    InvalidReplicaAssignmentError and InvalidReplicationFactorError.
    """
    if any(assignment.is_being_reassigned for assignment in existing.values()):
        raise ReassignmentInProgressError(f"topic {new.topic!r} is being reassigned")
    if not existing or max(existing) != len(existing) - 1:
        raise InvalidPartitionsError(
            f"topic {new.topic!r} has partitions {sorted(existing)}, not 0 to n"
        )
    more = new.count - len(existing)
    if more <= 0:
        raise InvalidPartitionsError(
            f"topic {new.topic!r} has {len(existing)} partitions already, so it cannot grow to"
            f" {new.count}"
        )
    if new.count > MAX_PARTITIONS:
        raise InvalidPartitionsError(f"{new.count} partitions, more than {MAX_PARTITIONS}")
    first = existing[min(existing)].replicas
    if new.assignments:
        return _given(new, len(existing), len(first), racks)
    replicas = assign_more_replicas(racks, first, len(existing), more)
    return dict(zip(range(len(existing), new.count), replicas, strict=True))


def _given(
    new: NewPartitions, existing: int, factor: int, racks: Racks
) -> dict[int, tuple[int, ...]]:
    """The assignment in a request, checked."""
    given = {item.partition: tuple(item.broker_ids) for item in new.assignments}
    if sorted(given) != list(range(existing, new.count)) or len(given) != len(new.assignments):
        raise InvalidReplicaAssignmentError(
            f"the new partitions are {existing} to {new.count - 1}, each once"
        )
    for partition, replicas in given.items():
        check_replicas(partition, replicas, factor, racks)
    return dict(sorted(given.items()))
