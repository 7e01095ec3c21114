"""The errors that callers can meet, by origin.

`KafkaError` and its subclasses mean that a broker answered with one of Kafka's error codes.
`TransportError` means that no response arrived. Either the request was certainly not applied
(`NotApplied`), or that is unknown (`MaybeApplied`). `ClientError` is a mistake of the caller, or a
limit of this client.

Each code has its own exception class (in `kafka_errors`, all importable from here). For example,
`NOT_LEADER_OR_FOLLOWER` raises `NotLeaderOrFollowerError`.
"""

from barnabas_common.errors.error_code import ErrorCode as ErrorCode
from barnabas_common.errors.kafka_errors import *  # noqa: F403
from barnabas_common.errors.kafka_errors import BarnabasError as BarnabasError


class TransportError(BarnabasError):
    """No response arrived from the peer."""

    retriable = True


class NotApplied(TransportError):
    """The request was not sent or the peer did not run, so it was certainly not applied."""


class MaybeApplied(TransportError):
    """The connection broke or the time ran out after sending; the request may have been applied."""


class ClientError(BarnabasError):
    """A mistake of the caller, or a limit of this client; nothing was sent."""


class InvalidArgumentError(ClientError, ValueError):
    """An argument is invalid, for instance its type, a negative partition or an unknown option."""


class ClosedError(ClientError):
    """The producer, consumer or admin client has been closed."""


class BufferExhaustedError(ClientError):
    """`buffer_memory` stayed full for `max_block_ms`."""


class NoBrokerReachableError(ClientError):
    """No known address answered; the message names each address and the reason."""

    retriable = True


class DeliveryTimeoutError(BarnabasError):
    """`delivery_timeout_ms` or `retries` ran out; the message contains the last failure."""


class TransactionAbortedError(BarnabasError):
    """The transaction was aborted before the record was delivered."""


class TransactionFailedError(BarnabasError):
    """A coordinator's answer leaves a transactional producer no way on; the message contains it."""

    fatal = True
