"""A server of the ensemble that lags: what is read through it is old, what is written is not."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from barnabas_controller.zookeeper.session import BadVersion, Session, State, WatchEvent
from barnabas_simulator.loop import run
from barnabas_simulator.zookeeper import MemoryZooKeeper

LAG = 3.0


class Chance(random.Random):
    """Whether a client that reconnects lands on the server that lags."""

    def __init__(self, lands_there: bool) -> None:
        super().__init__(0)
        self.lands_there = lands_there

    def random(self) -> float:
        return 0.0 if self.lands_there else 0.9


class Scene:
    """`behind` reads through a server that lags, `ahead` through another one."""

    def __init__(self, zookeeper: MemoryZooKeeper, behind: Session, ahead: Session) -> None:
        self.zookeeper = zookeeper
        self.behind = behind
        self.ahead = ahead
        self.chance = Chance(lands_there=True)
        end = zookeeper.lag("behind", LAG, self.chance)
        assert end is not None
        self.catch_up = end

        self.changed_at = 0.0

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def change(self) -> None:
        """Make a change that the server which lags has yet to make."""
        self.changed_at = self.now
        await self.ahead.set("/a", b"new")

    def assert_waited_for_the_change(self) -> None:
        assert self.now - self.changed_at == pytest.approx(LAG, abs=0.01)

    async def connect_again(self) -> None:
        self.zookeeper.client("behind").disconnect()
        await asyncio.sleep(0)
        self.zookeeper.client("behind").reconnect()
        await asyncio.sleep(0.2)
        assert self.behind.state is State.CONNECTED


def play(test: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        zookeeper = MemoryZooKeeper()
        behind = await zookeeper.client("behind").connect(6000, 1000)
        ahead = await zookeeper.client("ahead").connect(6000, 1000)
        await ahead.create("/a", b"old")
        assert (await behind.get("/a"))[0] == b"old"
        await test(Scene(zookeeper, behind, ahead))

    run(main(), seed=1)


def test_reads_and_watches_are_late() -> None:
    async def test(scene: Scene) -> None:
        events: list[tuple[float, WatchEvent]] = []
        await scene.behind.get("/a", lambda event: events.append((scene.now, event)))
        await scene.change()
        await asyncio.sleep(LAG - 0.1)
        assert (await scene.behind.get("/a"))[0] == b"old"
        assert not events
        await asyncio.sleep(0.2)
        assert [at - scene.changed_at for at, _ in events] == [pytest.approx(LAG, abs=0.01)]
        assert (await scene.behind.get("/a"))[0] == b"new"

    play(test)


def test_a_write_is_made_at_the_head_and_answered_with_all_that_was_before_it() -> None:
    async def test(scene: Scene) -> None:
        await scene.change()
        writing = asyncio.ensure_future(scene.behind.create("/b"))
        reading = asyncio.ensure_future(scene.behind.get("/a"))
        await asyncio.sleep(0.1)
        assert await scene.ahead.exists("/b") is not None
        assert not writing.done() and not reading.done()
        assert (await reading)[0] == b"new"
        scene.assert_waited_for_the_change()
        assert writing.done()

    play(test)


def test_a_write_that_rests_on_an_old_version_fails() -> None:
    async def test(scene: Scene) -> None:
        _, stat = await scene.behind.get("/a")
        await scene.change()
        with pytest.raises(BadVersion):
            await scene.behind.set("/a", b"mine", stat.version)
        assert (await scene.behind.get("/a"))[0] == b"new"

    play(test)


@pytest.mark.parametrize("lands_there", [True, False])
def test_who_reconnects_may_find_another_server(lands_there: bool) -> None:
    """Its watch is told once of what it has missed."""

    async def test(scene: Scene) -> None:
        events: list[WatchEvent] = []
        await scene.behind.get("/a", events.append)
        await scene.change()
        scene.chance.lands_there = lands_there
        await scene.connect_again()
        assert (await scene.behind.get("/a"))[0] == (b"old" if lands_there else b"new")
        assert len(events) == (0 if lands_there else 1)
        await asyncio.sleep(2 * LAG)
        assert len(events) == 1

    play(test)


def test_a_session_never_goes_back() -> None:
    """A server that is behind what a client has seen refuses it."""

    async def test(scene: Scene) -> None:
        scene.chance.lands_there = False
        await scene.connect_again()
        await scene.change()
        assert (await scene.behind.get("/a"))[0] == b"new"
        scene.chance.lands_there = True
        await scene.connect_again()
        assert (await scene.behind.get("/a"))[0] == b"new"
        await asyncio.sleep(LAG)
        await scene.connect_again()
        await scene.ahead.set("/a", b"newer")
        assert (await scene.behind.get("/a"))[0] == b"new"

    play(test)


def test_an_expired_session_ends_late_there_and_changes_nothing() -> None:
    async def test(scene: Scene) -> None:
        await scene.behind.create("/mine", ephemeral=True)
        scene.zookeeper.expire(scene.behind)
        writing = asyncio.ensure_future(scene.behind.set("/a", b"mine"))
        assert await scene.behind.exists("/mine") is not None
        assert await scene.ahead.exists("/mine") is None
        assert scene.behind.state is State.CONNECTED
        await asyncio.sleep(LAG + 0.3)
        assert scene.behind.state is State.EXPIRED
        assert (await scene.ahead.get("/a"))[0] == b"old"
        assert writing.exception() is not None

    play(test)


def test_it_catches_up_at_the_end_and_at_a_restart() -> None:
    async def test(scene: Scene) -> None:
        events: list[WatchEvent] = []
        await scene.behind.get("/a", events.append)
        await scene.change()
        scene.catch_up()
        assert (await scene.behind.get("/a", events.append))[0] == b"new"
        assert len(events) == 1
        assert scene.zookeeper.lag("behind", LAG, scene.chance) is not None
        assert scene.zookeeper.lag("behind", LAG, scene.chance) is None, "it lags already"
        scene.zookeeper.stop()
        scene.zookeeper.start()
        await asyncio.sleep(0.2)
        await scene.ahead.set("/a", b"newer")
        await asyncio.sleep(0.01)
        assert len(events) == 2
        assert (await scene.behind.get("/a"))[0] == b"newer"

    play(test)


def test_a_session_that_opens_there_waits_for_the_change_that_opens_it() -> None:
    async def test(scene: Scene) -> None:
        await scene.change()
        session = await scene.zookeeper.client("behind").connect(6000, 5000)
        scene.assert_waited_for_the_change()
        assert (await session.get("/a"))[0] == b"new"

    play(test)
