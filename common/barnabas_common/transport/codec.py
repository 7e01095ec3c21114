"""Requests and responses as bytes: the frames on a service's stream.

A frame is the protobuf message `<Service>Request` or `<Service>Response` (`proto/barnabas/v1/`): a
correlation id and one body. Only the adapters of the network use frames, gRPC and memory alike.

A dataclass and its protobuf message have the same fields under the same names, which a test checks.
So a `Converter` needs only the two types. It looks at the fields once, and is then as fast as code
written by hand: about a microsecond for each partition.

Records are encoded differently. protobuf would copy them into its arena, and then several times
while its output grows (250 us for 256 KiB, 1.3 ms for 1 MiB). So a message that contains `bytes` is
encoded in chunks, one of which is the records as they are, and joined once (20 us for 256 KiB). The
result is plain protobuf, in which fields may have any order.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, get_args, get_origin, get_type_hints

from barnabas_proto.v1 import admin_pb2, control_pb2, coordinator_pb2, data_pb2, replica_pb2
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from barnabas_common.errors import InvalidArgumentError
from barnabas_common.messages import SERVICES
from barnabas_common.messages.failure import Failure
from barnabas_common.runtime.network import Message, Service
from barnabas_common.transport.item_limit import (
    MAX_ITEMS,
    TooManyItems,
    check_items,
    lists_of,
)

_FILES = {
    Service.DATA: data_pb2,
    Service.ADMIN: admin_pb2,
    Service.COORDINATOR: coordinator_pb2,
    Service.REPLICA: replica_pb2,
    Service.CONTROL: control_pb2,
}
_FOR_CLIENTS = (Service.DATA, Service.ADMIN, Service.COORDINATOR)
_LENGTH_DELIMITED = 2

Chunks = list[Any]


class MalformedFrame(ValueError):
    """The bytes are not a frame of this service, or this version does not know the body."""


@dataclass(slots=True)
class Frame:
    """A message and the id that ties a response to its request."""

    correlation_id: int
    message: Message


def tag(field_number: int) -> bytes:
    """The bytes that precede the length of a field that is a message or `bytes`."""
    return varint(field_number << 3 | _LENGTH_DELIMITED)


def varint(value: int) -> bytes:
    """protobuf's variable-length integer, seven bits a byte, the lowest first; not negative."""
    if value < 0x80:
        return value.to_bytes(1, "little")
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


_CORRELATION_ID_TAG = varint(1 << 3)


class Converter:
    """Converts between the dataclass `cls` and the protobuf class `proto`."""

    def __init__(self, cls: type[Any], proto: type[Any]) -> None:
        self.cls = cls
        self.proto = proto
        hints = get_type_hints(cls)
        self._names = [field.name for field in fields(cls)]
        self._scalars: list[str] = []
        self._scalar_lists: list[str] = []
        self._bytes: list[tuple[str, bytes]] = []
        self._nested: list[tuple[str, bytes, Converter]] = []
        for name in self._names:
            self._classify(name, hints[name])
        self.has_bytes: bool = bool(self._bytes) or any(
            item.has_bytes for _, _, item in self._nested
        )
        self.decode = self._decoder()
        self._scalar_values = _all_of(self._scalars)

    def _classify(self, name: str, hint: Any) -> None:
        field = self.proto.DESCRIPTOR.fields_by_name[name]
        if get_origin(hint) is list:
            (item,) = get_args(hint)
            if isinstance(item, type) and field.message_type is not None:
                converter = Converter(item, GetMessageClass(field.message_type))
                self._nested.append((name, tag(field.number), converter))
            else:
                self._scalar_lists.append(name)
        elif hint is bytes:
            self._bytes.append((name, tag(field.number)))
        else:
            self._scalars.append(name)

    def _decoder(self) -> Callable[[Any], Any]:
        """The function that converts a protobuf message to the dataclass."""
        cls, values_of = self.cls, _all_of(self._names)
        lists = [self._names.index(name) for name in self._scalar_lists]
        nested = [(self._names.index(name), item.decode) for name, _, item in self._nested]
        if not lists and not nested:
            return lambda message: cls(*values_of(message))

        def decode(message: Any) -> Any:
            values = list(values_of(message))
            for index in lists:
                values[index] = list(values[index])
            for index, decode_item in nested:
                values[index] = [decode_item(item) for item in values[index]]
            return cls(*values)

        return decode

    def fill(self, message: Any, target: Any) -> None:
        """Set the fields of the empty protobuf message `target`, except for those with `bytes`."""
        for name, value in zip(self._scalars, self._scalar_values(message), strict=True):
            if value:
                setattr(target, name, value)
        for name in self._scalar_lists:
            getattr(target, name).extend(getattr(message, name))
        for name, _, converter in self._nested:
            if not converter.has_bytes:
                add, fill = getattr(target, name).add, converter.fill
                for item in getattr(message, name):
                    fill(item, add())

    def encode(self, message: Any, chunks: Chunks) -> int:
        """Append the protobuf encoding of `message` to `chunks`; return its size in bytes."""
        target = self.proto()
        self.fill(message, target)
        head = target.SerializeToString()
        chunks.append(head)
        size = len(head)
        for name, field_tag in self._bytes:
            data = getattr(message, name)
            if data:
                prefix = field_tag + varint(len(data))
                chunks += (prefix, data)
                size += len(prefix) + len(data)
        for name, field_tag, converter in self._nested:
            if converter.has_bytes:
                for item in getattr(message, name):
                    size += converter.encode_field(field_tag, item, chunks)
        return size

    def encode_field(self, field_tag: bytes, message: Any, chunks: Chunks) -> int:
        """Encode `message` as a field of an enclosing one, which means with tag and length."""
        position = len(chunks)
        chunks.append(b"")
        size = self.encode(message, chunks)
        prefix = field_tag + varint(size)
        chunks[position] = prefix
        return len(prefix) + size


def _all_of(names: Sequence[str]) -> Callable[[Any], Iterable[Any]]:
    """A function from an object to the values of these attributes, in order."""
    if not names:
        return lambda _: ()
    if len(names) == 1:
        only = attrgetter(names[0])
        return lambda source: (only(source),)
    return attrgetter(*names)


class FrameCodec:
    """One direction of one service: its requests, or its responses."""

    def __init__(self, service: Service, is_response: bool) -> None:
        requests = SERVICES[service]
        classes = [*requests.values(), Failure] if is_response else list(requests)
        self._name = f"{service.value}{'Response' if is_response else 'Request'}"
        self._proto = getattr(_FILES[service], self._name)
        is_limited = not is_response and service in _FOR_CLIENTS
        self._lists = lists_of(self._proto.DESCRIPTOR) if is_limited else None
        by_name = {cls.__name__: cls for cls in classes}
        self._encoders: dict[type[Any], tuple[bytes, Converter]] = {}
        self._decoders: dict[str, Converter] = {}
        for field in self._proto.DESCRIPTOR.oneofs_by_name["body"].fields:
            message_type = field.message_type
            converter = Converter(by_name[message_type.name], GetMessageClass(message_type))
            self._encoders[converter.cls] = (tag(field.number), converter)
            self._decoders[field.name] = converter

    def encode(self, correlation_id: int, message: Message) -> bytes:
        """The frame's bytes.

        Raises `InvalidArgumentError` for a message of another service, or one with a field whose
        value does not fit its type.
        """
        entry = self._encoders.get(type(message))
        if entry is None:
            raise InvalidArgumentError(f"{type(message).__name__} is not a {self._name}")
        body_tag, converter = entry
        chunks: list[Any] = [_CORRELATION_ID_TAG + varint(correlation_id)]
        try:
            converter.encode_field(body_tag, message, chunks)
            return b"".join(chunks)
        except (TypeError, ValueError) as error:
            name = type(message).__name__
            raise InvalidArgumentError(f"{name} cannot be encoded: {error}") from error

    def decode(self, data: bytes) -> Frame:
        """The frame in `data`; raises `MalformedFrame`."""
        try:
            if self._lists is not None:
                check_items(data, self._lists)
            frame = self._proto.FromString(data)
        except TooManyItems:
            raise MalformedFrame(f"a {self._name} of more than {MAX_ITEMS} items") from None
        except (DecodeError, ValueError) as error:
            raise MalformedFrame(f"{len(data)} bytes are not a {self._name}: {error}") from error
        body = frame.WhichOneof("body")
        if body is None:
            raise MalformedFrame(f"{self._name} without a body known to this version")
        return Frame(frame.correlation_id, self._decoders[body].decode(getattr(frame, body)))


REQUESTS = {service: FrameCodec(service, is_response=False) for service in Service}
RESPONSES = {service: FrameCodec(service, is_response=True) for service in Service}
