"""acks=all is answered as soon as the leader has appended."""

from barnabas_broker.replica.leader.leadership import Leadership
from barnabas_common.errors.error_code import ErrorCode

assert Leadership.outcome_of_append
Leadership.outcome_of_append = lambda *_: ErrorCode.NONE  # type: ignore[method-assign]
