"""A ZooKeeper server restored from an old copy refuses sessions that have seen more."""

import asyncio

import pytest
from barnabas_controller.zookeeper.session import (
    NoNode,
    State,
    ZooKeeperBehind,
    ZooKeeperUnreachable,
)

from tests.contract.zookeeper_servers import Ensemble, Events


async def rolled_back(ensemble: Ensemble) -> None:
    """Create /old, take a copy, create /new, and restore the copy."""
    first = await ensemble.session()
    await first.create("/old")
    await first.close()
    await ensemble.stop()
    copy = await ensemble.copy()
    await ensemble.start()
    session = await ensemble.session()
    for number in range(5):
        await session.create(f"/new-{number}")
    events = Events()
    session.on_state(events)
    await ensemble.stop()
    await events.until(lambda seen: State.SUSPENDED in seen)
    assert not isinstance(await session.diagnose(), ZooKeeperBehind)
    await ensemble.restore(copy)
    await ensemble.start()
    async with asyncio.timeout(10):
        while not isinstance(error := await session.diagnose(), ZooKeeperBehind):
            await asyncio.sleep(0.05)
    assert "restored from an older copy" in str(error)
    assert session.state is State.SUSPENDED
    with pytest.raises(ZooKeeperBehind):
        await ensemble.connect(1000, session.last_zxid)
    await session.close()


async def test_a_session_is_not_resumed_and_says_why(ensemble: Ensemble) -> None:
    await rolled_back(ensemble)


async def test_one_that_has_seen_nothing_takes_the_old_copy(ensemble: Ensemble) -> None:
    await rolled_back(ensemble)
    session = await ensemble.connect(3000, 0)
    assert await session.exists("/old") is not None
    with pytest.raises(NoNode):
        await session.get("/new-0")
    await session.close()


async def test_last_zxid_grows_with_what_is_seen(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    await session.create("/a")
    before = session.last_zxid
    await session.set("/a", b"1")
    assert session.last_zxid > before > 0
    again = await ensemble.connect(3000, session.last_zxid)
    assert await again.get("/a")
    await again.close()
    await session.close()


async def test_last_zxid_outlives_the_session(ensemble: Ensemble) -> None:
    """A broker whose session has ended must not accept a server that is behind."""
    session = await ensemble.session()
    await session.create("/a")
    before = session.last_zxid
    await session.close()
    assert session.last_zxid >= before > 0


async def test_where_no_server_answers_it_is_not_behind(ensemble: Ensemble) -> None:
    with pytest.raises(ZooKeeperUnreachable) as found:
        await ensemble.unreachable(300)
    assert not isinstance(found.value, ZooKeeperBehind)
