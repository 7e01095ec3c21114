"""What the answers to LeaderAndIsr say of a broker's logs: which have failed, which can be used."""

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import (
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.state.context import ControllerContext, Replica

# The answers by which a replica has failed, and what then is said of its broker: the log directory
# failed; the log is damaged; the log is of a deleted topic, because the broker was away when the
# partition moved from it, or when the topic was deleted.
FAILED = {
    ErrorCode.KAFKA_STORAGE_ERROR: "a log directory of broker {} failed",
    ErrorCode.CORRUPT_MESSAGE: "the log of broker {} is damaged",
    ErrorCode.INCONSISTENT_TOPIC_ID: "broker {} has a log of another topic of that name",
}


def failed_and_found(
    context: ControllerContext,
    broker_id: int,
    request: LeaderAndIsrRequest,
    response: LeaderAndIsrResponse,
) -> tuple[dict[ErrorCode, list[Replica]], list[Replica]]:
    """Record in the context which replicas have failed, and return those that failed now, by the
    answer, and those that are available again.

    An answer about an earlier topic of the same name is ignored, and so is an answer of an earlier
    incarnation of the broker. A failure under an earlier leader epoch is ignored too: the broker
    has been sent the newer epoch since, and may have opened the log for it.
    """
    lost: dict[ErrorCode, list[Replica]] = {code: [] for code in FAILED}
    found: list[Replica] = []
    broker = context.brokers.get(broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return lost, found
    asked = {TopicPartition(s.topic, s.partition): s for s in request.partitions}
    failed = context.failed_replicas.setdefault(broker_id, {})
    for answer in response.partitions:
        partition = TopicPartition(answer.topic, answer.partition)
        question = asked.get(partition)
        topic_id = context.topic_ids.get(answer.topic, "")
        if question is None or question.topic_id != topic_id:
            continue
        current = context.leadership.get(partition)
        is_late = current is not None and question.leader_epoch < current.leader_epoch
        if answer.error_code in FAILED and partition not in failed and not is_late:
            code = ErrorCode(answer.error_code)
            lost[code].append(Replica(partition, broker_id))
            failed[partition] = code is not ErrorCode.KAFKA_STORAGE_ERROR
        elif partition in failed and _works(answer.error_code, question):
            found.append(Replica(partition, broker_id))
            del failed[partition]
    return lost, found


def _works(error_code: int, question: LeaderAndIsrPartition) -> bool:
    """Whether the replica has taken the role, or has it already: the answer to an earlier attempt
    at the same request may have been lost. A replica that is only asked takes none."""
    has_role = error_code == ErrorCode.STALE_CONTROLLER_EPOCH and not question.tell_only
    return has_role or error_code == ErrorCode.NONE
