"""A broker's place in the cluster: its ZooKeeper session, its registration, its controller.

All three live and die together. When the session expires, the controller is stopped first (it must
not act any more), then a new session is opened, the broker registers under a new broker epoch, and
a new controller stands for election.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from barnabas.events import EventKind, EventLog
from barnabas.runtime import Runtime, TaskScope
from barnabas_controller import znodes
from barnabas_controller.config import ControllerConfig
from barnabas_controller.controller import Controller, ControllerSetup
from barnabas_controller.errors import DuplicateBrokerId
from barnabas_controller.registration import ensure_cluster_id, register_anew, register_broker
from barnabas_controller.store import Store
from barnabas_controller.znodes import UNBROKEN_SINCE_REGISTRATION
from barnabas_controller.zookeeper.session import (
    EXPIRED_AT_SERVER,
    Connect,
    Session,
    SessionExpired,
    State,
    ZooKeeperUnreachable,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class MembershipConfig:
    """`keep_session(id, password)` stores the session so that a successor can close it.
    `on_session` is awaited with every new session, before the broker registers in it. `suspects`
    are those of the controller, by id with the broker epoch."""

    session_timeout_ms: int
    connection_timeout_ms: int
    controller: Callable[[], ControllerConfig]
    keep_session: Callable[[int, bytes], None]
    on_session: Callable[[Store], Awaitable[None]]
    highest_epoch: Callable[[], int]
    suspects: Callable[[], Mapping[int, int]] = dict


class Membership:
    """Joins the cluster and stays in it until `leave`.

    `broker_epoch` is -1 until `registered` is set. `on_lost` is called when the membership cannot
    be regained (another broker has taken the id), with the reason.
    """

    def __init__(
        self,
        runtime: Runtime,
        connect: Connect,
        config: MembershipConfig,
        on_lost: Callable[[str], None],
        events: EventLog,
    ) -> None:
        self._runtime = runtime
        self._connect = connect
        self._config = config
        self._on_lost = on_lost
        self._events = events
        self._broker: znodes.Broker | None = None
        self._session: Session | None = None
        self._expired = asyncio.Event()
        self._tasks = TaskScope("membership")
        self.store: Store | None = None
        self.controller: Controller | None = None
        self.broker_epoch = -1
        self._given_up_epoch = -1
        self.registered = asyncio.Event()

    async def connect(self, predecessor: tuple[int, bytes] | None) -> str:
        """Open a session, after closing the predecessor's; returns the cluster's id."""
        if predecessor is not None:
            await self._close_predecessor(predecessor)
        store = await self._open_session()
        await store.create_persistent_paths()
        await self._config.on_session(store)
        return await ensure_cluster_id(store, self._runtime.randomness)

    async def join(self, broker: znodes.Broker) -> None:
        """Register and start the controller; raises DuplicateBrokerId, EndpointTaken."""
        self._broker = broker
        await self._register(previous_session_id=0)
        self._tasks.spawn(self._rejoin_when_expired(), "rejoin")

    @property
    def unbroken_since(self) -> int:
        """The broker epoch since which this broker's logs have lost nothing, once registered."""
        return self._broker.unbroken_since if self._broker is not None else -1

    async def leave(self) -> None:
        """Stop the controller, close the session: the registration vanishes at once."""
        await self._tasks.close()
        await self._stop_controller()
        if self._session is not None:
            await self._session.close()
        self.store = None

    def register_anew(self, broker_epoch: int, why: str) -> None:
        """Take a new broker epoch, if this is still the present one; returns at once."""
        if broker_epoch == self.broker_epoch != self._given_up_epoch and self.store is not None:
            self._given_up_epoch = broker_epoch
            self._tasks.spawn(self._register_anew(self.store, why), "register anew")

    async def _register_anew(self, store: Store, why: str) -> None:
        assert self._broker is not None
        logger.warning("registering anew, for %s", why)
        try:
            epoch = await register_anew(store, self._broker, self._runtime.clock.wall_ms())
        except SessionExpired:
            return  # a new session is on its way, and with it a new registration
        except DuplicateBrokerId as error:
            self._on_lost(f"cannot register anew: {error}")
            return
        if store is self.store:
            self.broker_epoch = epoch
            self._events.record(EventKind.REGISTERED_ANEW, why, broker_epoch=epoch)

    def ask_for_roles(self) -> None:
        """Have the controller tell this broker all its roles once more; returns at once.

        The answers say which replicas are gone, a disk having failed, or usable again. A note that
        cannot be written is not needed: whatever prevents it, a new session or a new controller,
        has every broker told its roles anew.
        """
        if self._broker is not None and self.store is not None:
            note = self._note_log_dir_failure(self.store, self._broker.broker_id)
            self._tasks.spawn(note, "note to the controller")

    def reconfigure_controller(self) -> None:
        """Have the controller module act by the settings of now."""
        if self.controller is not None:
            self.controller.reconfigure(self._config.controller())

    async def _note_log_dir_failure(self, store: Store, broker_id: int) -> None:
        with contextlib.suppress(SessionExpired):
            await store.note_log_dir_failure(broker_id)

    async def _close_predecessor(self, kept: tuple[int, bytes]) -> None:
        """An earlier process on this directory is dead (we hold its lock); end its session now."""
        try:
            session = await self._connect(
                self._config.session_timeout_ms, self._config.connection_timeout_ms, kept
            )
        except SessionExpired:
            return
        logger.info("closing the ZooKeeper session %#x of this broker's predecessor", kept[0])
        await session.close()

    async def _open_session(self) -> Store:
        session = await self._connect(
            self._config.session_timeout_ms, self._config.connection_timeout_ms
        )
        self._config.keep_session(session.session_id, session.password)
        self._session = session
        self._expired = asyncio.Event()
        expired = self._expired
        session.on_state(lambda state: expired.set() if state is State.EXPIRED else None)
        if session.state is State.EXPIRED:
            expired.set()
        self.store = Store(session, self._events)
        return self.store

    async def _register(self, previous_session_id: int) -> None:
        assert self.store is not None and self._broker is not None
        self.broker_epoch = await register_broker(
            self.store,
            self._broker,
            self._runtime.clock.wall_ms(),
            previous_session_id,
            # One session, and the server's own granularity: a dead predecessor is gone by then.
            wait_seconds=self._config.session_timeout_ms * 1.5 / 1000,
        )
        if self._broker.unbroken_since == UNBROKEN_SINCE_REGISTRATION:
            # Of the next session's registration too: this process has lost nothing since.
            self._broker = replace(self._broker, unbroken_since=self.broker_epoch)
        self.registered.set()
        self.controller = Controller(
            ControllerSetup(
                self._runtime,
                self.store.session,
                self._broker.broker_id,
                self._config.controller(),
                self._events,
                self._config.suspects,
                self._config.highest_epoch,
            )
        )
        await self.controller.start()

    async def _stop_controller(self) -> None:
        controller, self.controller = self.controller, None
        if controller is not None:
            await controller.stop()

    async def _rejoin_when_expired(self) -> None:
        while True:
            await self._expired.wait()
            why = self._session.end_cause if self._session else EXPIRED_AT_SERVER
            logger.warning("%s: this broker is no longer registered", why)
            self._events.record(EventKind.SESSION_LOST, why, broker_epoch=self.broker_epoch)
            previous = self._session.session_id if self._session else 0
            self.store = None
            await self._stop_controller()
            try:
                await self._config.on_session(await self._open_session_patiently())
                await self._register(previous)
                self._events.record(
                    EventKind.SESSION_REGAINED,
                    "it registered under a new session",
                    broker_epoch=self.broker_epoch,
                )
            except SessionExpired:
                self._expired.set()
            except OSError as error:  # the disk would not keep the session
                self._on_lost(f"cannot rejoin the cluster: {error}")
                return
            except Exception as error:
                logger.exception("cannot rejoin the cluster")
                self._on_lost(f"cannot rejoin the cluster: {error}")
                return

    async def _open_session_patiently(self) -> Store:
        while True:
            try:
                return await self._open_session()
            except ZooKeeperUnreachable as error:
                logger.warning("still without ZooKeeper: %s", error)
                await asyncio.sleep(0.5)
