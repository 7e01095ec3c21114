"""What only gRPC on real sockets can show: raw frames, host names, uvloop, probes of a port."""

import asyncio
import logging
import platform
import signal
import time
from collections.abc import AsyncIterator

import grpc
import pytest
import uvloop
from barnabas_broker.rpc.acceptor import MIB, Limits
from barnabas_broker.rpc.allocator import keep_freed_memory
from barnabas_broker.rpc.grpc_server import MAX_STREAMS, GrpcListen, grpc_listen
from barnabas_common.errors import MaybeApplied, NotApplied
from barnabas_common.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_common.runtime import Address, Listener, Message, Peer, ProbeResult, Service
from barnabas_common.transport import grpc_network
from barnabas_common.transport.codec import REQUESTS, RESPONSES
from barnabas_common.transport.grpc_network import GrpcNetwork, method
from barnabas_common.transport.stream_channel import StreamChannel
from grpc import aio

from tests.contract.network_peer import ScriptedPeer, produce
from tests.contract.network_worlds import GrpcWorld


@pytest.fixture
def peer() -> ScriptedPeer:
    return ScriptedPeer()


@pytest.fixture
async def listener(peer: ScriptedPeer) -> AsyncIterator[Listener]:
    listener = await grpc_listen()("TEST", Address("127.0.0.1", 0), peer.handlers(Service.DATA))
    yield listener
    await listener.close()


@pytest.mark.parametrize(
    "garbage",
    [b"\xff" * 64, b"", b"\x08\x01", b"\x12\x7f\x01"],
    ids=["noise", "empty", "no body", "cut short"],
)
async def test_a_malformed_frame_ends_its_stream_with_a_log_line_and_no_other(
    listener: Listener, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    neighbour = GrpcNetwork().connect(listener.address, Service.DATA)
    await neighbour.call(produce("before"), timeout=5)
    async with aio.insecure_channel(str(listener.address)) as raw:
        stream = raw.stream_stream(method(Service.DATA))()
        await stream.write(garbage)
        with pytest.raises(grpc.RpcError) as got:
            await stream.read()
    assert got.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "DataRequest" in got.value.details()
    assert [r.levelno for r in caplog.records if "closing the connection" in r.message] == [
        logging.WARNING
    ]
    await neighbour.call(produce("after"), timeout=5)
    await neighbour.close()


async def test_a_connection_has_so_many_streams_and_further_ones_wait(listener: Listener) -> None:
    async with aio.insecure_channel(str(listener.address)) as raw:
        open_stream = raw.stream_stream(method(Service.DATA))
        streams = [open_stream() for _ in range(MAX_STREAMS)]
        await asyncio.gather(*(stream.initial_metadata() for stream in streams))
        another = open_stream()
        accepted = asyncio.ensure_future(another.initial_metadata())
        assert not (await asyncio.wait([accepted], timeout=0.5))[0], "it waits"
        streams[0].cancel()
        await asyncio.wait_for(accepted, timeout=10)


async def test_a_frame_is_plain_protobuf_that_any_grpc_client_can_speak(
    listener: Listener,
) -> None:
    async with aio.insecure_channel(str(listener.address)) as raw:
        stream = raw.stream_stream("/barnabas.v1.Data/Exchange")()
        await stream.write(REQUESTS[Service.DATA].encode(77, produce("echo")))
        frame = RESPONSES[Service.DATA].decode(await stream.read())
    assert frame.correlation_id == 77


async def test_a_host_that_does_not_exist_is_refused_with_the_reason() -> None:
    channel = GrpcNetwork().connect(Address("no-such-host.invalid", 9092), Service.DATA)
    with pytest.raises(NotApplied, match=r"invalid:9092: the host name .* (known|resolved)$"):
        await channel.call(produce("echo"), timeout=10)
    await channel.close()


async def test_a_broken_connection_is_told_in_plain_words_and_in_grpcs_own_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="barnabas_common.transport.grpc_network")
    world = GrpcWorld()
    address = await world.start_mortal()
    ended = await world.connect(address).open(timeout=5)
    await world.kill_mortal()
    assert (await ended).endswith(
        ("broke: the other end closed the connection", "broke: the other end reset the connection")
    )
    nobody = world.unused_address()
    with pytest.raises(NotApplied, match=f"^cannot reach Data at {nobody}: connection refused$"):
        await world.connect(nobody).open(timeout=5)
    said = [r.getMessage() for r in caplog.records]
    assert any("UNAVAILABLE" in text and "Connection refused" in text for text in said)
    await world.close()


async def test_a_listener_that_takes_connections_and_says_nothing_is_a_refusal_in_time() -> None:
    silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    channel = GrpcNetwork().connect(Address("127.0.0.1", port), Service.DATA)
    with pytest.raises(NotApplied, match=r"no connection to Data at .* within 0\.3 s"):
        await channel.call(produce("echo"), timeout=0.3)
    await channel.close()
    silent.close()


async def test_a_host_this_machine_does_not_have_cannot_be_listened_on(
    peer: ScriptedPeer,
) -> None:
    with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1:9092: "):
        await grpc_listen()("TEST", Address("192.0.2.1", 9092), peer.handlers())


async def test_a_port_is_free_again_as_soon_as_its_listener_is_closed(
    peer: ScriptedPeer, listener: Listener
) -> None:
    channel = GrpcNetwork().connect(listener.address, Service.DATA)
    await channel.call(produce("echo"), timeout=5)
    before = time.monotonic()
    await listener.close(grace=5)
    assert time.monotonic() - before < 3.0
    again = await grpc_listen()("TEST", listener.address, peer.handlers())
    await again.close()
    await channel.close()


async def test_a_request_the_broker_finds_too_large_breaks_the_connection_not_the_broker(
    peer: ScriptedPeer,
) -> None:
    listener = await grpc_listen(100_000)("TEST", Address("127.0.0.1", 0), peer.handlers())
    channel = GrpcNetwork().connect(listener.address, Service.DATA)
    with pytest.raises(MaybeApplied, match="larger than max"):
        await channel.call(produce("echo", records=bytes(200_000)), timeout=5)
    await channel.call(produce("echo"), timeout=5)
    assert len(peer.received) == 1
    await channel.close()
    await listener.close()


def test_it_runs_on_uvloop(peer: ScriptedPeer) -> None:
    async def main() -> None:
        listener = await grpc_listen()("TEST", Address("127.0.0.1", 0), peer.handlers())
        channel = GrpcNetwork().connect(listener.address, Service.DATA)
        await asyncio.gather(*(channel.call(produce("echo", n), timeout=5) for n in range(50)))
        await channel.close()
        await listener.close()

    uvloop.run(main())
    assert len(peer.received) == 50


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_the_c_library_can_be_told_to_keep_memory() -> None:
    assert keep_freed_memory()


# ---- probes


async def test_a_probe_by_name_is_answered_if_any_address_of_it_is(listener: Listener) -> None:
    """The listener has 127.0.0.1 only; `localhost` may also stand for ::1, which refuses."""
    address = Address("localhost", listener.address.port)
    assert await GrpcNetwork().probe(address, timeout=5) is ProbeResult.ANSWERED


async def test_a_probe_at_an_unknown_name_is_no_refusal() -> None:
    """The outcome depends on the resolver: no such name, or no answer."""
    probe = await GrpcNetwork().probe(Address("no-such-host.invalid", 1), timeout=5)
    assert probe in (ProbeResult.FAILED, ProbeResult.SILENT)


async def test_a_paused_process_refuses_no_one_and_its_connection_stands() -> None:
    world = GrpcWorld()
    address = await world.start_mortal()
    ended = asyncio.ensure_future(await world.connect(address).open(timeout=5))
    world.signal_mortal(signal.SIGSTOP)
    try:
        for _ in range(20):
            assert await world.probe(address) is ProbeResult.ANSWERED
            await asyncio.sleep(0.05)
        assert not ended.done()
    finally:
        world.signal_mortal(signal.SIGCONT)
        await world.close()
    assert await ended


async def test_who_takes_no_answers_does_not_silence_the_broker() -> None:
    """Its connection stands, it answers pings, and what waits for it is all that clients share."""

    begun = asyncio.Event()

    async def handle(request: Message, _: Peer) -> Message:
        begun.set()
        return MetadataResponse("x" * (20 * MIB if request.topics else 1), 1)

    listen = GrpcListen(Limits(broker_bytes=MIB, longest_stall=0.5))
    listener = await listen("CLIENT", Address("127.0.0.1", 0), {Service.ADMIN: handle})
    hostile = aio.insecure_channel(str(listener.address))
    call = hostile.stream_stream(method(Service.ADMIN))()
    await call.write(REQUESTS[Service.ADMIN].encode(1, MetadataRequest(["large"])))
    await begun.wait()
    polite = GrpcNetwork().connect(listener.address, Service.ADMIN)
    assert await polite.call(MetadataRequest(), 20.0) == MetadataResponse("x", 1)
    await polite.close()
    await hostile.close()
    await listener.close()


async def test_a_close_that_is_cancelled_closes_the_connection(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cancelled(_self: StreamChannel) -> None:
        raise asyncio.CancelledError

    channel = GrpcNetwork().connect(listener.address, Service.DATA)
    await channel.call(produce("before"), timeout=5)
    assert channel in grpc_network._open_channels
    monkeypatch.setattr(StreamChannel, "close", cancelled)
    with pytest.raises(asyncio.CancelledError):
        await channel.close()
    assert channel not in grpc_network._open_channels
