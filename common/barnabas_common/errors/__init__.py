"""The errors that callers can meet, by origin.

`KafkaError` and its subclasses: a broker answered, and the answer is one of Kafka's error codes.
`TransportError`: no answer arrived; the request was certainly not applied (`NotApplied`), or that
is unknown (`MaybeApplied`). `ClientError`: a mistake of the caller, or a limit of this client.

Each code has its own exception class (in `kafka_errors`, all importable from here):
`NOT_LEADER_OR_FOLLOWER` raises `NotLeaderOrFollowerError`.
"""

from barnabas_common.errors.error_code import ErrorCode as ErrorCode
from barnabas_common.errors.kafka_errors import *  # noqa: F403
from barnabas_common.errors.kafka_errors import BarnabasError as BarnabasError


class TransportError(BarnabasError):
    """No answer arrived from the peer."""

    retriable = True


class NotApplied(TransportError):
    """The request was not sent, or the peer was not there: it was certainly not applied."""


class MaybeApplied(TransportError):
    """The connection broke, or the time ran out, after sending: it may have been applied."""


class ClientError(BarnabasError):
    """A mistake of the caller, or a limit of this client, found before anything was sent."""


class InvalidArgumentError(ClientError, ValueError):
    """An argument has no meaning here: a wrong type, a negative partition, a bad option."""


class ClosedError(ClientError):
    """The producer, consumer or admin client was already closed."""


class BufferExhaustedError(ClientError):
    """`buffer_memory` stayed full for `max_block_ms`."""


class NoBrokerReachableError(ClientError):
    """No known address answered; the message names each and says why."""

    retriable = True


class DeliveryTimeoutError(BarnabasError):
    """`delivery_timeout_ms` or `retries` ran out; the message carries the last failure."""
