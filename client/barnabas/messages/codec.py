"""Requests and responses as bytes: the frames that travel on a service's stream.

A frame is the protobuf message `<Service>Request` or `<Service>Response` (`proto/barnabas/v1/`): a
correlation id and one body. Called by the adapters of the network, gRPC and memory alike; nobody
else knows how messages travel.
"""

from dataclasses import dataclass
from typing import Any

from barnabas_proto.v1 import admin_pb2, control_pb2, data_pb2, replica_pb2
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from barnabas.errors import InvalidArgumentError
from barnabas.messages import SERVICES
from barnabas.messages.converter import Converter, tag, varint
from barnabas.messages.failure import Failure
from barnabas.runtime.network import Message, Service

_FILES = {
    Service.DATA: data_pb2,
    Service.ADMIN: admin_pb2,
    Service.REPLICA: replica_pb2,
    Service.CONTROL: control_pb2,
}
_CORRELATION_ID_TAG = varint(1 << 3)


class MalformedFrame(ValueError):
    """Bytes that are not a frame of this service, or whose body this version does not know."""


@dataclass(slots=True)
class Frame:
    """A message and the id that ties a response to its request."""

    correlation_id: int
    message: Message


class FrameCodec:
    """One direction of one service: its requests, or its responses."""

    def __init__(self, service: Service, is_response: bool) -> None:
        requests = SERVICES[service]
        classes = [*requests.values(), Failure] if is_response else list(requests)
        self._name = f"{service.value}{'Response' if is_response else 'Request'}"
        self._proto = getattr(_FILES[service], self._name)
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
            frame = self._proto.FromString(data)
        except DecodeError as error:
            raise MalformedFrame(f"{len(data)} bytes are not a {self._name}: {error}") from error
        body = frame.WhichOneof("body")
        if body is None:
            raise MalformedFrame(f"{self._name} without a body known to this version")
        return Frame(frame.correlation_id, self._decoders[body].decode(getattr(frame, body)))


REQUESTS = {service: FrameCodec(service, is_response=False) for service in Service}
RESPONSES = {service: FrameCodec(service, is_response=True) for service in Service}


def encode_frame(
    service: Service, correlation_id: int, message: Message, is_response: bool
) -> bytes:
    """The bytes of a request's or a response's frame; see `FrameCodec.encode`."""
    codecs = RESPONSES if is_response else REQUESTS
    return codecs[service].encode(correlation_id, message)


def decode_frame(service: Service, data: bytes, is_response: bool) -> Frame:
    """The frame in `data`; see `FrameCodec.decode`."""
    codecs = RESPONSES if is_response else REQUESTS
    return codecs[service].decode(data)
