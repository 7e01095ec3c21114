"""What a client is told when an append to `__consumer_offsets` failed (Kafka's translations)."""

from barnabas_common.errors.error_code import ErrorCode

_NOT_AVAILABLE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


def commit_error(error: ErrorCode) -> ErrorCode:
    """Of an OffsetCommit."""
    if error in _TOO_LARGE:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    return _NOT_AVAILABLE.get(error, error)


def group_error(error: ErrorCode) -> ErrorCode:
    """Of an assignment.

    A write that timed out may mean that this coordinator is cut off and has a successor. Kafka
    answers REBALANCE_IN_PROGRESS, with which the members would stay here as long as the cut lasts.
    """
    if error in _TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if error is ErrorCode.REQUEST_TIMED_OUT:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return _NOT_AVAILABLE.get(error, error)
