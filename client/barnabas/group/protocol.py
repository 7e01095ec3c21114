"""What members of a group tell each other through the coordinator, in Kafka's bytes.

The coordinator passes these bytes on and does not read them. `ConsumerProtocolSubscription` and
`ConsumerProtocolAssignment`, versions 0 to 3; a newer version begins with the fields of version 3.
"""

from collections.abc import Sequence

from barnabas_common.topic_partition import TopicPartition

from barnabas.group.assignors import Subscription
from barnabas.group.wire import Reader, Truncated, Writer, by_topic

PROTOCOL_TYPE = "consumer"
NEWEST = 3


class MalformedProtocol(ValueError):
    """A member sent bytes that are no subscription or no assignment."""


def encode_subscription(subscription: Subscription, version: int = NEWEST) -> bytes:
    """Topics and owned partitions are sorted, as Kafka sends them."""
    writer = Writer()
    writer.int16(version)
    writer.strings(sorted(subscription.topics))
    writer.bytes(subscription.user_data)
    if version >= 1:
        writer.topic_partitions(by_topic(sorted(subscription.owned_partitions)))
    if version >= 2:
        writer.int32(subscription.generation)
    if version >= 3:
        writer.string(subscription.rack_id or None)
    return writer.content()


def decode_subscription(content: bytes, group_instance_id: str = "") -> Subscription:
    reader = Reader(content)
    try:
        version = _version(reader)
        return Subscription(
            topics=tuple(reader.strings()),
            user_data=reader.nullable_bytes(),
            owned_partitions=tuple(reader.topic_partitions()) if version >= 1 else (),
            generation=reader.int32() if version >= 2 else -1,
            rack_id=(reader.nullable_string() or "") if version >= 3 else "",
            group_instance_id=group_instance_id,
        )
    except Truncated as error:
        raise MalformedProtocol(f"not a subscription: {error}") from error


def encode_assignment(
    partitions: Sequence[TopicPartition], user_data: bytes | None = None, version: int = NEWEST
) -> bytes:
    writer = Writer()
    writer.int16(version)
    writer.topic_partitions(by_topic(partitions))
    writer.bytes(user_data)
    return writer.content()


def decode_assignment(content: bytes) -> list[TopicPartition]:
    """The partitions; no bytes at all are no partitions, as the coordinator sends them."""
    if not content:
        return []
    reader = Reader(content)
    try:
        _version(reader)
        partitions = reader.topic_partitions()
        reader.nullable_bytes()
    except Truncated as error:
        raise MalformedProtocol(f"not an assignment: {error}") from error
    return partitions


def _version(reader: Reader) -> int:
    version = reader.int16()
    if version < 0:
        raise MalformedProtocol(f"version {version}")
    return min(version, NEWEST)
