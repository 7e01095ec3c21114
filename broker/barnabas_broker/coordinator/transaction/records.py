"""The records of `__transaction_state`, byte by byte as Kafka's.

    key    version int16 (0), transactionalId string
    value  version int16 (0 or 1), producerId int64, producerEpoch int16, timeout int32,
           status int8, partitions array? of (topic string, partitionIds array of int32),
           lastUpdateTimestamp int64, startTimestamp int64

`partitions` is null exactly if the state is Empty. Version 1 is flexible (KIP-482), and its tagged
fields are previousProducerId int64 (0), nextProducerId int64 (1), clientTransactionVersion int16
(2). Version 0 is written for clients of Kafka 3.9, version 1 for those of transaction version 2:
without the tags a coordinator that takes over could not give a producer the id it was promised.

A record without a value is a tombstone: the transactional id has expired.
"""

from collections.abc import Iterable

from barnabas_common.messages.producer_ids import NO_PRODUCER_ID
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.record_fields import FieldReader, FieldWriter, UnreadableRecord
from barnabas_broker.coordinator.transaction.metadata import TransactionMetadata, bump_supported
from barnabas_broker.coordinator.transaction.states import TransactionState

_KEY_VERSION = 0
_CLASSIC, _FLEXIBLE = 0, 1
_PREVIOUS_ID_TAG, _NEXT_ID_TAG, _CLIENT_VERSION_TAG = 0, 1, 2
_TAG_SIZES = {_PREVIOUS_ID_TAG: 8, _NEXT_ID_TAG: 8, _CLIENT_VERSION_TAG: 2}


# ---- writing


def encode_key(transactional_id: str) -> bytes:
    fields = FieldWriter()
    fields.int16(_KEY_VERSION)
    fields.string(transactional_id)
    return fields.data


def encode_value(metadata: TransactionMetadata) -> bytes:
    """Partitions are written in order, so that equal metadata has equal bytes."""
    fields = FieldWriter()
    flexible = bump_supported(metadata.client_version)
    fields.int16(_FLEXIBLE if flexible else _CLASSIC)
    fields.flexible = flexible
    fields.int64(metadata.producer_id)
    fields.int16(metadata.producer_epoch)
    fields.int32(metadata.timeout_ms)
    fields.int8(metadata.state)
    _write_partitions(fields, metadata)
    fields.int64(metadata.last_update_ms)
    fields.int64(metadata.start_ms)
    if flexible:
        fields.tags(_tags_of(metadata))
    return fields.data


def _write_partitions(fields: FieldWriter, metadata: TransactionMetadata) -> None:
    if metadata.state is TransactionState.EMPTY:
        fields.array_size(None)
        return
    topics = _by_topic(metadata.partitions)
    fields.array_size(len(topics))
    for topic, partitions in topics.items():
        fields.string(topic)
        fields.array_size(len(partitions))
        for partition in partitions:
            fields.int32(partition)
        fields.tags({})


def _tags_of(metadata: TransactionMetadata) -> dict[int, bytes]:
    """Those that differ from their default, as Kafka writes them."""
    values = {
        _PREVIOUS_ID_TAG: (metadata.previous_producer_id, NO_PRODUCER_ID),
        _NEXT_ID_TAG: (metadata.next_producer_id, NO_PRODUCER_ID),
        _CLIENT_VERSION_TAG: (metadata.client_version, 0),
    }
    return {
        tag: value.to_bytes(_TAG_SIZES[tag], "big", signed=True)
        for tag, (value, default) in values.items()
        if value != default
    }


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


# ---- reading


def decode_key(data: bytes) -> str | None:
    """The transactional id; None for a record of an unknown version; raises `UnreadableRecord`."""
    fields = FieldReader(data)
    return fields.string() if fields.int16() == _KEY_VERSION else None


def decode_value(transactional_id: str, data: bytes) -> TransactionMetadata:
    """Raises `UnreadableRecord`."""
    fields = FieldReader(data)
    version = fields.int16()
    if version not in (_CLASSIC, _FLEXIBLE):
        raise UnreadableRecord(f"version {version} of a value is not known")
    fields.flexible = version == _FLEXIBLE
    producer_id, epoch, timeout_ms = fields.int64(), fields.int16(), fields.int32()
    state = _state(fields.int8())
    partitions = frozenset(key for topic in fields.array(lambda: _topic(fields)) for key in topic)
    updated, started = fields.int64(), fields.int64()
    tags = fields.tagged_fields()
    return TransactionMetadata(
        transactional_id,
        producer_id,
        epoch,
        timeout_ms,
        state,
        partitions if state is not TransactionState.EMPTY else frozenset(),
        updated,
        started,
        previous_producer_id=_tag(tags, _PREVIOUS_ID_TAG, NO_PRODUCER_ID),
        next_producer_id=_tag(tags, _NEXT_ID_TAG, NO_PRODUCER_ID),
        client_version=_tag(tags, _CLIENT_VERSION_TAG, 0),
    )


def _state(number: int) -> TransactionState:
    """PrepareEpochFence and Dead are never written."""
    never = (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
    try:
        state = TransactionState(number)
    except ValueError:
        raise UnreadableRecord(f"state {number} is not known") from None
    if state in never:
        raise UnreadableRecord(f"a record cannot be in state {state.kafka_name}")
    return state


def _topic(fields: FieldReader) -> list[TopicPartition]:
    topic = fields.string()
    partitions = fields.array(fields.int32)
    fields.tagged_fields()
    return [TopicPartition(topic, partition) for partition in partitions]


def _tag(tags: dict[int, bytes], tag: int, default: int) -> int:
    data = tags.get(tag)
    if data is None:
        return default
    if len(data) != _TAG_SIZES[tag]:
        raise UnreadableRecord(f"tagged field {tag} has {len(data)} bytes")
    return int.from_bytes(data, "big", signed=True)
