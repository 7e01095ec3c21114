"""Messages of gRPC 1.85, and the words in which users see them."""

import pytest
from barnabas_common.transport.grpc_network import plain_words

NOWHERE = "failed to connect to all addresses; last error: "
HEARD = [
    (
        "UNAVAILABLE",
        f"{NOWHERE}UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection refused",
        "connection refused",
    ),
    ("UNAVAILABLE", "Stream removed (Socket closed)", "the other end closed the connection"),
    (
        "UNAVAILABLE",
        f"{NOWHERE}UNAVAILABLE: ipv4:127.0.0.1:35953: Socket closed",
        "the other end closed the connection",
    ),
    (
        "UNAVAILABLE",
        "errors resolving no-such-host.invalid:9092: [field:hostname lookup error:address lookup "
        "failed for no-such-host.invalid:9092: Domain name not found]",
        "the host name is not known",
    ),
    (
        "UNAVAILABLE",
        f"{NOWHERE}INTERNAL: ipv4:127.0.0.1:46847: Failed parsing HTTP/2 (Expected SETTINGS frame)",
        "what listens there does not speak gRPC",
    ),
    (
        "UNAVAILABLE",
        f"{NOWHERE}UNKNOWN: ipv4:127.0.0.1:9092: connection attempt timed out before receiving "
        "SETTINGS frame",
        "it takes connections, but does not answer",
    ),
    ("UNAVAILABLE", "the listener is closing", "the other end closed the connection"),
    ("INTERNAL", "Internal error from Core", "the stream has ended"),
    (
        "UNAVAILABLE",
        f"{NOWHERE}INTERNAL: ipv4:127.0.0.1:1: socket: Too many open files\n\x00O\x9c\x00\xff\xff",
        "this process has no file descriptor left",
    ),
    ("UNAVAILABLE", "keepalive timeout", "the other end did not answer pings"),
]


@pytest.mark.parametrize(("code", "details", "plain"), HEARD)
def test_what_grpc_says_is_told_in_plain_words(code: str, details: str, plain: str) -> None:
    assert plain_words(code, details) == plain


def test_what_brokers_say_and_what_no_one_foresaw_is_passed_on() -> None:
    said = "the frame is larger than max.message.bytes"
    assert plain_words("RESOURCE_EXHAUSTED", said) == f"{said} (RESOURCE_EXHAUSTED)"
    assert plain_words("CANCELLED", "") == "CANCELLED"
    assert plain_words("UNKNOWN", "a\n\x00b\x9f") == "a  b (UNKNOWN)"
