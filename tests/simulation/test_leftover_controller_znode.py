"""A `/controller` that an earlier term of the same ZooKeeper session has left behind."""

from typing import Any

from barnabas_controller.controller import Controller, ControllerSetup
from barnabas_controller.controller_election import current_controller, elect
from barnabas_controller.store import znodes
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.session import Session, Stat, Watch

from tests.support.control_world import ControlWorld, run_world


def test_it_is_deleted_and_the_next_election_is_won() -> None:
    async def test(world: ControlWorld) -> None:
        session = await world.zookeeper.client("x").connect(6000, 1000)
        await elect(Store(session), 7, 0)
        controller = Controller(ControllerSetup(world.runtime("x"), session, 7))
        await controller.start()
        await world.until(lambda: controller.epoch == 2)
        await controller.stop()
        assert not controller.is_active

    run_world(test)


class Behind:
    """A session whose server is behind: it serves what `/controller` was when `freeze` ran."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._old: dict[str, tuple[bytes, Stat]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def freeze(self) -> None:
        for path in (znodes.CONTROLLER, znodes.CONTROLLER_EPOCH):
            self._old[path] = await self._session.get(path)

    def catch_up(self) -> None:
        self._old.clear()

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        found = await self._session.get(path, watch)
        return self._old.get(path, found)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        found = await self._session.exists(path, watch)
        return self._old[path][1] if path in self._old else found


def test_the_znode_of_a_successor_is_not_deleted() -> None:
    """A ZooKeeper server that is behind still shows this session's `/controller`."""

    async def test(world: ControlWorld) -> None:
        session = await world.zookeeper.client("x").connect(6000, 1000)
        behind = Behind(session)
        await elect(Store(session), 7, 0)
        await behind.freeze()
        await world.store.remove(znodes.CONTROLLER)
        await elect(world.store, 8, 0)
        controller = Controller(ControllerSetup(world.runtime("x"), behind, 7))
        await controller.start()
        await world.settle(5)
        successor = await current_controller(world.store)
        assert successor is not None and successor.broker_id == 8
        behind.catch_up()
        await world.until(lambda: controller.active_controller_id == 8)
        await controller.stop()

    run_world(test)


def test_it_is_deleted_even_where_the_epoch_is_missing() -> None:
    async def test(world: ControlWorld) -> None:
        session = await world.zookeeper.client("x").connect(6000, 1000)
        await elect(Store(session), 7, 0)
        await world.store.remove(znodes.CONTROLLER_EPOCH)
        controller = Controller(ControllerSetup(world.runtime("x"), session, 7))
        await controller.start()
        await world.until(lambda: controller.epoch == 1)
        await controller.stop()

    run_world(test)
