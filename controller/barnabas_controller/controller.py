"""The controller module of every broker; at most one of the cluster's is active.

Its life is one ZooKeeper session: the broker makes a new one for a new session. All work is done by
one task that takes events from one queue, one at a time and each to its end, so no state needs a
lock. Watches, timers and answers only enqueue.

An event that fails for a reason nobody foresaw may have left its work half done. Then the reign is
given up and the cluster elects anew: a failover reads everything from ZooKeeper and starts clean.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from barnabas.error_code import ErrorCode
from barnabas.events import EventKind, EventLog
from barnabas.messages.control import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from barnabas.messages.elections import ElectLeadersRequest, ElectLeadersResponse
from barnabas.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas.messages.topics import NewPartitions, TopicResult
from barnabas.runtime import Runtime, TaskScope

from barnabas_controller import znodes
from barnabas_controller.active_controller import ActiveController
from barnabas_controller.config import ControllerConfig
from barnabas_controller.controller_election import (
    Incumbent,
    current_controller,
    depose,
    elect,
    watch_epoch,
)
from barnabas_controller.controller_watch import ControllerWatch
from barnabas_controller.errors import ControllerMoved, MalformedZnode
from barnabas_controller.failover import fail_over
from barnabas_controller.fenced_store import FencedStore
from barnabas_controller.store import Store
from barnabas_controller.zookeeper.session import Session, SessionExpired, State, WatchEvent

logger = logging.getLogger(__name__)

T = TypeVar("T")

# After giving up a reign, so that another broker comes first. A fault that every controller meets
# would have the cluster elect without end: so the pause doubles, up to the second number, until a
# reign has lasted that long.
PAUSE_AFTER_FAILURE_SECONDS = 1.0
MAX_PAUSE_AFTER_FAILURE_SECONDS = 30.0
# Who deposed a controller and who was deposed stand last: one of them may be cut off from the
# others, and these can rule.
PAUSE_AFTER_DEPOSING_SECONDS = 0.25
OVER = (State.EXPIRED, State.CLOSED)


@dataclass(frozen=True)
class ControllerSetup:
    """What a controller needs of its broker.

    `suspects` are those of the last controller this broker heard of, by id with the broker epoch;
    `highest_epoch` is the highest controller epoch it has obeyed.
    """

    runtime: Runtime
    session: Session
    broker_id: int
    config: ControllerConfig = field(default_factory=ControllerConfig)
    events: EventLog = field(default_factory=EventLog)
    suspects: Callable[[], Mapping[int, int]] = dict
    highest_epoch: Callable[[], int] = lambda: 0


def _nothing() -> None:
    return


@dataclass(frozen=True)
class _Event:
    """`drop` is called in the end in any case: it answers whoever still waits."""

    name: str
    handle: Callable[[], Awaitable[None]]
    drop: Callable[[], None] = _nothing


class Controller:
    """Takes part in the election, and rules while it has won."""

    def __init__(self, setup: ControllerSetup) -> None:
        self._setup = setup
        self._config = setup.config
        self._store = Store(setup.session, setup.events)
        self._queue: asyncio.Queue[_Event] = asyncio.Queue()
        self._scope = TaskScope(f"controller of broker {setup.broker_id}")
        self._watch = ControllerWatch(setup.runtime, setup.config, self._on_controller_dead)
        self._active: ActiveController | None = None
        self._elected_at = 0.0
        self._pause = PAUSE_AFTER_FAILURE_SECONDS
        self.active_controller_id = -1

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller now, as far as it can know."""
        return self._active is not None and self._setup.session.state not in OVER

    @property
    def epoch(self) -> int:
        """The controller epoch of this reign, 0 while not active."""
        return self._active.reign.store.epoch.number if self._active is not None else 0

    async def start(self) -> None:
        """Begin to take part; returns at once. The persistent paths must exist."""
        self._setup.session.on_state(self._on_session_state)
        self._enqueue(_Event("start", self._check_controller))
        self._scope.spawn(self._run(), "events")

    async def stop(self) -> None:
        """Take no further part. `/controller` vanishes when the broker closes its session."""
        await self._scope.close()
        await self._watch.close()
        await self._resign("the broker is stopping")
        self._drop_events()

    def reconfigure(self, config: ControllerConfig) -> None:
        """Act by other settings from now on."""
        allowed_before = self._config.unclean_leader_election_enable
        self._config = config
        if config.unclean_leader_election_enable and not allowed_before:
            self.unclean_elections_enabled(None)

    def unclean_elections_enabled(self, topic: str | None) -> None:
        """Leaderless partitions of the topic, or of all topics, may have an unclean leader now."""
        active = self._active
        if active is not None:
            where = "in the cluster" if topic is None else f"for topic {topic}"
            cause = f"unclean.leader.election.enable was set {where}"
            self._enqueue_for(
                active, cause, lambda: active.partitions.elect_where_missing(cause, topic)
            )

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Judge a leader's ISR change in its turn; NOT_CONTROLLER when not active."""
        return await self._ask(
            f"AlterPartition of broker {request.broker_id}",
            lambda active: active.isr_changes.alter_partition(request),
            AlterPartitionResponse(ErrorCode.NOT_CONTROLLER),
        )

    async def controlled_shutdown(
        self, request: ControlledShutdownRequest
    ) -> ControlledShutdownResponse:
        """Move a stopping broker's leaderships in its turn; NOT_CONTROLLER when not active."""
        return await self._ask(
            f"ControlledShutdown of broker {request.broker_id}",
            lambda active: active.shutdown.shut_down(request),
            ControlledShutdownResponse(ErrorCode.NOT_CONTROLLER),
        )

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """Hold elections in their turn; NOT_CONTROLLER when not active."""
        return await self._ask(
            f"ElectLeaders ({request.election_type})",
            lambda active: active.elections.elect_leaders(request),
            ElectLeadersResponse(ErrorCode.NOT_CONTROLLER),
        )

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """Begin or cancel reassignments in their turn; NOT_CONTROLLER when not active."""
        return await self._ask(
            "AlterPartitionReassignments",
            lambda active: active.reassignment_requests.alter(request),
            AlterPartitionReassignmentsResponse(ErrorCode.NOT_CONTROLLER),
        )

    async def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        """What is under way; NOT_CONTROLLER when not active."""
        return await self._ask(
            "ListPartitionReassignments",
            lambda active: active.reassignment_requests.ongoing(request),
            ListPartitionReassignmentsResponse(ErrorCode.NOT_CONTROLLER),
        )

    async def create_partitions(
        self, new: NewPartitions, validate_only: bool = False
    ) -> TopicResult:
        """Add partitions to a topic in its turn; NOT_CONTROLLER when not active."""
        return await self._ask(
            f"CreatePartitions of {new.topic}",
            lambda active: active.growth.grow(new, validate_only),
            TopicResult(new.topic, ErrorCode.NOT_CONTROLLER),
        )

    async def _ask(
        self, name: str, handle: Callable[[ActiveController], Awaitable[T]], refusal: T
    ) -> T:
        """Put a request on the queue and wait for its answer, or for the refusal."""
        if not self.is_active:
            return refusal
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def drop() -> None:
            if not answer.done():
                answer.set_result(refusal)

        async def run() -> None:
            if self._active is not None:
                result = await handle(self._active)
                if not answer.done():
                    answer.set_result(result)

        self._enqueue(_Event(name, run, drop))
        return await answer

    # The queue

    def _enqueue(self, event: _Event) -> None:
        self._queue.put_nowait(event)

    def _enqueue_for(
        self, active: ActiveController, name: str, handle: Callable[[], Awaitable[None]]
    ) -> None:
        async def run() -> None:
            if self._active is active:
                await handle()

        self._enqueue(_Event(name, run))

    def _drop_events(self) -> None:
        while not self._queue.empty():
            self._queue.get_nowait().drop()

    async def _run(self) -> None:
        while self._setup.session.state not in OVER:
            await self._handle(await self._queue.get())
        await self._watch.close()
        await self._resign("the ZooKeeper session is over")
        self._drop_events()

    async def _handle(self, event: _Event) -> None:
        logger.debug("broker %d handles: %s", self._setup.broker_id, event.name)
        try:
            await event.handle()
        except ControllerMoved as error:
            await self._resign(str(error))
            self._enqueue(_Event("controller moved", self._check_controller))
        except SessionExpired:
            await self._resign("the ZooKeeper session has expired")
        except Exception as error:
            logger.exception("%s failed", event.name)
            await self._abdicate(f"{event.name} failed: {_described(error)}")
        finally:
            event.drop()

    # Election

    def _watch_controller(self, _: WatchEvent) -> None:
        self._enqueue(_Event("/controller changed", self._check_controller))

    def _on_session_state(self, state: State) -> None:
        if state in OVER:
            self._enqueue(_Event("the session is over", self._nothing_more))

    async def _nothing_more(self) -> None:
        """Wakes the loop, which then sees that the session is over."""

    async def _check_controller(self) -> None:
        """Look who is controller; stand for election if nobody is."""
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
        elif self._active is None:  # an earlier reign of this session ended badly
            await self._store.remove(znodes.CONTROLLER)

    def _on_controller_dead(self, incumbent: Incumbent, why: str) -> None:
        async def handle() -> None:
            await self._depose(incumbent, why)

        self._enqueue(_Event(f"controller {incumbent.broker_id} seems to be dead", handle))

    async def _depose(self, incumbent: Incumbent, why: str) -> None:
        """What follows is an election, as `/controller` is watched."""
        cause = f"controller {incumbent.broker_id} is suspected to be dead: {why}"
        logger.warning("%s", cause)
        if await depose(self._store, incumbent):
            self._setup.events.record(
                EventKind.CONTROLLER_DEPOSED, cause, broker=incumbent.broker_id
            )
            await asyncio.sleep(PAUSE_AFTER_DEPOSING_SECONDS)

    async def _stand_for_election(self, previous: int) -> None:
        """`previous`: who was controller when this broker last looked; -1: nobody was."""
        setup = self._setup
        now, obeyed = setup.runtime.clock.wall_ms(), setup.highest_epoch()
        try:
            epoch = await elect(self._store, setup.broker_id, now, obeyed)
        except MalformedZnode as error:
            await self._wait_for_epoch(error)
            return
        logger.info("broker %d is controller, epoch %d", setup.broker_id, epoch.number)
        self.active_controller_id = setup.broker_id
        self._elected_at = setup.runtime.clock.monotonic()
        self._active = ActiveController(
            setup.broker_id,
            setup.runtime,
            lambda: self._config,
            FencedStore(self._store, epoch),
            setup.events,
            self._enqueue_for,
        )
        why = "there was no /controller"
        if previous >= 0:
            why += f": that of broker {previous}, controller before, has vanished"
        setup.events.record(
            EventKind.CONTROLLER_ELECTED, why, epoch=epoch.number, previous=previous
        )
        predecessor = self._watch.testimony
        await self._watch.close()
        try:
            await fail_over(self._active, predecessor, setup.suspects())
        except Exception as error:
            error.add_note("while it took charge of the cluster")
            raise

    async def _wait_for_epoch(self, error: MalformedZnode) -> None:
        """No election is possible before somebody mends `/controller_epoch`."""
        self._store.report(error)
        if await watch_epoch(self._store, self._watch_controller):
            self._enqueue(_Event("/controller_epoch is mended", self._check_controller))

    async def _resign(self, why: str) -> None:
        """Stop ruling; nothing is written."""
        active, self._active = self._active, None
        if active is not None:
            epoch = active.reign.store.epoch.number
            logger.warning("broker %d resigns, epoch %d: %s", self._setup.broker_id, epoch, why)
            self._setup.events.record(EventKind.CONTROLLER_RESIGNED, why, epoch=epoch)
            await active.close()

    async def _abdicate(self, why: str) -> None:
        """Stop ruling and let the brokers elect anew; stand aside for a while."""
        active, pause = self._active, self._next_pause()
        await self._resign(why)
        self._setup.events.record(EventKind.CONTROLLER_STANDS_ASIDE, why, seconds=pause)
        try:
            if active is not None:
                await active.reign.store.abdicate()
        except ControllerMoved:
            logger.info("another controller has been elected already")
        except Exception:  # the session's end will remove /controller
            logger.exception("/controller could not be deleted")
        await asyncio.sleep(pause)
        self._enqueue(_Event("after a failure", self._check_controller))

    def _next_pause(self) -> float:
        """How long to stand aside this time, in seconds."""
        reigned = self._setup.runtime.clock.monotonic() - self._elected_at
        if self._active is not None and reigned >= MAX_PAUSE_AFTER_FAILURE_SECONDS:
            self._pause = PAUSE_AFTER_FAILURE_SECONDS
        pause = self._pause
        self._pause = min(2 * pause, MAX_PAUSE_AFTER_FAILURE_SECONDS)
        return pause


def _described(error: Exception) -> str:
    """For people: what went wrong, and in what."""
    return ", ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
