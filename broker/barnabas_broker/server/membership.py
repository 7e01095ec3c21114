"""A broker's membership in the cluster: its ZooKeeper session, registration and controller.

The three start and end together. When the session expires, the controller is stopped first because
it must not act any more. Then a new session is opened, the broker registers under a new broker
epoch, and a new controller takes part in the election.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from barnabas_common.events import EventKind, EventLog
from barnabas_common.runtime import Runtime, TaskScope
from barnabas_controller.brokers.registration import (
    ensure_cluster_id,
    register_broker,
    reregister,
)
from barnabas_controller.config import ControllerConfig
from barnabas_controller.controller import Controller, ControllerSetup
from barnabas_controller.errors import DuplicateBrokerId
from barnabas_controller.partitions.unconfirmed_states import NewestState, no_state
from barnabas_controller.store import znodes
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import (
    AHEAD_SINCE_REGISTRATION,
    UNBROKEN_SINCE_REGISTRATION,
)
from barnabas_controller.zookeeper.session import (
    EXPIRED_AT_SERVER,
    Connect,
    Session,
    SessionExpired,
    State,
    ZooKeeperError,
    ZooKeeperUnreachable,
)

from barnabas_broker.disk.disk import is_out_of_descriptors
from barnabas_broker.server.zookeeper_outage import ZooKeeperOutage

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class MembershipConfig:
    """`keep_session(id, password)` stores the session so that the next process can close it.

    `on_session` is awaited with every new session, before the broker registers in it. `suspects`
    returns the broker epochs of the brokers that the controller suspects, by id. `highest_epoch`
    returns the highest controller epoch whose requests this broker has accepted, `newest_state`
    the newest state of a partition that it was told of.
    """

    session_timeout_ms: int
    connection_timeout_ms: int
    controller: Callable[[], ControllerConfig]
    keep_session: Callable[[int, bytes], None]
    on_session: Callable[[Store], Awaitable[None]]
    highest_epoch: Callable[[], int]
    suspects: Callable[[], Mapping[int, int]] = dict
    newest_state: NewestState = no_state


class Membership:
    """Joins the cluster and stays in it until `leave`.

    `broker_epoch` is -1 until `registered` is set. `on_lost` is called with the reason if the
    membership cannot be regained, for example because another broker uses the id.
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
        self._rejoining = TaskScope("rejoining")
        self._last_zxid = 0
        self._outage = ZooKeeperOutage(runtime.clock, events, config.session_timeout_ms / 1000)
        self.store: Store | None = None
        self.controller: Controller | None = None
        self.broker_epoch = -1
        self._given_up_epoch = -1
        self.registered = asyncio.Event()
        self._registration_changed = asyncio.Event()

    async def connect(self, predecessors: Sequence[tuple[int, bytes]]) -> str:
        """Open a session, after closing those of previous processes; return the cluster id."""
        for predecessor in predecessors:
            await self._close_predecessor(predecessor)
        store = await self._open_session()
        await store.create_persistent_paths()
        await self._config.on_session(store)
        return await ensure_cluster_id(store, self._runtime.randomness)

    async def join(self, broker: znodes.Broker) -> None:
        """Register and start the controller; raises DuplicateBrokerId, EndpointTaken."""
        self._broker = broker
        await self._register(previous_session_id=0)
        self._rejoining.spawn(self._rejoin_when_expired(), "rejoin")

    @property
    def unbroken_since(self) -> int:
        """The broker epoch since which this broker's logs have lost nothing, once registered."""
        return self._broker.unbroken_since if self._broker is not None else -1

    @property
    def ahead_since(self) -> int | None:
        """Since which broker epoch this broker's logs are newer than a restored ZooKeeper."""
        return self._broker.ahead_since if self._broker is not None else None

    async def cut_off(self) -> None:
        """Wait until ZooKeeper has not served this broker for a session timeout, or is behind."""
        await self._outage.is_reported.wait()

    async def stay_out(self) -> None:
        """Do not rejoin if the session ends from now on: this broker shuts down."""
        await self._rejoining.close()

    async def leave(self) -> None:
        """Stop the controller and close the session, which removes the registration."""
        await self.stay_out()
        await self._tasks.close()
        await self._stop_controller()
        if self._session is not None:
            await self._session.close()
        self.store = None

    def reregister(self, broker_epoch: int, why: str) -> None:
        """Register again if `broker_epoch` is still the present one; returns immediately."""
        if broker_epoch == self.broker_epoch != self._given_up_epoch and self.store is not None:
            self._given_up_epoch = broker_epoch
            self._tasks.spawn(self._reregister(self.store, why), "register again")

    def reregister_after_loss(self, why: str) -> None:
        """Register again as a broker whose logs have lost something; returns immediately."""
        if self._broker is not None:
            self._broker = replace(self._broker, unbroken_since=UNBROKEN_SINCE_REGISTRATION)
            self.reregister(self.broker_epoch, why)

    async def _reregister(self, store: Store, why: str) -> None:
        assert self._broker is not None
        broker = self._broker
        try:
            epoch = await reregister(store, broker, self._runtime.clock.wall_ms())
        except SessionExpired:
            return  # the new session will bring a new registration
        except DuplicateBrokerId as error:
            self._on_lost(f"cannot register again: {error}")
            return
        if store is self.store:
            self.broker_epoch = epoch
            self._events.record(EventKind.REGISTERED_ANEW, why, broker_epoch=epoch)
            self._count_as_unbroken(broker)

    async def _keep_registered(self, store: Store) -> None:
        """Register again when the broker's znode is deleted although its session exists.

        ZooKeeper itself deletes it only with the session, but an operator may delete it too. A
        broker that did not notice would not take part in the cluster until its restart.
        """
        assert self._broker is not None
        path = znodes.broker_path(self._broker.broker_id)
        with contextlib.suppress(SessionExpired):
            while store is self.store:
                changed = self._registration_changed = asyncio.Event()
                if await store.exists(path, lambda _: self._registration_changed.set()) is None:
                    await store.create_persistent_paths()
                    await self._reregister(store, f"{path} was deleted while its session lives")
                else:
                    await changed.wait()

    async def topic_id(self, topic: str) -> str | None:
        """The id of a topic in ZooKeeper; None if there is none, or no session to read it with."""
        with contextlib.suppress(ZooKeeperError):
            found = None if self.store is None else await self.store.topic(topic)
            return None if found is None else found.topic_id
        return None

    def ask_for_roles(self) -> None:
        """Have the controller send this broker all its roles again; returns immediately.

        The broker's answers then show which replicas have failed with a disk, or are usable again.
        If the notification cannot be written it is not needed: the new session that follows makes
        the controller send all roles too.
        """
        if self._broker is not None and self.store is not None:
            notification = self._propagate_log_dir_event(self.store, self._broker.broker_id)
            self._tasks.spawn(notification, "log dir event")

    def reconfigure_controller(self) -> None:
        """Apply the present settings to the controller of this broker."""
        if self.controller is not None:
            self.controller.reconfigure(self._config.controller())

    async def _propagate_log_dir_event(self, store: Store, broker_id: int) -> None:
        with contextlib.suppress(SessionExpired):
            await store.propagate_log_dir_event(broker_id)

    async def _close_predecessor(self, kept: tuple[int, bytes]) -> None:
        """Close the session of a previous process, which has ended: this one has its lock."""
        try:
            session = await self._connect(
                self._config.session_timeout_ms, self._config.connection_timeout_ms, kept
            )
        except SessionExpired:
            return
        logger.info("closing the ZooKeeper session %#x of a previous process", kept[0])
        await session.close()

    async def _open_session(self) -> Store:
        session = await self._connect(
            self._config.session_timeout_ms,
            self._config.connection_timeout_ms,
            last_zxid=self._last_zxid,
        )
        try:
            self._config.keep_session(session.session_id, session.password)
        except OSError:
            await session.close()
            raise
        self._tasks.spawn(self._outage.watch(session), "ZooKeeper outage")
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
        broker = self._broker
        self.broker_epoch = await register_broker(
            self.store,
            broker,
            self._runtime.clock.wall_ms(),
            previous_session_id,
            # A session timeout and ZooKeeper's granularity: by then the session of a killed process
            # has expired.
            wait_seconds=self._config.session_timeout_ms * 1.5 / 1000,
        )
        if broker.unbroken_since > self.broker_epoch:
            broker = await self._forget_history()
        self._count_as_unbroken(broker)
        if self._broker.ahead_since == AHEAD_SINCE_REGISTRATION:
            self._broker = replace(self._broker, ahead_since=self.broker_epoch)
        if self._broker.running_since is None:
            self._broker = replace(self._broker, running_since=self.broker_epoch)
        self.registered.set()
        self._tasks.spawn(self._keep_registered(self.store), "keep registered")
        self.controller = Controller(
            ControllerSetup(
                self._runtime,
                self.store.session,
                self._broker.broker_id,
                self._config.controller(),
                self._events,
                self._config.suspects,
                self._config.highest_epoch,
                self._config.newest_state,
            )
        )
        await self.controller.start()

    def _count_as_unbroken(self, registered: znodes.Broker) -> None:
        """Let later registrations name this broker epoch: nothing was lost since it began.

        What was lost while `registered` was on its way to ZooKeeper is not in it: register again.
        """
        assert self._broker is not None
        if self._broker.unbroken_since != UNBROKEN_SINCE_REGISTRATION:
            return
        if self._broker is registered:
            self._broker = replace(self._broker, unbroken_since=self.broker_epoch)
        else:
            self.reregister(self.broker_epoch, "something was lost here while it registered")

    async def _forget_history(self) -> znodes.Broker:
        """Register again as a broker that may have lost something since it last registered.

        Broker epochs only grow, so the history was written under another one: ZooKeeper has been
        restored from an older copy, and its numbers cannot be compared with the earlier ones.
        """
        assert self.store is not None and self._broker is not None
        why = (
            f"nothing was lost since broker epoch {self._broker.unbroken_since}, but it is only"
            f" {self.broker_epoch} now: ZooKeeper was restored from an older copy"
        )
        broker = replace(self._broker, unbroken_since=UNBROKEN_SINCE_REGISTRATION)
        self._broker = broker
        self.broker_epoch = await reregister(self.store, broker, self._runtime.clock.wall_ms())
        self._events.record(EventKind.REGISTERED_ANEW, why, broker_epoch=self.broker_epoch)
        return broker

    async def _stop_controller(self) -> None:
        controller, self.controller = self.controller, None
        if controller is not None:
            await controller.stop()

    async def _rejoin_when_expired(self) -> None:
        while True:
            await self._expired.wait()
            why = self._session.end_cause if self._session else EXPIRED_AT_SERVER
            self._events.record(EventKind.SESSION_LOST, why, broker_epoch=self.broker_epoch)
            previous = self._session.session_id if self._session else 0
            if self._session is not None:
                self._last_zxid = max(self._last_zxid, self._session.last_zxid)
            self.store = None
            self._registration_changed.set()  # ends the watch of the lost session
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
            except OSError as error:  # the session could not be stored on disk
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
                self._outage.failed(error)
            except OSError as error:
                if not is_out_of_descriptors(error):
                    raise
                logger.warning("cannot rejoin the cluster yet: %s", error)
            await asyncio.sleep(0.5)
