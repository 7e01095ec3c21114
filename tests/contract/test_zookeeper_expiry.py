"""ZooKeeper sessions, on the real server and in memory: resuming, expiry, broken connections."""

import asyncio
import time

import pytest
from barnabas_controller.zookeeper.session import (
    ConnectionLoss,
    EventType,
    SessionExpired,
    State,
    WatchEvent,
    ZooKeeperUnreachable,
)

from tests.contract.zookeeper_servers import Ensemble, Events


async def test_attaching_with_the_password_takes_a_session_over(ensemble: Ensemble) -> None:
    owner, other = await ensemble.session(), await ensemble.session()
    states = Events()
    owner.on_state(states)
    await owner.create("/a", ephemeral=True)
    successor = await ensemble.session(attach=(owner.session_id, owner.password))
    assert successor.session_id == owner.session_id
    await successor.close()
    assert await other.exists("/a") is None
    await states.until(lambda seen: State.EXPIRED in seen)
    assert states.seen[0] is State.SUSPENDED
    assert states.seen[-1] is State.EXPIRED
    assert owner.state is State.EXPIRED
    with pytest.raises(SessionExpired):
        await owner.create("/a")
    await owner.close()
    assert owner.state is State.EXPIRED
    await other.close()


async def test_what_waits_for_a_connection_learns_of_the_expiry(ensemble: Ensemble) -> None:
    owner = await ensemble.session()
    successor = await ensemble.session(attach=(owner.session_id, owner.password))
    states = Events()
    owner.on_state(states)
    if owner.state is State.CONNECTED:
        await states.until_count(1)
    asked = asyncio.ensure_future(owner.create("/a"))
    await successor.close()
    with pytest.raises(SessionExpired):
        await asked


async def test_a_session_that_is_over_or_not_ours_cannot_be_attached_to(ensemble: Ensemble) -> None:
    living, closed = await ensemble.session(), await ensemble.session()
    await closed.close()
    with pytest.raises(SessionExpired):
        await ensemble.session(attach=(closed.session_id, closed.password))
    with pytest.raises(SessionExpired):
        await ensemble.session(attach=(living.session_id, b"?" * 16))
    await living.close()


async def test_an_ensemble_that_does_not_answer_is_reported_in_time(ensemble: Ensemble) -> None:
    start = time.monotonic()
    with pytest.raises(ZooKeeperUnreachable, match="300 ms"):
        await ensemble.unreachable(connection_timeout_ms=300)
    assert time.monotonic() - start < 10


async def test_a_session_and_its_watches_survive_a_restart_of_the_server(
    ensemble: Ensemble,
) -> None:
    session, states = await ensemble.session(), Events()
    session.on_state(states)
    await session.create("/ids")
    await session.create("/ids/1", ephemeral=True)
    data, missing, children = Events(), Events(), Events()
    await session.get("/ids/1", data)
    await session.exists("/new", missing)
    await session.children("/ids", children)
    await ensemble.stop()
    await states.until(lambda seen: State.SUSPENDED in seen)
    asked = asyncio.ensure_future(session.get("/ids/1"))
    await ensemble.start()
    assert (await asked)[1].ephemeral_owner == session.session_id
    assert states.seen == [State.SUSPENDED, State.CONNECTED]
    assert data.seen == missing.seen == children.seen == []
    await session.set("/ids/1", b"1")
    await session.create("/new")
    await session.create("/ids/2")
    await session.exists("/")
    assert data.seen == [WatchEvent(EventType.CHANGED, "/ids/1")]
    assert missing.seen == [WatchEvent(EventType.CREATED, "/new")]
    assert children.seen == [WatchEvent(EventType.CHILDREN, "/ids")]
    await session.close()


async def test_a_change_missed_while_disconnected_fires_first(ensemble: Ensemble) -> None:
    """The watcher's connection breaks, the znode changes meanwhile, the watcher reconnects."""
    session, writer = await ensemble.session(), await ensemble.session()
    states, events = Events(), Events()
    session.on_state(states)
    await session.create("/a", b"0")
    await session.get("/a", events)
    thief = await ensemble.session(attach=(session.session_id, session.password))
    await writer.set("/a", b"1")
    data, _ = await session.get("/a")
    assert data == b"1"
    assert events.seen == [WatchEvent(EventType.CHANGED, "/a")]
    for opened in (thief, session, writer):
        await opened.close()


async def test_what_was_answered_before_the_connection_broke_was_done(ensemble: Ensemble) -> None:
    """The other requests fail with ConnectionLoss, or wait until the server is back."""
    session = await ensemble.session()
    await session.create("/a")
    names = [f"n{number:03}" for number in range(450)]

    def begin(some: list[str]) -> list[asyncio.Future[str]]:
        return [asyncio.ensure_future(session.create(f"/a/{name}")) for name in some]

    creates = begin(names[:400])
    await creates[20]
    # By now it may have answered all of them. It does not answer the others.
    await ensemble.hold()
    creates += begin(names[400:])
    await asyncio.sleep(0)
    await ensemble.stop()
    await ensemble.start()
    results = await asyncio.gather(*creates, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    assert errors
    assert all(isinstance(error, ConnectionLoss) for error in errors), errors
    done = {name for name, result in zip(names, results, strict=True) if isinstance(result, str)}
    assert done <= set(await session.children("/a"))
    await session.close()
