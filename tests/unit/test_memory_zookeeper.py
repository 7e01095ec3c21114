"""The in-memory ZooKeeper on virtual time: expiry, and faults that only it can have."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from barnabas_controller.zookeeper.session import (
    ConnectionLoss,
    EventType,
    Session,
    SessionExpired,
    State,
    WatchEvent,
    ZooKeeperUnreachable,
)
from barnabas_simulator.loop import NODE, VirtualLoop, run
from barnabas_simulator.zookeeper import MemoryZooKeeper

Scenario = Callable[[MemoryZooKeeper], Awaitable[None]]


def on_virtual_time(scenario: Scenario) -> Callable[[], None]:
    """Return a test that runs the scenario on its own loop, in virtual time."""

    def test() -> None:
        async def main() -> None:
            await scenario(MemoryZooKeeper())

        run(main(), seed=1)

    test.__name__ = scenario.__name__  # type: ignore[attr-defined]
    return test


async def connect(zookeeper: MemoryZooKeeper, name: str) -> Session:
    return await zookeeper.client(name).connect(6000, 1000)


@on_virtual_time
async def test_a_session_expires_its_timeout_after_the_connection_broke(
    zookeeper: MemoryZooKeeper,
) -> None:
    loop = asyncio.get_running_loop()
    owner, other = await connect(zookeeper, "owner"), await connect(zookeeper, "other")
    await owner.create("/a", ephemeral=True)
    gone: asyncio.Future[float] = loop.create_future()
    await other.exists("/a", lambda event: gone.set_result(loop.time()))
    start = loop.time()
    zookeeper.client("owner").disconnect()
    assert await gone - start == pytest.approx(6.0, abs=0.01)
    assert owner.state is State.SUSPENDED
    zookeeper.client("owner").reconnect()
    await asyncio.sleep(0.2)
    assert owner.state is State.EXPIRED
    with pytest.raises(SessionExpired):
        await owner.exists("/a")


@on_virtual_time
async def test_a_session_that_reconnects_in_time_lives_on(zookeeper: MemoryZooKeeper) -> None:
    owner = await connect(zookeeper, "owner")
    states: list[State] = []
    owner.on_state(states.append)
    await owner.create("/a", ephemeral=True)
    zookeeper.client("owner").disconnect()
    await asyncio.sleep(5)
    zookeeper.client("owner").reconnect()
    assert await owner.exists("/a") is not None
    await asyncio.sleep(20)
    assert states == [State.SUSPENDED, State.CONNECTED]


@on_virtual_time
async def test_a_lost_request_was_not_applied(zookeeper: MemoryZooKeeper) -> None:
    session = await connect(zookeeper, "a")
    zookeeper.lose_next_request(session)
    with pytest.raises(ConnectionLoss, match="/a"):
        await session.create("/a")
    assert await session.exists("/a") is None


@on_virtual_time
async def test_a_lost_reply_leaves_what_was_applied(zookeeper: MemoryZooKeeper) -> None:
    session = await connect(zookeeper, "a")
    zookeeper.lose_next_reply(session, "/b")
    await session.create("/a")
    with pytest.raises(ConnectionLoss, match="/b"):
        await session.create("/b")
    assert await session.exists("/b") is not None


@on_virtual_time
async def test_a_watch_whose_arming_was_not_confirmed_is_not_armed(
    zookeeper: MemoryZooKeeper,
) -> None:
    session = await connect(zookeeper, "a")
    events: list[WatchEvent] = []
    zookeeper.lose_next_reply(session)
    with pytest.raises(ConnectionLoss):
        await session.exists("/a", events.append)
    await session.create("/a")
    assert events == []


@on_virtual_time
async def test_a_crashed_client_hears_nothing_and_what_it_sent_arrives(
    zookeeper: MemoryZooKeeper,
) -> None:
    owner, other = await connect(zookeeper, "owner"), await connect(zookeeper, "other")
    events: list[WatchEvent] = []
    await owner.create("/a", ephemeral=True)
    await owner.exists("/b", events.append)
    last_words = asyncio.ensure_future(owner.create("/last"))
    await asyncio.sleep(0)
    zookeeper.client("owner").crash()
    await asyncio.sleep(1)
    await other.create("/b")
    assert await other.exists("/a") is not None
    await asyncio.sleep(6)
    assert await other.children("/") == ["b", "last"]
    assert events == []
    assert not last_words.done()
    last_words.cancel()


@on_virtual_time
async def test_an_expired_client_is_told(zookeeper: MemoryZooKeeper) -> None:
    session = await connect(zookeeper, "a")
    told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    session.on_state(lambda state: told.set_result(None) if state is State.EXPIRED else None)
    zookeeper.expire(session)
    await told
    assert (await connect(zookeeper, "a")).session_id != session.session_id


@on_virtual_time
async def test_sessions_outlive_a_server_that_is_down_longer_than_they(
    zookeeper: MemoryZooKeeper,
) -> None:
    session = await connect(zookeeper, "a")
    zookeeper.stop()
    with pytest.raises(ZooKeeperUnreachable):
        await connect(zookeeper, "b")
    await asyncio.sleep(60)
    zookeeper.start()
    await session.create("/a")


@on_virtual_time
async def test_a_watch_runs_in_the_process_that_set_it(zookeeper: MemoryZooKeeper) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    ran_on: list[str] = []

    async def start(name: str) -> Session:
        NODE.set(name)
        session = await connect(zookeeper, name)
        await session.exists("/a", lambda event: ran_on.append(NODE.get()))
        return session

    await loop.create_task(start("reader"))
    writer = await loop.create_task(start("writer"))

    async def write() -> None:
        NODE.set("writer")
        await writer.create("/a", ephemeral=True)

    await loop.create_task(write())
    await asyncio.sleep(1)
    assert sorted(ran_on) == ["reader", "writer"]
    loop.kill_node("writer")
    zookeeper.client("writer").crash()
    observer = await connect(zookeeper, "observer")
    await asyncio.sleep(7)
    assert await observer.exists("/a") is None


def test_the_same_seed_gives_the_same_history() -> None:
    async def history() -> list[tuple[float, str, EventType]]:
        loop, zookeeper = asyncio.get_running_loop(), MemoryZooKeeper()
        seen: list[tuple[float, str, EventType]] = []
        sessions = [await connect(zookeeper, f"client-{number}") for number in range(3)]

        async def race(session: Session, name: str) -> None:
            for _ in range(5):
                await session.exists("/a", lambda e: seen.append((loop.time(), name, e.type)))
                await session.multi([])
                if await session.exists("/a") is None:
                    try:
                        await session.create("/a")
                    except Exception as error:
                        seen.append((loop.time(), type(error).__name__, EventType.CREATED))
                else:
                    await session.set("/a", name.encode())

        await asyncio.gather(*(race(s, str(n)) for n, s in enumerate(sessions)))
        return seen

    assert run(history(), seed=7) == run(history(), seed=7) != []


@pytest.mark.parametrize(("pause", "lives"), [(5.0, True), (7.0, False)])
def test_a_process_that_stands_still_keeps_its_session_as_long_as_its_timeout(
    pause: float, lives: bool
) -> None:
    async def main() -> None:
        zookeeper = MemoryZooKeeper()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        sessions: list[Session] = []

        async def process() -> None:
            NODE.set("process")
            sessions.append(await connect(zookeeper, "process"))
            await sessions[0].create("/a", ephemeral=True)

        await asyncio.create_task(process())
        other = await connect(zookeeper, "other")
        for _ in range(2):
            loop.pause_node("process")
            zookeeper.client("process").fall_silent()
            await asyncio.sleep(pause)
            assert sessions[0].state is State.CONNECTED  # it has noticed nothing yet
            assert (await other.exists("/a") is not None) is lives
            loop.resume_node("process")
            zookeeper.client("process").speak_again()
            await asyncio.sleep(0.5)
            assert sessions[0].state is (State.CONNECTED if lives else State.EXPIRED)
            if not lives:
                break

    run(main(), seed=1)
