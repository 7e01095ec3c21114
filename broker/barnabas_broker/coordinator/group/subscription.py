"""The topics in a consumer's subscription: the metadata that a member sends to its leader.

The coordinator passes it on without reading it. Only the expiry and the deletion of offsets ask
which topics a group subscribes to, as Kafka does (KIP-496).

    int16 version, array of string topics, ...
"""

from barnabas_broker.coordinator.record_fields import FieldReader, UnreadableRecord

CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """Raises `UnreadableRecord` if it is not a consumer's subscription."""
    reader = FieldReader(metadata)
    version = reader.int16()
    if version < 0:
        raise UnreadableRecord(f"version {version}")
    return frozenset(reader.array(reader.string))
