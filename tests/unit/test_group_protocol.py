"""Kafka's bytes of subscriptions and assignments."""

from contextlib import suppress

import pytest
from barnabas.group.assignors import Subscription
from barnabas.group.protocol import (
    MalformedProtocol,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas_common.topic_partition import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

ALL = Subscription(
    ("orders", "rates"),
    (TopicPartition("orders", 1),),
    generation=7,
    rack_id="east",
    user_data=b"x",
)

V0 = "0000 00000002 0006 6f7264657273 0005 7261746573 00000001 78"
OWNED = "00000001 0006 6f7264657273 00000001 00000001"


def test_the_bytes_of_each_version() -> None:
    assert encode_subscription(ALL, 0) == bytes.fromhex(V0)
    assert encode_subscription(ALL, 1) == bytes.fromhex("0001" + V0[4:] + OWNED)
    assert encode_subscription(ALL, 2) == bytes.fromhex("0002" + V0[4:] + OWNED + "00000007")
    v3 = "0003" + V0[4:] + OWNED + "00000007" + "0004 65617374"
    assert encode_subscription(ALL, 3) == bytes.fromhex(v3)


@pytest.mark.parametrize("version", range(4))
def test_each_version_is_read(version: int) -> None:
    read = decode_subscription(encode_subscription(ALL, version), "static-1")
    assert read == Subscription(
        ALL.topics,
        ALL.owned_partitions if version >= 1 else (),
        ALL.generation if version >= 2 else -1,
        ALL.rack_id if version >= 3 else "",
        ALL.user_data,
        "static-1",
    )


def test_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    newer = b"\x00\x09" + encode_subscription(ALL)[2:] + b"and more"
    assert decode_subscription(newer) == ALL
    assignment = encode_assignment([TopicPartition("orders", 3)])
    assert decode_assignment(b"\x00\x09" + assignment[2:] + b"!") == [TopicPartition("orders", 3)]


def test_no_bytes_are_no_partitions() -> None:
    assert decode_assignment(b"") == []


@given(content=st.binary(max_size=60))
def test_any_other_bytes_are_refused_and_nothing_worse(content: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        with suppress(MalformedProtocol):
            decode(content)


@given(cut=st.integers(0, len(encode_subscription(ALL)) - 1))
def test_a_cut_subscription_is_refused(cut: int) -> None:
    with pytest.raises(MalformedProtocol):
        decode_subscription(encode_subscription(ALL)[:cut])
