"""The records of `__consumer_offsets`, byte by byte; and what a coordinator reads out of them."""

import pytest
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.loading import LoadedGroups
from barnabas_broker.coordinator.group.records import (
    GroupKey,
    GroupValue,
    MemberValue,
    OffsetKey,
    OffsetValue,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.coordinator.group.subscription import subscribed_topics
from barnabas_broker.coordinator.key_partition import java_hash_code, partition_of_key
from barnabas_broker.coordinator.record_fields import UnreadableRecord
from barnabas_common.record.reader import Record
from barnabas_common.topic_partition import TopicPartition

from tests.support.raw_groups import subscription

OFFSET_KEY = bytes.fromhex("0001 0001 67 0006 6f7264657273 00000002".replace(" ", ""))
GROUP_KEY = bytes.fromhex("0002 0001 67".replace(" ", ""))
OFFSET_VALUE = bytes.fromhex(
    "0003 000000000000002a 00000007 0002 6d64 000001020304 0506".replace(" ", "")
)
MEMBER = MemberValue("m-1", "i", "c", "/h", 60_000, 10_000, b"sub", b"as")
GROUP_VALUE = bytes.fromhex(
    (
        "0003 0008 636f6e73756d6572 00000005 0005 72616e6765 0003 6d2d31 0000000000000009 00000001"
        " 0003 6d2d31 0001 69 0001 63 0002 2f68 0000ea60 00002710 00000003 737562 00000002 6173"
    ).replace(" ", "")
)
GROUP = GroupValue("consumer", 5, "range", "m-1", 9, (MEMBER,))
GROUP_VALUE_WITHOUT_LEADER = GroupValue("consumer", 5, "range", None, 9, (MEMBER,))


def test_keys() -> None:
    key = OffsetKey("g", "orders", 2)
    assert encode_offset_key(key) == OFFSET_KEY and decode_key(OFFSET_KEY) == key
    assert decode_key(b"\0\0" + OFFSET_KEY[2:]) == key, "version 0"
    assert encode_group_key("g") == GROUP_KEY and decode_key(GROUP_KEY) == GroupKey("g")
    assert decode_key(b"\0\x03\0\0") is None, "the newer group protocol's"


def test_an_offset() -> None:
    value = OffsetValue(42, 7, "md", 0x0102030405_06)
    assert encode_offset_value(value) == OFFSET_VALUE
    assert decode_offset_value(OFFSET_VALUE) == value


def test_an_offset_with_an_expiry_of_its_own_is_written_as_version_1() -> None:
    value = OffsetValue(42, metadata="md", commit_timestamp_ms=1, expire_timestamp_ms=2)
    data = encode_offset_value(value)
    assert data.hex() == "0001000000000000002a00026d6400000000000000010000000000000002"
    assert decode_offset_value(data) == value


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("0000" "000000000000002a" "0000" "0000000000000001", OffsetValue(42, -1, "", 1)),
        ("0002" "000000000000002a" "0000" "0000000000000001", OffsetValue(42, -1, "", 1)),
        ("0004" "000000000000002a" "00000007" "036d64" "0000000000000001" "00",
         OffsetValue(42, 7, "md", 1)),
    ],
)  # fmt: skip
def test_other_versions_of_an_offset_are_read(data: str, value: OffsetValue) -> None:
    assert decode_offset_value(bytes.fromhex(data)) == value


def test_a_group() -> None:
    assert encode_group_value(GROUP) == GROUP_VALUE
    assert decode_group_value(GROUP_VALUE) == GROUP


def test_an_empty_group_has_null_for_protocol_and_leader() -> None:
    value = GroupValue("consumer", 6, None, None, 10)
    data = encode_group_value(value)
    assert data.hex() == "00030008636f6e73756d657200000006ffffffff000000000000000a00000000"
    assert decode_group_value(data) == value


def test_a_dynamic_member_has_null_for_its_instance_id() -> None:
    member = MemberValue("m", "", "c", "/h", 1, 2, b"", b"")
    value = GroupValue("consumer", 1, "range", "m", 1, (member,))
    data = encode_group_value(value)
    assert bytes.fromhex("00016dffff000163") in data
    assert decode_group_value(data) == value


def test_other_versions_of_a_group_are_read() -> None:
    version_0 = bytes.fromhex(
        "0000" "0001 63" "00000001" "0001 70" "0001 6d" "00000001"
        "0001 6d" "0001 63" "0001 68" "00002710" "00000001 73" "00000001 61".replace(" ", "")
    )  # fmt: skip
    (member,) = decode_group_value(version_0).members
    assert member == MemberValue("m", "", "c", "h", 10_000, 10_000, b"s", b"a")
    version_4 = bytes.fromhex(
        "0004" "0263" "00000001" "0270" "026d" "0000000000000009" "02"
        "026d" "00" "0263" "0268" "00000001" "00000002" "0273" "0261" "00" "00"
    )  # fmt: skip
    value = decode_group_value(version_4)
    assert (value.generation_id, value.current_state_timestamp_ms) == (1, 9)
    assert value.members == (MemberValue("m", "", "c", "h", 1, 2, b"s", b"a"),)


@pytest.mark.parametrize("length", range(len(GROUP_VALUE)))
def test_a_value_that_is_cut_short_is_unreadable(length: int) -> None:
    with pytest.raises(UnreadableRecord):
        decode_group_value(GROUP_VALUE[:length])


@pytest.mark.parametrize("data", [b"\0\x05" + b"\0" * 40, b"\xff\xff" + b"\0" * 40, b"\0"])
def test_an_unknown_version_of_a_value_is_unreadable(data: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        decode_offset_value(data)


# ---- partitions


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31)),
     ("\U0001f600", 0xD83D * 31 + 0xDE00)],
)  # fmt: skip
def test_the_hash_code_is_javas(text: str, code: int) -> None:
    assert java_hash_code(text) == code


def test_the_smallest_hash_code_has_no_absolute_value_in_java() -> None:
    assert partition_of_key("polygenelubricants", 50) == 0
    assert partition_of_key("hello", 50) == 99162322 % 50


# ---- subscriptions


def test_the_topics_of_a_subscription() -> None:
    assert subscribed_topics(subscription("a", "orders")) == {"a", "orders"}
    for data in (b"", b"\xff\xff", b"\0\0\0\0\0\x05"):
        with pytest.raises(UnreadableRecord):
            subscribed_topics(data)


# ---- loading


def record(offset: int, key: bytes | None, value: bytes | None) -> Record:
    return Record(offset, 0, 0, key, value, [], 0)


def loaded(*records: tuple[bytes | None, bytes | None]) -> LoadedGroups:
    groups = LoadedGroups()
    for offset, (key, value) in enumerate(records):
        groups.take(record(offset, key, value))
    return groups


def test_the_latest_record_of_each_key_counts() -> None:
    newer = encode_offset_value(OffsetValue(50))
    groups = loaded((OFFSET_KEY, OFFSET_VALUE), (GROUP_KEY, GROUP_VALUE), (OFFSET_KEY, newer))
    (group,) = groups.groups()
    assert (group.state, group.generation_id, group.leader_id) == (GroupState.STABLE, 5, "m-1")
    assert group.static_members == {"i": "m-1"}
    assert group.members["m-1"].assignment == b"as"
    commit = group.committed.offsets[TopicPartition("orders", 2)]
    assert (commit.value.offset, commit.at) == (50, 2)


def test_tombstones_remove_offsets_and_groups() -> None:
    both = [(OFFSET_KEY, OFFSET_VALUE), (GROUP_KEY, GROUP_VALUE)]
    (group,) = loaded(*both, (OFFSET_KEY, None)).groups()
    assert not group.committed.offsets
    (group,) = loaded(*both, (GROUP_KEY, None)).groups()
    assert group.protocol_type is None and group.committed.offsets, "a consumer without a group"
    assert not loaded(*both, (GROUP_KEY, None), (OFFSET_KEY, None)).groups()


def test_a_group_with_members_has_a_leader_whatever_its_record_says() -> None:
    """Without one, no member would see that partitions come or go."""
    assert Group.loaded("g", GROUP).leader_id == "m-1"
    assert Group.loaded("g", GROUP_VALUE_WITHOUT_LEADER).leader_id == "m-1"


def test_a_record_that_cannot_be_understood_is_left_out_and_named() -> None:
    groups = loaded(
        (OFFSET_KEY, OFFSET_VALUE),
        (None, b"x"),
        (b"\0", b"x"),
        (OFFSET_KEY, b"\0\x03\0"),
        (GROUP_KEY, b"\0\x09"),
        (b"\0\x07abc", b"x"),
    )
    assert [offset for offset, _ in groups.unreadable] == [1, 2, 3, 4]
    (group,) = groups.groups()
    assert group.committed.offsets[TopicPartition("orders", 2)].value.offset == 42
