"""The controller module of every broker; at most one in the cluster is active.

It lasts as long as one ZooKeeper session: the broker creates a new one for a new session. One task
does all work: it takes events from one queue and handles each completely before the next, so no
state needs a lock. Watches, timers and responses only enqueue events.

An event that fails unexpectedly may have done half of its work. The controller then resigns, and
the next failover reads everything from ZooKeeper again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog
from barnabas_common.messages.control import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from barnabas_common.messages.elections import ElectLeadersRequest, ElectLeadersResponse
from barnabas_common.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas_common.messages.topics import NewPartitions, TopicResult
from barnabas_common.runtime import Message, Runtime, TaskScope

from barnabas_controller.active_controller import ActiveController
from barnabas_controller.config import ControllerConfig
from barnabas_controller.controller_election import (
    ControllerZnode,
    current_controller,
    depose,
    elect,
    watch_epoch,
)
from barnabas_controller.controller_watch import ControllerWatch
from barnabas_controller.errors import ControllerEpochBehind, ControllerMoved, MalformedZnode
from barnabas_controller.failover import fail_over
from barnabas_controller.partitions.unconfirmed_states import NewestState, no_state
from barnabas_controller.store.fenced_store import FencedStore
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.session import Session, SessionExpired, State, WatchEvent

logger = logging.getLogger(__name__)

T = TypeVar("T")
Handler = Callable[[Any], Awaitable[Message]]

# The pause after an unexpected failure lets another broker be elected first. If every controller
# fails in the same way, the pause doubles up to the maximum. A term that lasts as long as the
# maximum resets it.
PAUSE_AFTER_FAILURE_SECONDS = 1.0
MAX_PAUSE_AFTER_FAILURE_SECONDS = 30.0
# The broker that deposed a controller and the deposed controller wait before they stand for
# election, because one of them may be isolated. The other brokers stand for election immediately.
PAUSE_AFTER_DEPOSING_SECONDS = 0.25
OVER = (State.EXPIRED, State.CLOSED)

# The requests that the active controller handles, with their responses.
REQUESTS: Mapping[type, tuple[type, Callable[[ActiveController], Handler]]] = {
    AlterPartitionRequest: (AlterPartitionResponse, lambda a: a.isr_changes.alter_partition),
    ControlledShutdownRequest: (ControlledShutdownResponse, lambda a: a.shutdown.shut_down),
    ElectLeadersRequest: (ElectLeadersResponse, lambda a: a.elections.elect_leaders),
    AlterPartitionReassignmentsRequest: (
        AlterPartitionReassignmentsResponse,
        lambda a: a.reassignment_requests.alter,
    ),
    ListPartitionReassignmentsRequest: (
        ListPartitionReassignmentsResponse,
        lambda a: a.reassignment_requests.ongoing,
    ),
}


# The answer to an administrator whose request was begun, and of which no more is known. If it were
# sent again, it could be refused because of what it has done.
UNKNOWN_OUTCOME = ErrorCode.NETWORK_EXCEPTION
_WHY_UNKNOWN = (
    "the controller's term ended before it had answered: the request may have been carried out"
)


@dataclass(frozen=True)
class ControllerSetup:
    """What a controller needs from its broker.

    `suspects` returns the brokers that the last known controller suspected, as broker epochs by
    broker id. `highest_epoch` returns the highest controller epoch whose requests this broker has
    accepted; `newest_state` the newest state of a partition that it was told of, of the topic with
    this id.
    """

    runtime: Runtime
    session: Session
    broker_id: int
    config: ControllerConfig = field(default_factory=ControllerConfig)
    events: EventLog = field(default_factory=EventLog)
    suspects: Callable[[], Mapping[int, int]] = dict
    highest_epoch: Callable[[], int] = lambda: 0
    newest_state: NewestState = no_state


@dataclass(frozen=True)
class _Event:
    """One event on the queue.

    `drop` is called last, whether or not the event was handled: it answers a caller that still
    waits.
    """

    name: str
    handle: Callable[[], Awaitable[None]]
    drop: Callable[[], None] = lambda: None


class Controller:
    """Takes part in controller elections; active from an election that it wins to its resignation.

    `active_controller_id` is the controller when this broker last read `/controller`, -1 if there
    was none.
    """

    def __init__(self, setup: ControllerSetup) -> None:
        self._setup = setup
        self._config = setup.config
        self._store = Store(setup.session, setup.events)
        self._queue: asyncio.Queue[_Event] = asyncio.Queue()
        self._scope = TaskScope(f"controller of broker {setup.broker_id}")
        self._watch = ControllerWatch(setup.runtime, setup.config, self._on_controller_suspected)
        self._active: ActiveController | None = None
        self._elected_at = 0.0
        self._highest_refused_by = 0
        self._pause = PAUSE_AFTER_FAILURE_SECONDS
        self.active_controller_id = -1

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, as far as it knows."""
        return self._active is not None and self._setup.session.state not in OVER

    @property
    def epoch(self) -> int:
        """The controller epoch of the present term, 0 while not active."""
        return self._active.term.fenced.epoch.number if self._active is not None else 0

    async def start(self) -> None:
        """Start taking part; returns immediately. The persistent paths must exist."""
        self._setup.session.on_state(self._on_session_state)
        self._enqueue("start", self._check_controller)
        self._scope.spawn(self._run(), "events")

    async def stop(self) -> None:
        """Stop taking part. `/controller` is deleted when the broker closes its session."""
        await self._scope.close()
        await self._end("the broker is stopping")

    def reconfigure(self, config: ControllerConfig) -> None:
        """Use these settings from now on; newly allowed unclean elections are held immediately."""
        allowed_before = self._config.unclean_leader_election_enable
        self._config = config
        if config.unclean_leader_election_enable and not allowed_before:
            self.unclean_elections_enabled(None)

    def unclean_elections_enabled(self, topic: str | None) -> None:
        """Hold unclean elections for partitions without a leader, of the topic or of all topics."""
        active = self._active
        if active is not None:
            where = "in the cluster" if topic is None else f"for topic {topic}"
            cause = f"unclean.leader.election.enable was set {where}"
            active.term.enqueue(cause, lambda: active.partitions.elect_where_missing(cause, topic))

    async def handle(self, request: Message) -> Message:
        """Handle a request listed in `REQUESTS`.

        The response is NOT_CONTROLLER unless this broker is active until the request is handled.
        A reassignment that was begun has an unknown outcome then.
        """
        response, handler = REQUESTS[type(request)]
        name = type(request).__name__.removesuffix("Request")
        refusal = unknown = response(error_code=ErrorCode.NOT_CONTROLLER)
        if isinstance(request, AlterPartitionReassignmentsRequest):
            unknown = AlterPartitionReassignmentsResponse(UNKNOWN_OUTCOME, _WHY_UNKNOWN)
        return await self._ask(name, lambda active: handler(active)(request), refusal, unknown)

    async def create_partitions(
        self, new: NewPartitions, validate_only: bool = False
    ) -> TopicResult:
        """Handle one topic of a CreatePartitions request, like a reassignment."""
        return await self._ask(
            f"CreatePartitions of {new.topic}",
            lambda active: active.growth.grow(new, validate_only),
            TopicResult(new.topic, ErrorCode.NOT_CONTROLLER),
            TopicResult(new.topic, UNKNOWN_OUTCOME, _WHY_UNKNOWN),
        )

    async def _ask(
        self,
        name: str,
        handle: Callable[[ActiveController], Awaitable[T]],
        refusal: T,
        unknown: T,
    ) -> T:
        """Enqueue a request and wait for its response: the refusal if no term handles it,
        `unknown` if one began to and ended."""
        if not self.is_active:
            return refusal
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        otherwise = refusal

        def drop() -> None:
            if not answer.done():
                answer.set_result(otherwise)

        async def run() -> None:
            nonlocal otherwise
            if self._active is not None:
                otherwise = unknown
                result = await handle(self._active)
                if not answer.done():
                    answer.set_result(result)

        self._enqueue(name, run, drop)
        return await answer

    # The queue

    def _enqueue(
        self,
        name: str,
        handle: Callable[[], Awaitable[None]],
        drop: Callable[[], None] = lambda: None,
    ) -> None:
        self._queue.put_nowait(_Event(name, handle, drop))

    def _enqueue_for(
        self, active: ActiveController, name: str, handle: Callable[[], Awaitable[None]]
    ) -> None:
        """Enqueue an event of one term, which is dropped if the term has ended before its turn."""

        async def run() -> None:
            if self._active is active:
                await handle()

        self._enqueue(name, run)

    async def _run(self) -> None:
        while self._setup.session.state not in OVER:
            await self._handle(await self._queue.get())
        await self._end("the ZooKeeper session is over")

    async def _handle(self, event: _Event) -> None:
        logger.debug("broker %d handles: %s", self._setup.broker_id, event.name)
        try:
            await event.handle()
        except ControllerMoved as error:
            await self._resign(str(error))
            self._enqueue("controller moved", self._check_controller)
        except ControllerEpochBehind as error:
            await self._raise_epoch(error)
        except SessionExpired:
            await self._resign("the ZooKeeper session has expired")
        except Exception as error:
            logger.exception("%s failed", event.name)
            await self._trigger_controller_move(f"{event.name} failed: {_described(error)}")
        finally:
            event.drop()

    async def _end(self, why: str) -> None:
        await self._watch.close()
        await self._resign(why)
        while not self._queue.empty():
            self._queue.get_nowait().drop()

    # Election

    def _watch_controller(self, _: WatchEvent) -> None:
        self._enqueue("/controller changed", self._check_controller)

    def _on_session_state(self, state: State) -> None:
        if state in OVER:
            self._enqueue("the session is over", self._do_nothing)

    async def _do_nothing(self) -> None:
        """Wake the loop of `_run`, which then sees that the session is over."""

    async def _check_controller(self) -> None:
        """Read `/controller`; stand for election if it does not exist."""
        current = await current_controller(self._store, self._watch_controller)
        previous = self.active_controller_id
        self.active_controller_id = -1 if current is None else current.broker_id
        mine = current is not None and current.session_id == self._setup.session.session_id
        if self._active is not None and not mine:
            await self._resign(f"broker {self.active_controller_id} is controller")
            if current is None:
                await asyncio.sleep(PAUSE_AFTER_DEPOSING_SECONDS)
        if current is None:
            await self._stand_for_election(previous)
        elif not mine:
            await self._watch.follow(self._store, current)
        elif self._active is None and not await depose(self._store, current):
            # An earlier term of this session ended with a failure; or this is an old state of a
            # ZooKeeper server that is behind.
            await asyncio.sleep(PAUSE_AFTER_DEPOSING_SECONDS)
            self._enqueue("/controller could not be deleted", self._check_controller)

    def _on_controller_suspected(self, controller_znode: ControllerZnode, why: str) -> None:
        async def handle() -> None:
            await self._depose(controller_znode, why)

        self._enqueue(f"controller {controller_znode.broker_id} is suspected", handle)

    async def _depose(self, controller_znode: ControllerZnode, why: str) -> None:
        """Delete `/controller`; the watch on it then triggers an election."""
        if await depose(self._store, controller_znode):
            broker_id = controller_znode.broker_id
            self._setup.events.record(
                EventKind.CONTROLLER_DEPOSED,
                f"controller {broker_id} is suspected to be dead: {why}",
                broker=broker_id,
            )
            await asyncio.sleep(PAUSE_AFTER_DEPOSING_SECONDS)

    async def _stand_for_election(self, previous: int) -> None:
        """Try to become controller; `previous` is the last known controller, or -1."""
        setup = self._setup
        now = setup.runtime.clock.wall_ms()
        highest = max(setup.highest_epoch(), self._highest_refused_by)
        try:
            epoch = await elect(self._store, setup.broker_id, now, highest)
        except MalformedZnode as error:
            await self._wait_for_epoch(error)
            return
        self.active_controller_id = setup.broker_id
        self._elected_at = setup.runtime.clock.monotonic()
        self._active = ActiveController(
            setup.broker_id,
            setup.runtime,
            lambda: self._config,
            FencedStore(self._store, epoch),
            setup.events,
            self._enqueue_for,
            setup.newest_state,
        )
        why = "there was no /controller"
        if previous >= 0:
            why += f": that of broker {previous}, the previous controller, was deleted"
        setup.events.record(
            EventKind.CONTROLLER_ELECTED, why, epoch=epoch.number, previous=previous
        )
        observation = self._watch.observation
        await self._watch.close()
        try:
            await fail_over(self._active, observation, setup.suspects())
        except Exception as error:
            error.add_note("while it took charge of the cluster")
            raise

    async def _wait_for_epoch(self, error: MalformedZnode) -> None:
        """No election is possible before an operator repairs `/controller_epoch`."""
        self._store.report(error)
        if await watch_epoch(self._store, self._watch_controller):
            self._enqueue("/controller_epoch was repaired", self._check_controller)

    async def _resign(self, why: str) -> None:
        """End the term; nothing is written."""
        active, self._active = self._active, None
        if active is not None:
            epoch = active.term.fenced.epoch.number
            self._setup.events.record(EventKind.CONTROLLER_RESIGNED, why, epoch=epoch)
            try:
                await active.close()
            except Exception:  # the next term creates its own parts
                logger.exception("closing the term of epoch %d", epoch)

    async def _raise_epoch(self, error: ControllerEpochBehind) -> None:
        """Hold a new election, because brokers have accepted a higher epoch than this one.

        If another controller has been elected meanwhile, this one only resigns.
        """
        active = self._active
        assert active is not None
        self._highest_refused_by = max(self._highest_refused_by, error.epoch)
        await self._resign(str(error))
        try:
            await active.term.fenced.delete_controller()
        except ControllerMoved:
            logger.info("another controller has been elected already")
        except SessionExpired:  # the end of the session deletes /controller
            return
        except Exception:  # the next check deletes it
            logger.exception("/controller could not be deleted")
        else:
            self._setup.events.record(
                EventKind.EPOCH_RAISED,
                f"{error}: a new election raises it",
                controller_epoch=active.term.fenced.epoch.number,
                highest=error.epoch,
            )
        self._enqueue("the epoch is raised", self._check_controller)

    async def _trigger_controller_move(self, why: str) -> None:
        """Resign, delete `/controller`, and wait before the next election."""
        active, pause = self._active, self._next_pause()
        await self._resign(why)
        self._setup.events.record(EventKind.CONTROLLER_STANDS_ASIDE, why, seconds=pause)
        try:
            if active is not None:
                await active.term.fenced.delete_controller()
        except ControllerMoved:
            logger.info("another controller has been elected already")
        except Exception:  # the end of the session will delete /controller
            logger.exception("/controller could not be deleted")
        await asyncio.sleep(pause)
        self._enqueue("after a failure", self._check_controller)

    def _next_pause(self) -> float:
        """How long to wait after this failure, in seconds."""
        term_seconds = self._setup.runtime.clock.monotonic() - self._elected_at
        if self._active is not None and term_seconds >= MAX_PAUSE_AFTER_FAILURE_SECONDS:
            self._pause = PAUSE_AFTER_FAILURE_SECONDS
        pause = self._pause
        self._pause = min(2 * pause, MAX_PAUSE_AFTER_FAILURE_SECONDS)
        return pause


def _described(error: Exception) -> str:
    """For humans: the error, and the notes that say during which work it was raised."""
    return ", ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
