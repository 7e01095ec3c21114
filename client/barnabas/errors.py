"""The errors a caller can meet, split by blame.

`KafkaError` and its subclasses: a broker answered, and the answer is one of Kafka's error codes.
`TransportError`: no answer arrived. `Refused` says the request was certainly not applied,
`MaybeApplied` says nobody knows. `ClientError`: the caller's own mistake, or a limit of this
client.

Each code has an exception class of its own (`barnabas.kafka_errors`, all importable from here):
`NOT_LEADER_OR_FOLLOWER` raises `NotLeaderOrFollowerError`.
"""

from barnabas.error_code import ErrorCode as ErrorCode
from barnabas.kafka_errors import *  # noqa: F403
from barnabas.kafka_errors import BarnabasError as BarnabasError


class TransportError(BarnabasError):
    """No answer arrived from the peer."""


class Refused(TransportError):
    """The request never left, or the peer was not there: it was certainly not applied."""


class MaybeApplied(TransportError):
    """The connection broke or the time ran out after sending: it may have been applied."""


class ClientError(BarnabasError):
    """The caller's mistake, or a limit of this client, found before anything was sent."""


class InvalidArgumentError(ClientError, ValueError):
    """An argument has no meaning here: a wrong type, a negative partition, a bad option."""


class ClosedError(ClientError):
    """The producer, consumer or admin client was already closed."""


class BufferExhaustedError(ClientError):
    """`buffer_memory` stayed full for `max_block_ms`."""


class NoBrokerReachableError(ClientError):
    """None of the bootstrap addresses answered; the message names each and says why."""


class DeliveryTimeoutError(BarnabasError):
    """`delivery_timeout_ms` or `retries` ran out; the message carries the last failure."""
