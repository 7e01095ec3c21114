"""How a listener serves and ends its streams, over streams that are queues."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack

from barnabas_broker.rpc.acceptor import MOST_ABANDONED, Acceptor, Limits
from barnabas_broker.rpc.credits import BrokerCredits, Credits, StreamCredits
from barnabas_broker.rpc.exchange import End
from barnabas_broker.rpc.grpc_server import _STATUS
from barnabas_common.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_common.runtime import Message, Peer, Service
from barnabas_common.transport.codec import REQUESTS


class QueueStream:
    """A `FrameStream` whose other end is the test."""

    def __init__(self) -> None:
        self.frames: asyncio.Queue[bytes | Exception] = asyncio.Queue()
        self.answers: list[bytes] = []

    def request(self, topic: str) -> None:
        frame = REQUESTS[Service.ADMIN].encode(1, MetadataRequest([topic]))
        self.frames.put_nowait(frame)

    async def read(self) -> bytes | None:
        frame = await self.frames.get()
        if isinstance(frame, Exception):
            raise frame
        return frame

    async def write(self, frame: bytes) -> None:
        self.answers.append(frame)

    def close(self) -> None:
        pass


class Listening:
    """An acceptor whose requests wait at `gate`."""

    def __init__(self, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self.begun: list[str] = []
        self.gate = asyncio.Event()
        handlers = {Service.ADMIN: self._handle}
        self.acceptor = Acceptor("TEST", handlers, limits, limits.for_broker())

    def stream(self) -> tuple[QueueStream, asyncio.Task[tuple[End, str]]]:
        stream = QueueStream()
        serving = self.acceptor.serve(Service.ADMIN, stream, "client")
        return stream, asyncio.create_task(serving)

    async def _handle(self, request: Message, _peer: Peer) -> Message:
        assert isinstance(request, MetadataRequest)
        self.begun += request.topics
        await self.gate.wait()
        return MetadataResponse("id", 1)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)


async def test_a_closing_listener_starts_no_request_on_any_stream() -> None:
    listening = Listening()
    (busy, first), (idle, second) = listening.stream(), listening.stream()
    busy.request("begun")
    await until(lambda: listening.begun)
    closing = asyncio.create_task(listening.acceptor.close(grace=5))
    await asyncio.sleep(0)
    idle.request("late")
    for _ in range(10):
        await asyncio.sleep(0)
    listening.gate.set()
    await asyncio.wait_for(closing, 5)
    await asyncio.gather(first, second)
    assert listening.begun == ["begun"]
    assert len(busy.answers) == 1 and not idle.answers


async def test_a_closing_listener_takes_no_new_stream() -> None:
    listening = Listening()
    await listening.acceptor.close(grace=1.0)
    stream, serving = listening.stream()
    stream.request("late")
    async with asyncio.timeout(5.0):
        assert (await serving)[0] is End.CLOSED
    assert not listening.begun


async def test_a_stream_whose_reading_fails_is_ended_whatever_the_error() -> None:
    listening = Listening()
    stream, serving = listening.stream()
    stream.frames.put_nowait(ZeroDivisionError("planted"))
    end, _ = await asyncio.wait_for(serving, 5)
    assert end is End.UNREADABLE


async def test_all_who_wait_for_credits_go_on_once_there_are_some() -> None:
    """Each of them may take one message, so the limit is exceeded by as many."""
    credits = Credits(100)
    credits.take(250)
    waiting = [asyncio.create_task(credits.available()) for _ in range(3)]
    await asyncio.sleep(0)
    credits.give_back(150)
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    credits.give_back(1)
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)


def test_every_end_has_a_status_in_grpc() -> None:
    assert set(_STATUS) == set(End)


async def test_requests_that_wait_do_not_silence_other_streams() -> None:
    """Eight thousand small fetches, which may wait for weeks, stopped every client of a broker."""
    listening = Listening(Limits(broker_requests=3))
    (greedy, first), (modest, second) = listening.stream(), listening.stream()
    for number in range(5):
        greedy.request(f"greedy {number}")
    await until(lambda: len(listening.begun) == 3)
    modest.request("modest")
    modest.request("modest, too")
    await until(lambda: "modest" in listening.begun)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(listening.begun) == 4, "a second one of a stream waits"
    listening.gate.set()
    await until(lambda: len(listening.begun) == 7)
    await listening.acceptor.close(grace=5)
    await asyncio.gather(first, second)


async def test_a_stream_goes_on_once_its_own_request_is_handled_whatever_others_do() -> None:
    broker = BrokerCredits(Credits(1_000), Credits(1), Credits(1))
    other, mine = StreamCredits(Credits(1_000), broker), StreamCredits(Credits(1_000), broker)
    other.begin(1)
    mine.begin(1)
    waiting = asyncio.create_task(mine.available())
    await asyncio.sleep(0)
    assert not waiting.done()
    mine.end(1)
    await asyncio.wait_for(waiting, 5)


async def test_bytes_are_shared_strictly() -> None:
    broker = BrokerCredits(Credits(1_000), Credits(9), Credits(1))
    other, mine = StreamCredits(Credits(1 << 20), broker), StreamCredits(Credits(1 << 20), broker)
    other.begin(1_000)
    waiting = asyncio.create_task(mine.available())
    await asyncio.sleep(0)
    assert not waiting.done()
    other.end(1_000)
    await asyncio.wait_for(waiting, 5)


class UnreadStream(QueueStream):
    """A stream whose peer takes no answers."""

    async def write(self, frame: bytes) -> None:
        await asyncio.Event().wait()


async def test_streams_that_take_no_answer_end_when_others_need_the_memory_but_not_all() -> None:
    listening = Listening(Limits(broker_bytes=1, longest_stall=0.01))
    listening.gate.set()
    acceptor = listening.acceptor
    serving = [
        asyncio.create_task(acceptor.serve(Service.ADMIN, stream, "client"))
        for stream in (UnreadStream(), UnreadStream())
        if stream.request("unread") is None
    ]
    await until(lambda: listening.begun)
    acceptor.end_stalled_streams()
    with ExitStack() as abandoned:
        for _ in range(MOST_ABANDONED):
            abandoned.enter_context(acceptor.ending(End.STALLED))
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in serving)
    async with asyncio.timeout(5):
        (first, _), (second, _) = await asyncio.gather(*serving)
    assert first is second is End.STALLED
    await acceptor.close(0)


async def test_a_stream_that_takes_no_answer_stays_while_there_is_room() -> None:
    listening = Listening(Limits(longest_stall=0.01))
    listening.gate.set()
    stream = UnreadStream()
    stream.request("unread")
    serving = asyncio.create_task(listening.acceptor.serve(Service.ADMIN, stream, "client"))
    listening.acceptor.end_stalled_streams()
    await until(lambda: listening.begun)
    await asyncio.sleep(0.1)
    assert not serving.done()
    await listening.acceptor.close(0)
    await serving
