"""Every message survives encoding, and its dataclass matches its protobuf message."""

import contextlib
import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import barnabas_common.messages
import barnabas_proto.v1
import pytest
from barnabas_common.errors import InvalidArgumentError
from barnabas_common.messages import SERVICES, FetchRequest, FetchResponse, ProduceRequest
from barnabas_common.messages.failure import Failure
from barnabas_common.messages.fetch import FetchedPartition
from barnabas_common.messages.groups import (
    DeleteGroupsRequest,
    ListGroupsRequest,
    OffsetFetchGroup,
    OffsetFetchPartition,
    OffsetFetchRequest,
)
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.messages.produce import ProducePartition
from barnabas_common.messages.transactions import ListTransactionsRequest
from barnabas_common.runtime.network import Service
from barnabas_common.transport.codec import REQUESTS, RESPONSES, MalformedFrame, tag, varint
from barnabas_common.transport.item_limit import MAX_ITEMS
from barnabas_proto.v1 import data_pb2, fetch_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import given, settings
from hypothesis import strategies as st

KINDS = {
    int: {FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SINT64},
    str: {FieldDescriptor.TYPE_STRING},
    bytes: {FieldDescriptor.TYPE_BYTES},
    bool: {FieldDescriptor.TYPE_BOOL},
}
FRAMES = {f"{service.value}{side}" for service in Service for side in ("Request", "Response")}


def message_classes() -> dict[str, type[Any]]:
    found = {}
    for module in pkgutil.iter_modules(
        barnabas_common.messages.__path__, "barnabas_common.messages."
    ):
        if module.name.endswith((".codec", ".converter")):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and dataclasses.is_dataclass(value):
                found[value.__name__] = value
    return found


def proto_messages() -> dict[str, Descriptor]:
    found: dict[str, Descriptor] = {}
    for module in pkgutil.iter_modules(barnabas_proto.v1.__path__, "barnabas_proto.v1."):
        found |= importlib.import_module(module.name).DESCRIPTOR.message_types_by_name
    return found


def describe(cls: type[Any]) -> dict[str, tuple[bool, Any]]:
    """Return by field name whether it is a list, and the type of its items."""
    hints = get_type_hints(cls)
    return {
        field.name: (
            (True, get_args(hints[field.name])[0])
            if get_origin(hints[field.name]) is list
            else (False, hints[field.name])
        )
        for field in dataclasses.fields(cls)
    }


def test_there_is_one_protobuf_message_for_each_dataclass_and_no_other() -> None:
    assert set(message_classes()) == set(proto_messages()) - FRAMES


@pytest.mark.parametrize("name", sorted(message_classes()))
def test_a_dataclass_and_its_message_have_the_same_fields_in_the_same_order(name: str) -> None:
    expected = describe(message_classes()[name])
    actual = sorted(proto_messages()[name].fields, key=lambda field: int(field.number))
    assert [field.name for field in actual] == list(expected)
    for field in actual:
        is_list, item = expected[field.name]
        assert field.is_repeated == is_list, field.full_name
        if field.message_type is not None:
            assert field.message_type.name == item.__name__, field.full_name
        else:
            assert field.type in KINDS[item], field.full_name


def values(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for a message class, with numbers as wide as its protobuf fields."""
    proto = proto_messages()[cls.__name__]
    return st.builds(
        cls,
        **{
            name: st.lists(item_values(proto.fields_by_name[name], item), max_size=3)
            if is_list
            else item_values(proto.fields_by_name[name], item)
            for name, (is_list, item) in describe(cls).items()
        },
    )


def item_values(field: FieldDescriptor, item: Any) -> st.SearchStrategy[Any]:
    if item is bool:
        return st.booleans()
    if item is str:
        return st.text(max_size=8)
    if item is bytes:
        return st.binary(max_size=300)
    if item is int:
        bits = 31 if field.type == FieldDescriptor.TYPE_SINT32 else 63
        return st.integers(-(1 << bits), (1 << bits) - 1)
    return values(item)


def directions() -> Iterator[tuple[Service, type[Any], bool]]:
    for service, pairs in SERVICES.items():
        for request, response in pairs.items():
            yield service, request, False
            yield service, response, True
        yield service, Failure, True


@pytest.mark.parametrize(
    ("service", "cls", "is_response"),
    [pytest.param(*case, id=f"{case[0].value}-{case[1].__name__}") for case in directions()],
)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_message_survives_the_wire(
    service: Service, cls: type[Any], is_response: bool, data: st.DataObject
) -> None:
    message = data.draw(values(cls))
    correlation_id = data.draw(st.integers(0, (1 << 64) - 1))
    codec = (RESPONSES if is_response else REQUESTS)[service]
    frame = codec.decode(codec.encode(correlation_id, message))
    assert frame.correlation_id == correlation_id
    assert frame.message == message
    assert type(frame.message) is cls


@given(st.integers(0, (1 << 64) - 1))
def test_varint_is_protobufs_own(value: int) -> None:
    expected = data_pb2.DataRequest(correlation_id=value).SerializeToString()
    assert expected == (b"\x08" + varint(value) if value else b"")


def test_the_bytes_are_plain_protobuf() -> None:
    request = ProduceRequest(-1, 1000, [ProducePartition("flights", 3, b"batch" * 50)])
    frame = data_pb2.DataRequest.FromString(REQUESTS[Service.DATA].encode(9, request))
    assert (frame.correlation_id, frame.produce.acks) == (9, -1)
    assert frame.produce.partitions[0].records == b"batch" * 50


@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
def test_records_may_be_any_buffer(buffer: type[Any]) -> None:
    response = FetchResponse(partitions=[FetchedPartition("t", 0, records=buffer(b"abc"))])
    frame = RESPONSES[Service.DATA].decode(RESPONSES[Service.DATA].encode(1, response))
    assert frame.message.partitions[0].records == b"abc"


@pytest.mark.parametrize("data", [b"\xff" * 20, b"garbage of no kind", b"\x12\x7f\x01"])
def test_bytes_that_are_no_frame_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedFrame, match="DataRequest"):
        REQUESTS[Service.DATA].decode(data)


@pytest.mark.parametrize("data", [b"", b"\x08\x05", b"\x08\x05\xa2\x06\x00"])
def test_a_frame_without_a_body_known_here_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedFrame, match="without a body known"):
        REQUESTS[Service.DATA].decode(data)


def test_a_message_of_another_service_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="MetadataRequest is not a DataRequest"):
        REQUESTS[Service.DATA].encode(1, MetadataRequest())


@pytest.mark.parametrize("partition", [1 << 40, "3"])
def test_a_value_that_does_not_fit_its_field_is_refused(partition: Any) -> None:
    request = ProduceRequest(-1, 1000, [ProducePartition("t", partition, b"")])
    with pytest.raises(InvalidArgumentError, match="ProduceRequest cannot be encoded"):
        REQUESTS[Service.DATA].encode(1, request)


def named(items: int, service: Service = Service.DATA) -> bytes:
    """A fetch that names empty partitions: two bytes each."""
    field = fetch_pb2.FetchRequest.DESCRIPTOR.fields_by_name["partitions"]
    body = (tag(field.number) + b"\x00") * items
    fetch = REQUESTS[service].encode(1, FetchRequest(0, 0, 0))[2:3]
    return b"\x08\x01" + fetch + varint(len(body)) + body


def test_a_client_may_name_so_many_items_and_no_more() -> None:
    frame = REQUESTS[Service.DATA].decode(named(MAX_ITEMS - 2))
    assert len(frame.message.partitions) == MAX_ITEMS - 2
    with pytest.raises(MalformedFrame, match="a DataRequest of more than 100000 items"):
        REQUESTS[Service.DATA].decode(named(MAX_ITEMS + 1))


def test_brokers_may_name_more_items_to_one_another() -> None:
    frame = REQUESTS[Service.REPLICA].decode(named(MAX_ITEMS + 1, Service.REPLICA))
    assert len(frame.message.partitions) == MAX_ITEMS + 1


@pytest.mark.parametrize(
    "message",
    [
        ListTransactionsRequest(producer_id_filters=[1] * (2 * MAX_ITEMS + 9)),
        DeleteGroupsRequest(["g"] * (MAX_ITEMS + 1)),
        OffsetFetchRequest([OffsetFetchGroup("g", [OffsetFetchPartition("", 0)] * 60_000)] * 2),
        ListGroupsRequest([""] * (MAX_ITEMS + 1)),
    ],
    ids=lambda message: type(message).__name__,
)
def test_every_list_of_a_request_counts(message: Any) -> None:
    data = REQUESTS[Service.COORDINATOR].encode(1, message)
    with pytest.raises(MalformedFrame, match="more than 100000 items"):
        REQUESTS[Service.COORDINATOR].decode(data)


def test_large_records_and_texts_are_no_items() -> None:
    items = [ProducePartition("t" * 249, n, b"\x0a" * 300_000) for n in range(5)]
    frame = REQUESTS[Service.DATA].decode(
        REQUESTS[Service.DATA].encode(1, ProduceRequest(1, 0, items))
    )
    assert frame.message.partitions == items


@settings(max_examples=20, deadline=None)
@given(data=st.binary(min_size=1, max_size=60))
def test_what_has_no_structure_is_refused_before_it_is_decoded(data: bytes) -> None:
    large = data * (2 * MAX_ITEMS // len(data) + 1)
    with contextlib.suppress(MalformedFrame):
        REQUESTS[Service.DATA].decode(large)
