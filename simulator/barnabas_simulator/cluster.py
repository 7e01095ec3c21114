"""A whole cluster in one process on virtual time: brokers, controller, ZooKeeper, clients.

Not a line of the brokers or the client is replaced: they get a virtual clock, a memory network, a
memory disk each and a memory ZooKeeper behind the same seams as the real ones. One seed is one
exact run, which `Trace` can prove.

    async def story() -> None:
        cluster = SimulatedCluster(seed=7)
        await cluster.start()
        async with Producer(cluster.bootstrap, runtime=cluster.client_runtime("p")) as producer:
            ...
        cluster.kill(1)

    run(story(), seed=7)
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace

from barnabas.events import Event, EventKind, EventLog
from barnabas.events.telling import in_words
from barnabas.runtime import (
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
from barnabas_broker.config import Config
from barnabas_broker.server.broker import Broker, World

from barnabas_simulator.disk import MemoryDisk
from barnabas_simulator.loop import NODE, VirtualClock, VirtualLoop
from barnabas_simulator.network import MemoryNetwork
from barnabas_simulator.offload import VirtualOffload
from barnabas_simulator.pauses import MemoryPauseControl
from barnabas_simulator.zookeeper import MemoryClient, MemoryZooKeeper

CLIENT_PORT = 9092
INTERNAL_PORT = 19092


Order = Callable[[Broker, Message], Callable[[Message | None], None]]
"""An observer of the controllers' orders: called as one arrives, with who is told what; what it
returns is called with the answer."""


class BrokerFailed(Exception):
    """A broker could not go on; its process ends, as the real one does."""


@dataclass
class _Life:
    """One process of a broker, from its start to its death."""

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
        self._lives: dict[int, _Life] = {}
        self._dark: dict[int, str] = {}  # the last lives of brokers that lost power
        self._births = 0
        self.exits: list[tuple[int, str]] = []
        """Brokers whose process ended by itself, and why."""
        self.on_order: Order | None = None
        self.event_logs: dict[str, EventLog] = {}
        """What each life of each broker has recorded, the dead ones included."""
        self._skews: dict[str, list[tuple[int, int]]] = {}  # by life: after which event, how far

    @property
    def bootstrap(self) -> str:
        """The brokers' client addresses."""
        return ",".join(f"broker-{broker_id}:{CLIENT_PORT}" for broker_id in self.broker_ids)

    def client_runtime(self, name: str) -> Runtime:
        """What `Producer(runtime=...)`, `Consumer` and `Admin` want."""
        return self._runtime(name, self.clock)

    async def start(self) -> None:
        """Start every broker and wait until all serve."""
        for broker_id in self.broker_ids:
            self.start_broker(broker_id)
        await self.serving()

    async def serving(self) -> None:
        """Wait until every started broker serves; raises what kept one from starting."""
        for life in list(self._lives.values()):
            waiting = asyncio.ensure_future(life.serving.wait())
            life.task.add_done_callback(lambda _, waiting=waiting: waiting.cancel())  # type: ignore[misc]
            try:
                await waiting
            except asyncio.CancelledError:
                life.task.result()
                raise

    def start_broker(self, broker_id: int) -> None:
        """Start a broker's process on its disk; returns at once."""
        if broker_id in self._dark:
            self.network.regain_power(self._dark.pop(broker_id))
        self._births += 1
        name = f"broker-{broker_id}/{self._births}"
        zookeeper = self.zookeeper.client(name)
        context = copy_context()
        context.run(NODE.set, name)
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._run(broker_id), name=name, context=context)
        life = self._lives[broker_id] = _Life(name, zookeeper, task)
        task.add_done_callback(lambda _: self._exited(broker_id, life), context=Context())

    def kill(self, broker_id: int, keep_unflushed: bool = True) -> None:
        """kill -9; with `keep_unflushed=False` a power loss: what was not flushed is gone."""
        self._end(broker_id, self._lives.pop(broker_id), keep_unflushed)

    def _end(
        self, broker_id: int, life: _Life, keep_unflushed: bool, silently: bool = False
    ) -> None:
        """A process is no more."""
        _loop().kill_node(life.name)
        if silently:
            self.network.lose_power(life.name)
        else:
            self.network.kill(life.name)
        life.zookeeper.crash()
        self.disks[broker_id].crash(keep_unflushed=keep_unflushed)
        self.pauses.died(broker_id)

    def lose_power(self, broker_id: int) -> None:
        """As `kill` without what was not flushed, and the whole machine is silent.

        Nobody is refused or told anything until it is started again.
        """
        life = self._lives.pop(broker_id)
        self._dark[broker_id] = life.name
        self._end(broker_id, life, keep_unflushed=False, silently=True)

    def _exited(self, broker_id: int, life: _Life) -> None:
        """The process ended by itself: it could not start, or could not go on."""
        if self._lives.get(broker_id) is life:
            error = None if life.task.cancelled() else life.task.exception()
            self.exits.append((broker_id, str(error)))
            self.kill(broker_id)

    def pause(self, broker_id: int) -> None:
        """SIGSTOP: the process does nothing, its connections stand, its heartbeats stop."""
        life = self._lives[broker_id]
        life.paused = True
        _loop().pause_node(life.name)
        life.zookeeper.fall_silent()

    def resume(self, broker_id: int) -> None:
        """SIGCONT."""
        life = self._lives[broker_id]
        life.paused = False
        _loop().resume_node(life.name)
        life.zookeeper.speak_again()

    def is_paused(self, broker_id: int) -> bool:
        return self._lives[broker_id].paused

    def life(self, broker_id: int) -> str:
        """The name of a living broker's process; no other has it before or after."""
        return self._lives[broker_id].name

    def host(self, broker_id: int) -> str:
        """A broker's machine, as the network's faults name it; the same for all its lives."""
        return f"broker-{broker_id}"

    @property
    def living(self) -> list[int]:
        """The brokers whose process runs: serving, still starting, or paused."""
        return sorted(self._lives)

    def is_serving(self, broker_id: int) -> bool:
        """Whether a living broker has started."""
        return self._lives[broker_id].serving.is_set()

    def brokers(self) -> dict[str, Broker]:
        """The living broker objects by the names of their lives; those yet to be made are left
        out."""
        return {life.name: life.broker for life in self._lives.values() if life.broker is not None}

    def events(self) -> list[Event]:
        """What all lives of all brokers have seen happen, in the order of time; where a clock was
        wrong, the event's time is put right."""
        events: list[Event] = []
        for life, log in self.event_logs.items():
            events += _at_true_times(log.since(0), self._skews[life])
        return sorted(events, key=lambda e: (e.time_ms, e.broker_id, e.sequence))

    def story(self, latest: int | None = None) -> list[str]:
        """The events in words, each after the virtual second it happened in; moves of offsets
        are left out."""
        told = [event for event in self.events() if event.kind is not EventKind.OFFSETS_MOVED]
        begin = self.clock.start_ms
        return [
            f"{(event.time_ms - begin) / 1000:.3f} {in_words(event)}"
            for event in (told if latest is None else told[-latest:])
        ]

    def set_clock(self, broker_id: int, skew_ms: int) -> None:
        """Have a broker's wall clock, and that of its disk, be wrong by so much; timers go on."""
        self.clocks[broker_id].skew_ms = skew_ms
        life = self._lives.get(broker_id)
        if life is not None and life.broker is not None:
            self._skews[life.name].append((life.broker.events.last_sequence, skew_ms))

    def cut(self, sender: int, receiver: int) -> None:
        """Swallow what one living broker sends to another; ends with either's life."""
        self.network.cut(self._lives[sender].name, self._lives[receiver].name)

    def heal(self, sender: int, receiver: int) -> None:
        """Undo `cut`."""
        self.network.heal(self._lives[sender].name, self._lives[receiver].name)

    def expire_session(self, broker_id: int) -> None:
        """Have ZooKeeper end a broker's session, as after a long pause of its process."""
        for session in list(self._lives[broker_id].zookeeper.sessions):
            self.zookeeper.expire(session)

    def part_from_zookeeper(self, broker_id: int) -> None:
        """Cut a broker off from ZooKeeper; its session expires if that lasts."""
        self._lives[broker_id].zookeeper.disconnect()

    def reunite_with_zookeeper(self, broker_id: int) -> None:
        """Undo `part_from_zookeeper`."""
        self._lives[broker_id].zookeeper.reconnect()

    def lose_next_zookeeper_request(self, broker_id: int, applied: bool) -> bool:
        """Break the connection at the broker's next request, before or after it was applied.

        False if it has no session now.
        """
        sessions = self._lives[broker_id].zookeeper.sessions
        for session in sessions:
            if applied:
                self.zookeeper.lose_next_reply(session)
            else:
                self.zookeeper.lose_next_request(session)
        return bool(sessions)

    async def stop_broker(self, broker_id: int) -> None:
        """A clean shutdown, leadership handed over first."""
        life = self._lives.pop(broker_id)
        assert life.broker is not None
        context = copy_context()
        context.run(NODE.set, life.name)
        loop = asyncio.get_running_loop()
        try:
            await loop.create_task(life.broker.stop(), context=context)
        finally:
            self._end(broker_id, life, keep_unflushed=True)

    def broker(self, broker_id: int) -> Broker:
        """The living broker object, to look into; never to be called from a broker."""
        broker = self._lives[broker_id].broker
        assert broker is not None
        return broker

    async def _run(self, broker_id: int) -> None:
        life = self._lives[broker_id]
        node = self.network.node(life.name)
        clock = self.clocks[broker_id]
        world = World(
            runtime=self._runtime(life.name, clock, self.pauses.of(broker_id)),
            disk=self.disks[broker_id],
            listen=self._observed(life, node.listen),
            connect_zookeeper=life.zookeeper.connect,
        )
        life.broker = Broker(self._broker_config(broker_id), world)
        self.event_logs[life.name] = life.broker.events
        self._skews[life.name] = [(0, clock.skew_ms)]
        await life.broker.start()
        life.serving.set()
        reason = await life.broker.failed  # or until killed or stopped
        await life.broker.stop()
        raise BrokerFailed(reason)

    def _observed(self, life: _Life, listen: Listen) -> Listen:
        """The door of a broker, with `on_order` looking at what comes through it."""

        async def listen_observed(
            name: str, address: Address, handlers: Mapping[Service, Handler]
        ) -> Listener:
            handle = handlers.get(Service.CONTROL)
            if handle is not None:
                handlers = {**handlers, Service.CONTROL: self._observe_orders(life, handle)}
            return await listen(name, address, handlers)

        return listen_observed

    def _observe_orders(self, life: _Life, handle: Handler) -> Handler:
        async def handle_observed(request: Message, peer: Peer) -> Message | None:
            if self.on_order is None or life.broker is None:
                return await handle(request, peer)
            answered = self.on_order(life.broker, request)
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
    """`skews`: after which event a clock began to be wrong by how many milliseconds."""
    for event in events:
        skew_ms = next(ms for after, ms in reversed(skews) if event.sequence > after)
        yield replace(event, time_ms=event.time_ms - skew_ms) if skew_ms else event


def _loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


class Trace(logging.Handler):
    """Everything the cluster logged, with virtual time and node: what two runs must share.

    To be entered inside the run, so that it ends before the cluster's tasks are thrown away.
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
