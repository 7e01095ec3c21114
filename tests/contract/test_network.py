"""What every network promises: gRPC on real sockets and the memory network alike."""

import asyncio
import errno
import time
from collections.abc import AsyncIterator

import pytest
from barnabas_broker.rpc.acceptor import Limits
from barnabas_broker.rpc.credits import REQUEST_OVERHEAD
from barnabas_common.errors import InvalidArgumentError, MaybeApplied, NotApplied
from barnabas_common.messages import SERVICES
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.messages.produce import ProduceResponse
from barnabas_common.runtime import Address, Channel, Listener, ProbeResult, Service

from tests.contract.network_peer import ScriptedPeer, filled, produce
from tests.contract.network_worlds import LIMITS, GrpcWorld, MemoryWorld, World

# This takes milliseconds on an idle machine. It must be far less than the deadlines used here.
SOON = 3.0


@pytest.fixture(params=["grpc", "memory"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    world: World = GrpcWorld() if request.param == "grpc" else MemoryWorld()
    yield world
    await world.close()


@pytest.fixture
def peer() -> ScriptedPeer:
    return ScriptedPeer()


@pytest.fixture
async def listener(world: World, peer: ScriptedPeer) -> Listener:
    return await world.listen(peer)


@pytest.fixture
def channel(world: World, listener: Listener) -> Channel:
    return world.connect(listener.address)


async def until(condition: object) -> None:
    """Wait, at most five seconds, until a function returns true."""
    assert callable(condition)
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


def echoed(response: ProduceResponse) -> tuple[str, int]:
    return response.partitions[0].topic, response.partitions[0].partition


# ---- answers


@pytest.mark.parametrize("service", Service)
async def test_every_request_of_every_service_gets_its_answer(
    world: World, peer: ScriptedPeer, listener: Listener, service: Service
) -> None:
    channel = world.connect(listener.address, service)
    for request_class, response_class in SERVICES[service].items():
        request = filled(request_class)
        response = await channel.call(request, timeout=5)
        assert peer.received[-1] == request
        assert type(response) is response_class


async def test_a_request_tells_who_sent_it(
    peer: ScriptedPeer, listener: Listener, channel: Channel
) -> None:
    await channel.call(produce("echo"), timeout=5)
    assert peer.senders[0].listener == "TEST"
    assert peer.senders[0].address


async def test_answers_may_overtake_one_another(peer: ScriptedPeer, channel: Channel) -> None:
    slow = asyncio.create_task(channel.call(produce("wait"), timeout=5))
    await until(lambda: peer.received)
    assert echoed(await channel.call(produce("quick"), timeout=5)) == ("quick", 0)
    peer.gate.set()
    assert echoed(await slow) == ("wait", 0)


async def test_two_hundred_calls_at_once_each_get_their_own_answer(channel: Channel) -> None:
    delays = [f"sleep:{number % 7 / 100}" for number in range(200)]
    answers = await asyncio.gather(
        *(channel.call(produce(delay, number), 10) for number, delay in enumerate(delays))
    )
    assert [echoed(answer) for answer in answers] == [
        (delay, number) for number, delay in enumerate(delays)
    ]


async def test_requests_are_begun_in_the_order_of_the_calls(
    peer: ScriptedPeer, channel: Channel
) -> None:
    await asyncio.gather(*(channel.call(produce("echo", number), 10) for number in range(100)))
    assert [request.partitions[0].partition for request in peer.received] == list(range(100))


async def test_large_records_arrive_whole(peer: ScriptedPeer, channel: Channel) -> None:
    records = bytes(range(256)) * 3000
    await channel.call(produce("echo", records=records), timeout=10)
    assert peer.received[0].partitions[0].records == records


async def test_a_send_needs_no_answer(peer: ScriptedPeer, channel: Channel) -> None:
    for number in range(3):
        await channel.send(produce("echo", number, acks=0), timeout=5)
    await until(lambda: len(peer.finished) == 3)
    assert [request.partitions[0].partition for request in peer.received] == [0, 1, 2]


# ---- refused: certainly not executed


async def test_where_no_one_listens_a_call_is_refused_at_once(world: World) -> None:
    channel = world.connect(world.unused_address())
    for _ in range(3):
        before = time.monotonic()
        with pytest.raises(NotApplied, match="refused"):
            await channel.call(produce("echo"), timeout=10)
        assert time.monotonic() - before < SOON


async def test_a_service_that_is_not_offered_is_refused_by_name(
    world: World, peer: ScriptedPeer
) -> None:
    listener = await world.listen(peer, Service.DATA, Service.ADMIN)
    with pytest.raises(NotApplied, match="service Control is not offered"):
        await world.connect(listener.address, Service.CONTROL).call(
            filled(next(iter(SERVICES[Service.CONTROL]))), timeout=5
        )
    assert not peer.received


async def test_a_message_over_the_limit_is_refused_and_its_neighbours_live(
    peer: ScriptedPeer, channel: Channel
) -> None:
    neighbour = asyncio.create_task(channel.call(produce("wait"), timeout=5))
    await until(lambda: peer.received)
    with pytest.raises(NotApplied, match=r"over the limit of 1048576 bytes"):
        await channel.call(produce("echo", records=bytes(LIMITS.max_message_bytes)), timeout=5)
    peer.gate.set()
    assert echoed(await neighbour) == ("wait", 0)
    assert len(peer.received) == 1


async def test_a_message_of_another_service_is_the_callers_mistake(channel: Channel) -> None:
    with pytest.raises(InvalidArgumentError, match="MetadataRequest is not a DataRequest"):
        await channel.call(MetadataRequest(), timeout=5)


async def test_a_closed_channel_refuses(channel: Channel) -> None:
    await channel.close()
    with pytest.raises(NotApplied, match="closed"):
        await channel.call(produce("echo"), timeout=5)


# ---- broken: the outcome is unknown


async def test_no_answer_in_time_means_maybe_applied(peer: ScriptedPeer, channel: Channel) -> None:
    await channel.call(produce("echo"), timeout=5)
    with pytest.raises(MaybeApplied, match=r"no answer from .* within 0\.05 s"):
        await channel.call(produce("wait"), timeout=0.05)
    peer.gate.set()
    assert echoed(await channel.call(produce("still alive"), timeout=5)) == ("still alive", 0)


async def test_when_the_peer_dies_every_call_in_flight_is_maybe_applied_at_once(
    world: World,
) -> None:
    channel = world.connect(await world.start_mortal())
    await channel.call(produce("echo"), timeout=5)
    calls = [asyncio.create_task(channel.call(produce("wait", n), 30)) for n in range(5)]
    await asyncio.sleep(0)
    # Requests are started in order, so with this answer the five have arrived.
    await channel.call(produce("echo"), timeout=5)
    await world.kill_mortal()
    before = time.monotonic()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [MaybeApplied] * 5
    assert time.monotonic() - before < SOON
    with pytest.raises(NotApplied):
        await channel.call(produce("echo"), timeout=5)


async def test_a_channel_finds_a_peer_that_came_back_on_the_same_port(world: World) -> None:
    address = await world.start_mortal()
    channel = world.connect(address)
    await channel.call(produce("echo"), timeout=5)
    await world.kill_mortal()
    for _ in range(5):
        with pytest.raises((NotApplied, MaybeApplied)):
            await channel.call(produce("echo"), timeout=1)
        await asyncio.sleep(0.1)
    await world.start_mortal(address.port)
    before = time.monotonic()
    while time.monotonic() - before < SOON:
        try:
            assert echoed(await channel.call(produce("back"), timeout=SOON)) == ("back", 0)
            return
        except NotApplied:
            await asyncio.sleep(0.02)
    pytest.fail(f"not reconnected within {SOON} s")


async def test_closing_a_channel_fails_its_calls(peer: ScriptedPeer, channel: Channel) -> None:
    call = asyncio.create_task(channel.call(produce("wait"), timeout=5))
    await until(lambda: peer.received)
    await channel.close()
    with pytest.raises(MaybeApplied, match="closed"):
        await call


# ---- connections that are watched


async def test_the_end_of_a_connection_is_told_without_a_call_in_flight(world: World) -> None:
    channel = world.connect(await world.start_mortal())
    ended = await channel.open(timeout=5)
    await channel.call(produce("echo"), timeout=5)
    await world.kill_mortal()
    async with asyncio.timeout(SOON):
        assert await ended
    with pytest.raises(NotApplied):
        await channel.open(timeout=5)


async def test_opening_and_calling_share_one_connection(
    world: World, peer: ScriptedPeer, channel: Channel
) -> None:
    await channel.open(timeout=5)
    ended = await channel.open(timeout=5)
    await channel.call(produce("echo"), timeout=5)
    with pytest.raises(MaybeApplied):
        await channel.call(produce("drop"), timeout=5)
    async with asyncio.timeout(SOON):
        await ended
    assert len({sender.address for sender in peer.senders}) == 1


async def test_who_stops_waiting_for_the_end_harms_no_one(channel: Channel) -> None:
    ended = await channel.open(timeout=5)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await ended
    assert echoed(await channel.call(produce("echo"), timeout=5)) == ("echo", 0)


async def test_closing_a_channel_ends_its_connection(channel: Channel) -> None:
    ended = await channel.open(timeout=5)
    await channel.close()
    assert "closed" in await ended
    with pytest.raises(NotApplied, match="closed"):
        await channel.open(timeout=5)


async def test_probing_tells_a_listener_from_an_empty_address(
    world: World, listener: Listener
) -> None:
    assert await world.probe(listener.address) is ProbeResult.ANSWERED
    assert await world.probe(world.unused_address()) is ProbeResult.REFUSED


async def test_a_dead_peer_refuses_as_soon_as_its_connection_has_ended(world: World) -> None:
    address = await world.start_mortal()
    ended = await world.connect(address).open(timeout=5)
    await world.kill_mortal()
    await ended
    before = time.monotonic()
    while await world.probe(address) is not ProbeResult.REFUSED:
        assert time.monotonic() - before < SOON
        await asyncio.sleep(0.005)


async def test_a_peer_that_does_not_answer_is_silent(world: World) -> None:
    before = time.monotonic()
    assert await world.probe(await world.silent_address(), timeout=0.3) is ProbeResult.SILENT
    assert time.monotonic() - before < SOON


# ---- handlers that fail


async def test_a_handler_that_breaks_harms_only_its_own_call(
    peer: ScriptedPeer, channel: Channel, caplog: pytest.LogCaptureFixture
) -> None:
    neighbour = asyncio.create_task(channel.call(produce("wait"), timeout=5))
    await until(lambda: peer.received)
    with pytest.raises(MaybeApplied, match="ProduceRequest met ZeroDivisionError: planted"):
        await channel.call(produce("fail"), timeout=5)
    assert "planted" in caplog.text
    peer.gate.set()
    assert echoed(await neighbour) == ("wait", 0)


async def test_a_handler_may_drop_the_connection(channel: Channel) -> None:
    with pytest.raises(MaybeApplied):
        await channel.call(produce("drop"), timeout=5)
    assert echoed(await channel.call(produce("again"), timeout=5)) == ("again", 0)


async def test_an_answer_over_the_limit_fails_its_own_call_only(channel: Channel) -> None:
    with pytest.raises(MaybeApplied, match="over the limit"):
        await channel.call(produce(f"answer:{LIMITS.max_answer_bytes}"), timeout=5)
    assert echoed(await channel.call(produce("fine"), timeout=5)) == ("fine", 0)


async def test_an_answer_may_be_larger_than_any_request(channel: Channel) -> None:
    """A batch of the largest request must reach the followers, beside what else is new there."""
    answer = await channel.call(produce(f"answer:{LIMITS.max_message_bytes}"), timeout=5)
    assert len(echoed(answer)[0]) == LIMITS.max_message_bytes


async def test_a_cancelled_caller_harms_no_one(peer: ScriptedPeer, channel: Channel) -> None:
    doomed = asyncio.create_task(channel.call(produce("wait", 1), timeout=5))
    neighbour = asyncio.create_task(channel.call(produce("wait", 2), timeout=5))
    await until(lambda: len(peer.received) == 2)
    doomed.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doomed
    peer.gate.set()
    assert echoed(await neighbour) == ("wait", 2)


async def test_a_request_is_carried_through_though_its_sender_left(
    peer: ScriptedPeer, channel: Channel
) -> None:
    call = asyncio.create_task(channel.call(produce("wait"), timeout=5))
    await until(lambda: peer.received)
    await channel.close()
    with pytest.raises(MaybeApplied):
        await call
    peer.gate.set()
    await until(lambda: peer.finished == ["wait"])


# ---- listeners


async def test_a_taken_port_is_an_os_error_that_names_it(
    world: World, peer: ScriptedPeer, listener: Listener
) -> None:
    address = listener.address
    with pytest.raises(OSError, match=f"cannot listen on {address}: Address already in use") as got:
        await world.listen(peer, port=address.port)
    assert got.value.errno == errno.EADDRINUSE


async def test_a_closing_listener_answers_what_it_has_begun_within_its_grace(
    world: World, peer: ScriptedPeer, listener: Listener, channel: Channel
) -> None:
    call = asyncio.create_task(channel.call(produce("wait"), timeout=5))
    await until(lambda: peer.received)
    closing = asyncio.create_task(listener.close(grace=5))
    await asyncio.sleep(0.05)
    with pytest.raises(NotApplied):
        await world.connect(listener.address).call(produce("late"), timeout=0.5)
    peer.gate.set()
    assert echoed(await call) == ("wait", 0)
    await asyncio.wait_for(closing, 2)


async def test_a_listener_closes_without_grace(
    peer: ScriptedPeer, listener: Listener, channel: Channel
) -> None:
    call = asyncio.create_task(channel.call(produce("wait"), timeout=5))
    await until(lambda: peer.received)
    await asyncio.wait_for(listener.close(), 2)
    with pytest.raises(MaybeApplied):
        await call


async def test_the_bytes_in_progress_are_bounded(world: World, peer: ScriptedPeer) -> None:
    size = 100_000
    limits = Limits(LIMITS.max_message_bytes, stream_bytes=3 * (size + REQUEST_OVERHEAD))
    listener = await world.listen(peer, limits=limits)
    channel = world.connect(listener.address)
    calls = [
        asyncio.create_task(channel.call(produce("permit", n, bytes(size)), 10)) for n in range(20)
    ]
    for received in range(3, 21):
        await until(lambda n=received: len(peer.received) >= n)
        assert len(peer.received) - len(peer.finished) == 3
        peer.permits.release()
        await until(lambda n=received: len(peer.finished) == n - 2)
    peer.permits.release()
    peer.permits.release()
    assert [echoed(await call)[1] for call in calls] == list(range(20))


async def test_clients_that_fill_the_broker_do_not_keep_followers_out(
    world: World, peer: ScriptedPeer
) -> None:
    listener = await world.listen(peer, limits=Limits(broker_bytes=1))
    clients = [world.connect(listener.address) for _ in range(2)]
    first = asyncio.create_task(clients[0].call(produce("wait"), timeout=10))
    await until(lambda: peer.received)
    second = asyncio.create_task(clients[1].call(produce("held back"), timeout=10))
    follower = world.connect(listener.address, Service.REPLICA)
    await follower.call(filled(next(iter(SERVICES[Service.REPLICA]))), timeout=5)
    assert "held back" not in peer.finished
    peer.gate.set()
    assert echoed(await first) == ("wait", 0)
    assert echoed(await second) == ("held back", 0)


def test_addresses_are_parsed_or_refused() -> None:
    assert Address.parse(" localhost:9092 ") == Address("localhost", 9092)
    assert Address.parse("[::1]:9092") == Address("::1", 9092)
    assert str(Address("::1", 9092)) == "[::1]:9092"
    for text in ("localhost", "localhost:", ":9092", "localhost:port", "localhost:70000"):
        with pytest.raises(ValueError, match="not an address"):
            Address.parse(text)
