"""The records of `__consumer_offsets`, byte by byte as Kafka's.

Keys begin with an int16 version, which also says what the record is:

    0, 1  group string, topic string, partition int32     an offset; 1 is written
    2     group string                                    a group

    OffsetCommitValue, version 3 is written, 0 to 4 are read
        offset int64, leaderEpoch int32 (3+), metadata string, commitTimestamp int64,
        expireTimestamp int64 (1 only)
    GroupMetadataValue, version 3 is written, 0 to 4 are read
        protocolType string, generation int32, protocol string?, leader string?,
        currentStateTimestamp int64 (2+), members array of
            memberId string, groupInstanceId string? (3+), clientId string, clientHost string,
            rebalanceTimeout int32 (1+), sessionTimeout int32, subscription bytes, assignment bytes

A record without a value is a tombstone: the offset or the group is gone.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from barnabas_broker.coordinator.record_fields import FieldReader, FieldWriter, UnreadableRecord

NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1

_OFFSET_KEY_VERSION = 1
_GROUP_KEY_VERSION = 2
_WRITTEN_VALUE_VERSION = 3
_FLEXIBLE_VERSION = 4
# A group commits the same partitions again and again.
_KEYS_REMEMBERED = 10_000
_LONGEST_REMEMBERED = 255


class OffsetKey(NamedTuple):
    """The key of a committed offset."""

    group_id: str
    topic: str
    partition: int


class GroupKey(NamedTuple):
    """The key of a group's metadata."""

    group_id: str


@dataclass(frozen=True, slots=True)
class OffsetValue:
    """`expire_timestamp_ms` is -1 unless an old client gave a retention of its own."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    expire_timestamp_ms: int = NO_TIMESTAMP


@dataclass(frozen=True, slots=True)
class MemberValue:
    """`subscription` is the member's metadata under the selected protocol."""

    member_id: str
    group_instance_id: str
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupValue:
    """Without members the group is Empty, else it is Stable."""

    protocol_type: str
    generation_id: int
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: int
    members: tuple[MemberValue, ...] = ()


# ---- writing


def encode_offset_key(key: OffsetKey) -> bytes:
    encode = _remembered if len(key.group_id) <= _LONGEST_REMEMBERED else _encode_offset_key
    return encode(key)


def _encode_offset_key(key: OffsetKey) -> bytes:
    fields = FieldWriter()
    fields.int16(_OFFSET_KEY_VERSION)
    fields.string(key.group_id)
    fields.string(key.topic)
    fields.int32(key.partition)
    return fields.data


_remembered = lru_cache(_KEYS_REMEMBERED)(_encode_offset_key)


def encode_group_key(group_id: str) -> bytes:
    fields = FieldWriter()
    fields.int16(_GROUP_KEY_VERSION)
    fields.string(group_id)
    return fields.data


def encode_offset_value(value: OffsetValue) -> bytes:
    """Version 3; version 1 if the offset has an expiry of its own, which later ones cannot hold."""
    expires = value.expire_timestamp_ms != NO_TIMESTAMP
    fields = FieldWriter()
    fields.int16(1 if expires else _WRITTEN_VALUE_VERSION)
    fields.int64(value.offset)
    if not expires:
        fields.int32(value.leader_epoch)
    fields.string(value.metadata)
    fields.int64(value.commit_timestamp_ms)
    if expires:
        fields.int64(value.expire_timestamp_ms)
    return fields.data


def encode_group_value(value: GroupValue) -> bytes:
    fields = FieldWriter()
    fields.int16(_WRITTEN_VALUE_VERSION)
    fields.string(value.protocol_type)
    fields.int32(value.generation_id)
    fields.string(value.protocol)
    fields.string(value.leader)
    fields.int64(value.current_state_timestamp_ms)
    fields.int32(len(value.members))
    for member in value.members:
        fields.string(member.member_id)
        fields.string(member.group_instance_id or None)
        fields.string(member.client_id)
        fields.string(member.client_host)
        fields.int32(member.rebalance_timeout_ms)
        fields.int32(member.session_timeout_ms)
        fields.byte_string(member.subscription)
        fields.byte_string(member.assignment)
    return fields.data


# ---- reading


def decode_key(data: bytes) -> OffsetKey | GroupKey | None:
    """None for a record of a version that is not known here; raises `UnreadableRecord`."""
    fields = FieldReader(data)
    version = fields.int16()
    if version in (0, _OFFSET_KEY_VERSION):
        return OffsetKey(fields.string(), fields.string(), fields.int32())
    if version == _GROUP_KEY_VERSION:
        return GroupKey(fields.string())
    return None


def decode_offset_value(data: bytes) -> OffsetValue:
    """Raises `UnreadableRecord`."""
    fields, version = _value_of(data)
    offset = fields.int64()
    leader_epoch = fields.int32() if version >= 3 else NO_LEADER_EPOCH
    metadata = fields.string()
    committed = fields.int64()
    expires = fields.int64() if version == 1 else NO_TIMESTAMP
    return OffsetValue(offset, leader_epoch, metadata, committed, expires)


def decode_group_value(data: bytes) -> GroupValue:
    """Raises `UnreadableRecord`."""
    fields, version = _value_of(data)
    protocol_type = fields.string()
    generation_id = fields.int32()
    protocol = fields.nullable_string()
    leader = fields.nullable_string()
    changed = fields.int64() if version >= 2 else NO_TIMESTAMP
    members = fields.array(lambda: _member(fields, version))
    return GroupValue(protocol_type, generation_id, protocol, leader, changed, tuple(members))


def _member(fields: FieldReader, version: int) -> MemberValue:
    member_id = fields.string()
    instance_id = (fields.nullable_string() or "") if version >= 3 else ""
    client_id, client_host = fields.string(), fields.string()
    rebalance = fields.int32() if version >= 1 else -1
    session = fields.int32()
    subscription, assignment = fields.byte_string(), fields.byte_string()
    fields.tagged_fields()
    # Version 0 had one timeout for both.
    rebalance = session if rebalance < 0 else rebalance
    return MemberValue(
        member_id,
        instance_id,
        client_id,
        client_host,
        rebalance,
        session,
        subscription,
        assignment,
    )


def _value_of(data: bytes) -> tuple[FieldReader, int]:
    fields = FieldReader(data)
    version = fields.int16()
    if not 0 <= version <= _FLEXIBLE_VERSION:
        raise UnreadableRecord(f"version {version} of a value is not known")
    fields.flexible = version >= _FLEXIBLE_VERSION
    return fields, version
