"""A cluster for tests of the controller: real controllers, ZooKeeper and network in memory.

The brokers are peers that record the controller's requests and answer as the test says. Everything
runs on a virtual loop: `run_world(test)` gives the test a `ControlWorld`.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventLog
from barnabas_common.messages.control import (
    HeldRole,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from barnabas_common.runtime import Address, InlineOffload, Listener, Peer, Runtime, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.brokers.registration import register_broker
from barnabas_controller.config import ControllerConfig
from barnabas_controller.controller import Controller, ControllerSetup
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import (
    UNBROKEN_SINCE_REGISTRATION,
    Broker,
    Endpoint,
    ReplicaAssignment,
    TopicZnode,
)
from barnabas_controller.zookeeper.session import Session
from barnabas_simulator.loop import NODE, VirtualClock, VirtualLoop, run
from barnabas_simulator.network import MemoryNetwork
from barnabas_simulator.zookeeper import MemoryZooKeeper

SESSION_TIMEOUT_MS = 6000
T = TypeVar("T")


@dataclass
class RecordingBroker:
    """One incarnation of a broker: the requests it received, and how it answers.

    `answers_roles`: while it is not set, the answers to LeaderAndIsr are on their way. `logs` has
    what brokers tell of their logs when they are asked, by broker id; the others hold the roles by
    which they are asked.
    """

    broker_id: int
    node: str
    epoch: int
    session: Session
    listener: Listener
    controller: Controller
    events: EventLog
    logs: dict[int, HeldRole]
    told: list[Any] = field(default_factory=list)
    failing: dict[TopicPartition, ErrorCode] = field(default_factory=dict)
    answers_roles: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.answers_roles.set()

    async def handle(self, request: Any, _: Peer) -> Any:
        self.told.append(request)
        if isinstance(request, UpdateMetadataRequest):
            return UpdateMetadataResponse()
        errors = [
            PartitionError(p.topic, p.partition, self._error(p.topic, p.partition))
            for p in request.partitions
        ]
        if isinstance(request, LeaderAndIsrRequest):
            await self.answers_roles.wait()
            asked = [p for p in request.partitions if p.tell_only]
            held = [self._held(p) for p in asked if not self._error(p.topic, p.partition)]
            return LeaderAndIsrResponse(0, errors, held=held)
        assert isinstance(request, StopReplicaRequest)
        return StopReplicaResponse(0, errors)

    def _held(self, state: LeaderAndIsrPartition) -> HeldRole:
        isr = state.in_sync_replicas if state.leader == self.broker_id else []
        role = HeldRole(state.topic, state.partition, state.leader_epoch, state.leader, isr)
        if self.broker_id not in self.logs:
            return role
        return replace(
            self.logs[self.broker_id],
            topic=state.topic,
            partition=state.partition,
            leader_epoch=state.leader_epoch,
        )

    def _error(self, topic: str, partition: int) -> int:
        return int(self.failing.get(TopicPartition(topic, partition), ErrorCode.NONE))

    def kinds(self) -> list[str]:
        """The names of the requests, in order of arrival."""
        return [type(request).__name__.removesuffix("Request") for request in self.told]

    def role(self, partition: TopicPartition) -> LeaderAndIsrPartition | None:
        """Return the last LeaderAndIsr state that it received for the partition, or None."""
        said = [p for r in self.told if isinstance(r, LeaderAndIsrRequest) for p in r.partitions]
        return next((p for p in reversed(said) if (p.topic, p.partition) == partition), None)

    def metadata(self, partition: TopicPartition) -> UpdateMetadataPartition | None:
        """Return the last metadata that it received for the partition, or None."""
        said = [p for r in self.told if isinstance(r, UpdateMetadataRequest) for p in r.partitions]
        return next((p for p in reversed(said) if (p.topic, p.partition) == partition), None)

    def live_brokers(self) -> set[int]:
        """Return the brokers that are alive by the last UpdateMetadata."""
        said = [r for r in self.told if isinstance(r, UpdateMetadataRequest)]
        return {endpoint.broker_id for endpoint in said[-1].live_brokers} if said else set()

    def suspects(self) -> dict[int, int]:
        """Return the broker epochs of the suspected brokers in the last UpdateMetadata."""
        said = [r for r in self.told if isinstance(r, UpdateMetadataRequest)]
        return {s.broker_id: s.broker_epoch for s in said[-1].suspected_brokers} if said else {}

    def stops(self, delete: bool) -> list[TopicPartition]:
        """Return the replicas of all StopReplica requests with or without deletion."""
        return [
            TopicPartition(p.topic, p.partition)
            for r in self.told
            if isinstance(r, StopReplicaRequest)
            for p in r.partitions
            if p.delete_partition == delete
        ]


class ControlWorld:
    """The cluster and what a test does to it."""

    def __init__(self, config: ControllerConfig, seed: int) -> None:
        self.config = config
        self.clock = VirtualClock()
        self.zookeeper = MemoryZooKeeper(wall_ms=self.clock.wall_ms)
        self.network = MemoryNetwork(seed)
        self.random = random.Random(seed)
        self._unbroken_since: dict[int, int] = {}
        self.brokers: dict[int, RecordingBroker] = {}
        self.logs: dict[int, HeldRole] = {}
        self._incarnations: dict[int, int] = {}
        self.store: Store

    async def open(self) -> None:
        self.store = Store(await self.zookeeper.client("test").connect(60_000, 1000))
        await self.store.create_persistent_paths()

    def runtime(self, node: str) -> Runtime:
        return Runtime(self.clock, self.random, InlineOffload(), self.network.node(node))

    async def start_broker(
        self, broker_id: int, network: Any = None, config: ControllerConfig | None = None
    ) -> RecordingBroker:
        """Start a new incarnation: session, listener, registration, controller."""
        incarnation = self._incarnations[broker_id] = self._incarnations.get(broker_id, 0) + 1
        node = f"broker-{broker_id}/{incarnation}"
        with _on_node(node):
            session = await self.zookeeper.client(node).connect(SESSION_TIMEOUT_MS, 1000)
            runtime = self.runtime(node)
            if network is not None:
                runtime = Runtime(self.clock, self.random, runtime.offload, network)
            broker: RecordingBroker

            async def handle(request: Any, peer: Peer) -> Any:
                return await broker.handle(request, peer)

            address = Address(f"host{broker_id}", 9000 + incarnation)
            listener = await self.network.node(node).listen(
                "PLAINTEXT", address, {Service.CONTROL: handle}
            )
            since = self._unbroken_since.get(broker_id, UNBROKEN_SINCE_REGISTRATION)
            info = Broker(broker_id, (Endpoint("PLAINTEXT", *address),), unbroken_since=since)
            epoch = await register_broker(
                Store(session), info, self.clock.wall_ms(), wait_seconds=10
            )
            # brokers are killed, and their disks lose nothing
            self._unbroken_since.setdefault(broker_id, epoch)
            events = EventLog(broker_id, self.clock.wall_ms)
            setup = ControllerSetup(
                runtime,
                session,
                broker_id,
                config or self.config,
                events,
                suspects=lambda: self.brokers[broker_id].suspects(),
                newest_state=lambda partition, _: self.brokers[broker_id].metadata(partition),
            )
            controller = Controller(setup)
            broker = RecordingBroker(
                broker_id, node, epoch, session, listener, controller, events, self.logs
            )
            self.brokers[broker_id] = broker
            await controller.start()
        return broker

    async def start_brokers(self, *broker_ids: int) -> None:
        """Start brokers one after the other; the first becomes controller."""
        for broker_id in broker_ids:
            await self.start_broker(broker_id)
            await self.until(lambda: self.controller() is not None)

    def kill(self, broker_id: int, keep_unflushed: bool = True) -> RecordingBroker:
        """Kill a broker, with loss of power if not `keep_unflushed`; its session stays until it
        expires.
        """
        if not keep_unflushed:
            del self._unbroken_since[broker_id]
        broker = self.brokers.pop(broker_id)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.kill_node(broker.node)
        self.network.kill(broker.node)
        self.zookeeper.client(broker.node).crash()
        return broker

    async def kill_and_expire(self, *broker_ids: int) -> None:
        """Kill brokers and end their sessions immediately."""
        for broker_id in broker_ids:
            broker = self.kill(broker_id)
            self.zookeeper.expire(broker.session)

    async def stop_all(self) -> None:
        for broker in self.brokers.values():
            await broker.controller.stop()

    def controller(self) -> RecordingBroker | None:
        """Return the broker that is controller; None while there is not exactly one."""
        active = [b for b in self.brokers.values() if b.controller.is_active]
        return active[0] if len(active) == 1 else None

    async def create_topic(self, topic: str, partitions: dict[int, list[int]]) -> None:
        """Create a topic as a broker does for an admin; returns when partition 0 has a leader."""
        await self.create_topic_unseen(topic, partitions)
        await self.until_state(TopicPartition(topic, 0), lambda state: True)

    async def create_topic_unseen(self, topic: str, partitions: dict[int, list[int]]) -> None:
        """Create a topic without waiting for its leaders."""
        node = TopicZnode(
            f"id-of-{topic}", {p: ReplicaAssignment(tuple(r)) for p, r in partitions.items()}
        )
        await self.store.ensure(znodes.topic_path(topic), znodes.encode_topic(node))

    async def state(self, partition: TopicPartition) -> LeaderAndIsr | None:
        return await self.store.state(partition)

    async def until_state(
        self, partition: TopicPartition, condition: Callable[[LeaderAndIsr], bool]
    ) -> LeaderAndIsr:
        """Wait until the state in ZooKeeper satisfies the condition, and return it."""

        async def reached() -> LeaderAndIsr | None:
            state = await self.store.state(partition)
            return state if state is not None and condition(state) else None

        return await self.until_some(reached)

    async def until(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        """Wait in virtual time until the condition holds; fails after `seconds`."""

        async def reached() -> bool | None:
            return condition() or None

        await self.until_some(reached, seconds)

    async def until_some(
        self, condition: Callable[[], Awaitable[T | None]], seconds: float = 60
    ) -> T:
        """Wait until the condition returns something, and return that; `seconds` are virtual."""
        deadline = self.clock.monotonic() + seconds
        while (result := await condition()) is None:
            assert self.clock.monotonic() < deadline, f"not reached within {seconds} s"
            await asyncio.sleep(0.01)
        return result

    async def settle(self, seconds: float = 1.0) -> None:
        """Let the cluster come to rest, to show that something does not happen."""
        await asyncio.sleep(seconds)


@contextmanager
def _on_node(node: str) -> Iterator[None]:
    token = NODE.set(node)
    try:
        yield
    finally:
        NODE.reset(token)


# Off by default, so that no election happens that a test did not cause.
QUIET = ControllerConfig(auto_leader_rebalance_enable=False)


def run_world(
    test: Callable[[ControlWorld], Awaitable[None]],
    config: ControllerConfig = QUIET,
    seed: int = 1,
) -> None:
    """Run a test's coroutine in a new world on a virtual loop."""

    async def main() -> None:
        world = ControlWorld(config, seed)
        await world.open()
        try:
            await test(world)
        finally:
            await world.stop_all()

    run(main(), seed)
