"""A whole cluster in one process on virtual time: brokers, controller, ZooKeeper, clients.

The brokers and the client run unchanged: they get a virtual clock, a memory network, a memory disk
each and a memory ZooKeeper behind the same seams as the real ones. One seed is one exact run, which
`Trace` can prove.

    async def scenario() -> None:
        cluster = SimulatedCluster(seed=7)
        await cluster.start()
        async with Producer(cluster.bootstrap, runtime=cluster.client_runtime("p")) as producer:
            ...
        cluster.kill(1)

    run(scenario(), seed=7)
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace

from barnabas_broker.config import Config
from barnabas_broker.replica.partition.partition import Partition
from barnabas_broker.server.broker import Broker, World
from barnabas_common.events import Event, EventKind, EventLog, in_order
from barnabas_common.events.event_text import in_words
from barnabas_common.runtime import (
    Address,
    Handler,
    Listen,
    Listener,
    Message,
    Pauses,
    Peer,
    Runtime,
    Service,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.disk import MemoryDisk
from barnabas_simulator.loop import NODE, VirtualClock, VirtualLoop
from barnabas_simulator.network import MemoryNetwork
from barnabas_simulator.offload import VirtualOffload
from barnabas_simulator.pauses import MemoryPauseControl
from barnabas_simulator.zookeeper import MemoryClient, MemoryZooKeeper
from barnabas_simulator.zookeeper.session import MemorySession

CLIENT_PORT = 9092
INTERNAL_PORT = 19092

OBSERVED = (Service.CONTROL, Service.COORDINATOR, Service.REPLICA)

Observer = Callable[[Broker, Message], Callable[[Message | None], None]]
"""Of one service's requests: called with the receiving broker and the request; what it returns is
called with the answer."""


class BrokerFailed(Exception):
    """A broker could not continue; its process ends, as the real one does."""


@dataclass
class _Incarnation:
    """One process of a broker, from its start to its end."""

    name: str
    zookeeper: MemoryClient
    task: asyncio.Task[None]
    broker: Broker | None = None
    paused: bool = False
    serving: asyncio.Event = field(default_factory=asyncio.Event)


class SimulatedCluster:
    """Brokers 1 to `brokers`; `config` is added to every broker's settings."""

    def __init__(
        self, seed: int = 0, brokers: int = 3, config: Mapping[str, str] | None = None
    ) -> None:
        self.broker_ids = list(range(1, brokers + 1))
        self.clock = VirtualClock()
        self.network = MemoryNetwork(seed)
        self.pauses = MemoryPauseControl()
        self.zookeeper = MemoryZooKeeper(wall_ms=self.clock.wall_ms)
        self._random = random.Random(seed)
        self.clocks = {broker_id: VirtualClock() for broker_id in self.broker_ids}
        self.disks = {
            broker_id: MemoryDisk(self._random.getrandbits(32), clock.wall_ms)
            for broker_id, clock in self.clocks.items()
        }
        self._config = dict(config or {})
        self._incarnations: dict[int, _Incarnation] = {}
        self._stopping: list[_Incarnation] = []
        self._dark: dict[int, str] = {}  # the last incarnations of brokers that lost power
        self._started_count = 0
        self.exits: list[tuple[int, str]] = []
        """Brokers whose process ended by itself, and why."""
        self.damage: list[tuple[TopicPartition, range]] = []
        """Partitions and offsets of the batches of which some replica had a changed bit."""
        self.observers: dict[Service, Observer] = {}
        self.event_logs: dict[str, EventLog] = {}
        """The events that each incarnation of each broker has recorded, ended ones included."""
        # By incarnation: the event after which its clock became wrong, and by how many ms.
        self._skews: dict[str, list[tuple[int, int]]] = {}
        self.most_skew_ms = 0
        """How wrong any broker's clock was at most."""

    @property
    def bootstrap(self) -> str:
        """The brokers' client addresses."""
        return self.bootstrap_of(self.broker_ids)

    @staticmethod
    def bootstrap_of(broker_ids: Iterable[int]) -> str:
        """The client addresses of some brokers."""
        return ",".join(f"broker-{broker_id}:{CLIENT_PORT}" for broker_id in broker_ids)

    def client_runtime(self, name: str) -> Runtime:
        """Return the runtime for a `Producer`, a `Consumer` or an `Admin`."""
        return self._runtime(name, self.clock)

    async def start(self) -> None:
        """Start every broker, and wait until all serve."""
        for broker_id in self.broker_ids:
            self.start_broker(broker_id)
        await self.serving()

    async def serving(self) -> None:
        """Wait until every started broker serves; raises the error of one that cannot start."""
        for incarnation in list(self._incarnations.values()):
            waiting = asyncio.ensure_future(incarnation.serving.wait())
            incarnation.task.add_done_callback(lambda _, waiting=waiting: waiting.cancel())  # type: ignore[misc]
            try:
                await waiting
            except asyncio.CancelledError:
                incarnation.task.result()
                raise

    def start_broker(self, broker_id: int) -> None:
        """Start a broker's process on its disk; returns immediately."""
        if broker_id in self._dark:
            self.network.regain_power(self._dark.pop(broker_id))
        self._started_count += 1
        name = f"broker-{broker_id}/{self._started_count}"
        zookeeper = self.zookeeper.client(name)
        context = copy_context()
        context.run(NODE.set, name)
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._run(broker_id), name=name, context=context)
        incarnation = self._incarnations[broker_id] = _Incarnation(name, zookeeper, task)
        task.add_done_callback(lambda _: self._exited(broker_id, incarnation), context=Context())

    def kill(self, broker_id: int, keep_unflushed: bool = True) -> None:
        """kill -9; with `keep_unflushed=False` a power loss: what was not flushed is lost."""
        self._end(broker_id, self._incarnations.pop(broker_id), keep_unflushed)

    def _end(
        self,
        broker_id: int,
        incarnation: _Incarnation,
        keep_unflushed: bool,
        silently: bool = False,
    ) -> None:
        """End a process, and all that belonged to it."""
        _loop().kill_node(incarnation.name)
        if silently:
            self.network.lose_power(incarnation.name)
        else:
            self.network.kill(incarnation.name)
        incarnation.zookeeper.crash()
        self.disks[broker_id].crash(keep_unflushed=keep_unflushed)
        self.pauses.died(broker_id)

    def lose_power(self, broker_id: int) -> None:
        """Lose what was not flushed, and stop the whole machine without notice.

        Until it is started again it neither refuses nor resets connections.
        """
        incarnation = self._incarnations.pop(broker_id)
        self._dark[broker_id] = incarnation.name
        self._end(broker_id, incarnation, keep_unflushed=False, silently=True)

    def _exited(self, broker_id: int, incarnation: _Incarnation) -> None:
        """Record that a process ended by itself: it could not start, or could not continue."""
        if self._incarnations.get(broker_id) is incarnation:
            error = None if incarnation.task.cancelled() else incarnation.task.exception()
            self.exits.append((broker_id, str(error)))
            self.kill(broker_id)

    def pause(self, broker_id: int) -> None:
        """SIGSTOP: the process does nothing, its connections stay open, its heartbeats stop."""
        incarnation = self._incarnations[broker_id]
        incarnation.paused = True
        _loop().pause_node(incarnation.name)
        incarnation.zookeeper.fall_silent()

    def resume(self, broker_id: int) -> None:
        """SIGCONT."""
        incarnation = self._incarnations[broker_id]
        incarnation.paused = False
        _loop().resume_node(incarnation.name)
        incarnation.zookeeper.speak_again()

    def is_paused(self, broker_id: int) -> bool:
        return self._incarnations[broker_id].paused

    def incarnation(self, broker_id: int) -> str:
        """Return the name of a running broker's process, unique among all incarnations."""
        return self._incarnations[broker_id].name

    def host(self, broker_id: int) -> str:
        """Return a broker's machine, as the network's faults name it."""
        return f"broker-{broker_id}"

    @property
    def running_brokers(self) -> list[int]:
        """The brokers whose process runs: serving, still starting, or paused."""
        return sorted(self._incarnations)

    def is_serving(self, broker_id: int) -> bool:
        """Whether a running broker has started."""
        return self._incarnations[broker_id].serving.is_set()

    def hosted(self, partition: TopicPartition) -> list[Partition]:
        """Return the replicas of a partition in the memory of all brokers."""
        found = [b.replica_manager.partitions.get(partition) for b in self.brokers().values()]
        return [one for one in found if one is not None]

    def brokers(self) -> dict[str, Broker]:
        """Return the broker objects by incarnation, once they have been created; also of those that
        shut down, which may lead until they end."""
        return {
            incarnation.name: incarnation.broker
            for incarnation in (*self._incarnations.values(), *self._stopping)
            if incarnation.broker is not None
        }

    @property
    def population(self) -> tuple[int, ...]:
        """Other numbers whenever a process begins or ends, or has created its broker."""
        processes = len(self._incarnations), len(self._stopping)
        return self._started_count, len(self.event_logs), *processes

    def events(self) -> list[Event]:
        """Return the events of all incarnations of all brokers, in order of corrected time."""
        events: list[Event] = []
        for incarnation, log in self.event_logs.items():
            events += _at_true_times(log.since(0), self._skews[incarnation])
        return in_order(events)

    def dated_events(self) -> list[tuple[float, Event]]:
        """Return the events with their virtual seconds, without moves of offsets."""
        return [
            ((event.time_ms - self.clock.start_ms) / 1000, event)
            for event in self.events()
            if event.kind is not EventKind.OFFSETS_MOVED
        ]

    def story(self, latest: int = 0) -> list[str]:
        """Return the dated events as lines, or only the latest of them."""
        return [f"{at:.3f} {in_words(event)}" for at, event in self.dated_events()[-latest:]]

    def set_clock(self, broker_id: int, skew_ms: int) -> None:
        """Set the error of a broker's wall clock, and of its disk's; timers are not affected."""
        self.clocks[broker_id].skew_ms = skew_ms
        self.most_skew_ms = max(self.most_skew_ms, abs(skew_ms))
        incarnation = self._incarnations.get(broker_id)
        if incarnation is not None and incarnation.broker is not None:
            self._skews[incarnation.name].append((incarnation.broker.events.last_sequence, skew_ms))

    def cut(self, sender: int, receiver: int) -> None:
        """Silently drop what one running broker sends to another, until either process ends."""
        self.network.cut(self._incarnations[sender].name, self._incarnations[receiver].name)

    def heal(self, sender: int, receiver: int) -> None:
        """Undo `cut`."""
        self.network.heal(self._incarnations[sender].name, self._incarnations[receiver].name)

    def expire_session(self, broker_id: int) -> None:
        """Let ZooKeeper end a broker's session, as after a long pause of its process."""
        for session in self.sessions_of(broker_id):
            self.zookeeper.expire(session)

    def sessions_of(self, broker_id: int) -> list[MemorySession]:
        """Return a running broker's ZooKeeper sessions."""
        return list(self._incarnations[broker_id].zookeeper.sessions)

    def part_from_zookeeper(self, broker_id: int) -> None:
        """Disconnect a broker from ZooKeeper; its session expires if that lasts."""
        self._incarnations[broker_id].zookeeper.disconnect()

    def reunite_with_zookeeper(self, broker_id: int) -> None:
        """Undo `part_from_zookeeper`."""
        self._incarnations[broker_id].zookeeper.reconnect()

    def lose_next_zookeeper_request(self, broker_id: int, applied: bool) -> bool:
        """Break the connection at the broker's next request, before or after it was applied.

        False if it has no session now.
        """
        sessions = self._incarnations[broker_id].zookeeper.sessions
        for session in sessions:
            if applied:
                self.zookeeper.lose_next_reply(session)
            else:
                self.zookeeper.lose_next_request(session)
        return bool(sessions)

    async def stop_broker(self, broker_id: int) -> None:
        """Shut a broker down cleanly; it moves its leaderships first."""
        incarnation = self._incarnations.pop(broker_id)
        assert incarnation.broker is not None
        self._stopping.append(incarnation)
        context = copy_context()
        context.run(NODE.set, incarnation.name)
        loop = asyncio.get_running_loop()
        try:
            await loop.create_task(incarnation.broker.stop(), context=context)
        finally:
            self._stopping.remove(incarnation)
            self._end(broker_id, incarnation, keep_unflushed=True)

    def broker(self, broker_id: int) -> Broker:
        """Return the running broker object, for observation; not to be called from a broker."""
        broker = self._incarnations[broker_id].broker
        assert broker is not None
        return broker

    async def _run(self, broker_id: int) -> None:
        incarnation = self._incarnations[broker_id]
        node = self.network.node(incarnation.name)
        clock = self.clocks[broker_id]
        world = World(
            runtime=self._runtime(incarnation.name, clock, self.pauses.of(broker_id)),
            disk=self.disks[broker_id],
            listen=self._observed(incarnation, node.listen),
            connect_zookeeper=incarnation.zookeeper.connect,
        )
        incarnation.broker = Broker(self._broker_config(broker_id), world)
        self.event_logs[incarnation.name] = incarnation.broker.events
        self._skews[incarnation.name] = [(0, clock.skew_ms)]
        await incarnation.broker.start()
        incarnation.serving.set()
        reason = await incarnation.broker.failed  # or until killed or stopped
        await incarnation.broker.stop()
        raise BrokerFailed(reason)

    def _observed(self, incarnation: _Incarnation, listen: Listen) -> Listen:
        """Wrap a broker's listener, so that `observers` see the requests of their services."""

        async def listen_observed(
            name: str, address: Address, handlers: Mapping[Service, Handler]
        ) -> Listener:
            watched = {
                service: self._observe(incarnation, handlers[service], service)
                for service in OBSERVED
                if service in handlers
            }
            return await listen(name, address, {**handlers, **watched})

        return listen_observed

    def _observe(self, incarnation: _Incarnation, handle: Handler, service: Service) -> Handler:
        async def handle_observed(request: Message, peer: Peer) -> Message | None:
            observe = self.observers.get(service)
            if observe is None or incarnation.broker is None:
                return await handle(request, peer)
            answered = observe(incarnation.broker, request)
            response = await handle(request, peer)
            answered(response)
            return response

        return handle_observed

    def _runtime(self, name: str, clock: VirtualClock, pauses: Pauses | None = None) -> Runtime:
        return Runtime(
            clock=clock,
            randomness=random.Random(self._random.getrandbits(64)),
            offload=VirtualOffload(self._random.getrandbits(64)),
            network=self.network.node(name),
            pauses=pauses,
        )

    def _broker_config(self, broker_id: int) -> Config:
        host = f"broker-{broker_id}"
        return Config(
            {
                "broker.id": str(broker_id),
                "listeners": f"CLIENT://{host}:{CLIENT_PORT},INTERNAL://{host}:{INTERNAL_PORT}",
                "inter.broker.listener.name": "INTERNAL",
                "zookeeper.connect": "memory:2181",
                "zookeeper.session.timeout.ms": "6000",
                "log.dirs": "/data",
                **self._config,
            }
        )


def _at_true_times(events: Sequence[Event], skews: Sequence[tuple[int, int]]) -> Iterator[Event]:
    """Correct the events' times by `skews`: after which event, and by how many ms."""
    for event in events:
        skew_ms = next(ms for after, ms in reversed(skews) if event.sequence > after)
        yield replace(event, time_ms=event.time_ms - skew_ms) if skew_ms else event


def _loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


class Trace(logging.Handler):
    """Everything the cluster logged, with virtual time and node: equal for equal runs.

    To be entered inside the run, so that it ends before the cluster's tasks are cancelled.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        now = asyncio.get_running_loop().time()
        self.lines.append(f"{now:.6f} {NODE.get() or '-'} {record.name}: {record.getMessage()}")

    def __enter__(self) -> "Trace":
        root = logging.getLogger()
        self._level = root.level
        root.addHandler(self)
        root.setLevel(logging.DEBUG)
        return self

    def __exit__(self, *exception: object) -> None:
        root = logging.getLogger()
        root.removeHandler(self)
        root.setLevel(self._level)
