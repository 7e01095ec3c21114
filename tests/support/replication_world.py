"""Replica managers of several brokers on virtual time, with the test in the controller's role.

Everything below the request handlers is real: logs on memory disks, fetches over the memory
network. The controller is a table of partition states, which is sent as UpdateMetadata and
LeaderAndIsr. Each broker runs as its own node, so that it can be killed at any point.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from barnabas_broker.config import Config
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.partition.partition import Partition
from barnabas_broker.replica.replica_manager import ReplicaContext, ReplicaManager
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventLog
from barnabas_common.messages.control import (
    AlteredPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerEndpoint,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
)
from barnabas_common.messages.fetch import FetchPartition, FetchRequest
from barnabas_common.messages.offsets import ListOffsetsRequest, OffsetForLeaderEpochRequest
from barnabas_common.messages.produce import ProducedPartition, ProducePartition, ProduceRequest
from barnabas_common.record.reader import records_from
from barnabas_common.runtime import Address, InlineOffload, Peer, Runtime, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk
from barnabas_simulator.loop import NODE, VirtualClock, VirtualLoop
from barnabas_simulator.network import MemoryNetwork

from tests.support.raw import batch

T = TypeVar("T")

CONTROLLER = 100
LISTENER = "INTERNAL"
TP = TopicPartition("flights", 0)


@dataclass
class State:
    """A partition's state in the controller's table."""

    replicas: tuple[int, ...]
    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = 0
    partition_epoch: int = 0
    eligible: tuple[int, ...] = ()


@dataclass
class Incarnation:
    """One process of a broker."""

    name: str
    manager: ReplicaManager
    logs: LogManager
    cache: MetadataCache
    events: EventLog
    requests: list[FetchRequest] = field(default_factory=list)
    epoch_questions: list[int] = field(default_factory=list)


class ReplicationWorld:
    """`config` is added to each broker's settings, `topic` to each topic's."""

    def __init__(
        self,
        seed: int = 0,
        config: Mapping[str, str] | None = None,
        topic: Mapping[str, str] | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.network = MemoryNetwork(seed)
        self.disks: dict[int, MemoryDisk] = {}
        self.states: dict[TopicPartition, State] = {}
        self.alterations: list[AlterPartitionRequest] = []
        self.refuse_with: ErrorCode | None = None
        self.controller_answers = asyncio.Event()
        self.controller_answers.set()
        self.topic_config_error: Exception | None = None
        self._seed = seed
        self._random = random.Random(seed)
        self._config = dict(config or {})
        self._topic = dict(topic or {})
        self.incarnations: dict[int, Incarnation] = {}
        self._started_count = 0
        self.controller_epoch = 1

    # ---- brokers

    async def start(self, *broker_ids: int) -> None:
        """Start the controller's listener, once, and brokers on their disks."""
        if Address("controller", 1) not in self.network.listeners:
            handlers = {Service.CONTROL: self._handle_control}
            await self.network.node("controller").listen(
                LISTENER, Address("controller", 1), handlers
            )
        for broker_id in broker_ids:
            self._started_count += 1
            name = f"broker-{broker_id}/{self._started_count}"
            await self._as(name, self._start(broker_id, name))

    async def _start(self, broker_id: int, name: str) -> None:
        disk = self.disks.setdefault(
            broker_id, MemoryDisk(self._seed * 10 + broker_id, self.clock.wall_ms)
        )
        node = self.network.node(name)
        config = self._broker_config(broker_id)
        runtime = Runtime(
            self.clock, random.Random(self._random.getrandbits(64)), InlineOffload(), node
        )
        births = self._started_count

        async def topic_config(_topic: str) -> dict[str, str]:
            if self.topic_config_error is not None:
                raise self.topic_config_error
            return self._topic

        logs = LogManager(
            config,
            runtime,
            disk,
            on_directory_failure=lambda directory, _: manager.directory_failed(directory),
        )
        cache, events = MetadataCache(), EventLog(broker_id)
        manager = ReplicaManager(
            ReplicaContext(
                runtime, config, broker_id, logs, cache, lambda: births, topic_config, events
            )
        )
        logs.lock_directories()
        await logs.start()
        await manager.start()
        incarnation = self.incarnations[broker_id] = Incarnation(name, manager, logs, cache, events)

        async def handle(request: Any, _peer: Peer) -> Any:
            if isinstance(request, FetchRequest):
                incarnation.requests.append(request)
                return await manager.follower_fetches.fetch(request)
            if isinstance(request, ListOffsetsRequest):
                return await manager.offsets.list_offsets(request)
            assert isinstance(request, OffsetForLeaderEpochRequest)
            incarnation.epoch_questions += [item.leader_epoch for item in request.partitions]
            return await manager.offsets.for_leader_epoch(request)

        await node.listen(LISTENER, address_of(broker_id), {Service.REPLICA: handle})

    def kill(self, broker_id: int, keep_unflushed: bool = True) -> None:
        """Kill a broker as by kill -9, or with `keep_unflushed=False` as by a power loss."""
        incarnation = self.incarnations.pop(broker_id)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.kill_node(incarnation.name)
        self.network.kill(incarnation.name)
        self.disks[broker_id].crash(keep_unflushed=keep_unflushed)

    def cut(self, one: int, other: int) -> None:
        """Cut the link between two brokers, both ways."""
        self.network.cut(self.incarnations[one].name, self.incarnations[other].name)
        self.network.cut(self.incarnations[other].name, self.incarnations[one].name)

    def heal(self, one: int, other: int) -> None:
        self.network.heal(self.incarnations[one].name, self.incarnations[other].name)
        self.network.heal(self.incarnations[other].name, self.incarnations[one].name)

    async def on(self, broker_id: int, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine as a part of that broker's process, and return its result."""
        return await self._as(self.incarnations[broker_id].name, work)

    async def _as(self, name: str, work: Coroutine[Any, Any, T]) -> T:
        context = copy_context()
        context.run(NODE.set, name)
        return await asyncio.get_running_loop().create_task(work, context=context)

    def _broker_config(self, broker_id: int) -> Config:
        return Config(
            {
                "broker.id": str(broker_id),
                "listeners": f"CLIENT://b{broker_id}:9092,{LISTENER}://b{broker_id}:19092",
                "inter.broker.listener.name": LISTENER,
                "zookeeper.connect": "memory:2181",
                "log.dirs": "/data",
                **self._config,
            }
        )

    # ---- the controller

    async def create(
        self, *replicas: int, leader: int | None = None, key: TopicPartition = TP
    ) -> None:
        """Create a partition with all replicas in sync, and announce it."""
        first = replicas[0] if leader is None else leader
        self.states[key] = State(replicas, first, replicas)
        await self.announce(key, is_new=True)

    async def elect(
        self,
        leader: int,
        isr: tuple[int, ...] | None = None,
        key: TopicPartition = TP,
        but: int | None = None,
        eligible: tuple[int, ...] = (),
    ) -> None:
        """Start a new leader epoch, and announce it to all brokers except `but`."""
        state = self.states[key]
        state.leader = leader
        state.isr = isr if isr is not None else state.isr
        state.eligible = eligible
        state.leader_epoch += 1
        state.partition_epoch += 1
        await self.announce(key, but=but)

    async def announce(
        self,
        key: TopicPartition = TP,
        is_new: bool = False,
        only: int | None = None,
        but: int | None = None,
    ) -> None:
        """Send a partition's state to the running brokers:

        to all, to `only` one, or to all `but` one.
        """
        await self.update_metadata()
        for broker_id in [b for b in self.states[key].replicas if b in self.incarnations]:
            if only in (None, broker_id) and broker_id != but:
                response = await self.on(
                    broker_id,
                    self.incarnations[broker_id].manager.become_leader_or_follower(
                        self.leader_and_isr(key, is_new)
                    ),
                )
                assert not response.error_code, ErrorCode(response.error_code).name

    def leader_and_isr(self, key: TopicPartition = TP, is_new: bool = False) -> LeaderAndIsrRequest:
        state = self.states[key]
        partition_state = LeaderAndIsrPartition(
            *key,
            topic_id=f"id-of-{key.topic}".ljust(22, "x"),
            controller_epoch=self.controller_epoch,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            in_sync_replicas=list(state.isr),
            replicas=list(state.replicas),
            is_new=is_new,
            eligible_leader_replicas=list(state.eligible),
        )
        return LeaderAndIsrRequest(
            CONTROLLER, self.controller_epoch, -1, [partition_state], self._endpoints()
        )

    async def update_metadata(self) -> None:
        """Send the running brokers and all leaders to every running broker."""
        for broker_id in list(self.incarnations):
            request = UpdateMetadataRequest(
                CONTROLLER,
                self.controller_epoch,
                -1,
                [self._metadata(key, state) for key, state in self.states.items()],
                self._endpoints(),
            )
            manager = self.incarnations[broker_id].manager

            async def send(
                manager: ReplicaManager = manager, request: UpdateMetadataRequest = request
            ) -> None:
                manager.update_metadata(request)

            await self.on(broker_id, send())

    async def stop_replica(self, broker_id: int, delete: bool, key: TopicPartition = TP) -> int:
        """Send StopReplica; returns the partition's error code."""
        item = StopReplicaPartition(*key, -2, delete)
        request = StopReplicaRequest(CONTROLLER, self.controller_epoch, -1, [item])
        response = await self.on(
            broker_id, self.incarnations[broker_id].manager.roles.stop_replicas(request)
        )
        return response.error_code or response.partitions[0].error_code

    def _metadata(self, key: TopicPartition, state: State) -> UpdateMetadataPartition:
        return UpdateMetadataPartition(
            *key,
            topic_id=f"id-of-{key.topic}".ljust(22, "x"),
            controller_epoch=self.controller_epoch,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            in_sync_replicas=list(state.isr),
            replicas=list(state.replicas),
            eligible_leader_replicas=list(state.eligible),
        )

    def _endpoints(self) -> list[BrokerEndpoint]:
        running_brokers = [
            BrokerEndpoint(broker_id, LISTENER, *address_of(broker_id))
            for broker_id in sorted(self.incarnations)
        ]
        return [*running_brokers, BrokerEndpoint(CONTROLLER, LISTENER, "controller", 1)]

    async def _handle_control(self, request: Any, _peer: Peer) -> Any:
        assert isinstance(request, AlterPartitionRequest)
        self.alterations.append(replace(request, partitions=list(request.partitions)))
        await self.controller_answers.wait()
        answers = []
        for item in request.partitions:
            key = TopicPartition(item.topic, item.partition)
            state = self.states[key]
            answer = AlteredPartition(*key)
            if self.refuse_with is not None:
                answer.error_code = self.refuse_with
            elif item.leader_epoch < state.leader_epoch:
                answer.error_code = ErrorCode.FENCED_LEADER_EPOCH
            elif item.partition_epoch < state.partition_epoch and item.new_isr != list(state.isr):
                answer.error_code = ErrorCode.INVALID_UPDATE_VERSION
            elif any(broker_id not in self.incarnations for broker_id in item.new_isr):
                answer.error_code = ErrorCode.INELIGIBLE_REPLICA
            else:
                state.isr = tuple(item.new_isr)
                state.partition_epoch += 1
                answer.leader_id, answer.leader_epoch = state.leader, state.leader_epoch
                answer.partition_epoch = state.partition_epoch
                answer.in_sync_replicas = list(state.isr)
            answers.append(answer)
        return AlterPartitionResponse(partitions=answers)

    # ---- clients

    async def produce(
        self,
        *values: bytes,
        to: int | None = None,
        acks: int = -1,
        timeout_ms: int = 5000,
        key: TopicPartition = TP,
    ) -> ProducedPartition:
        """Produce one batch on a broker, by default the leader."""
        broker_id = self.states[key].leader if to is None else to
        request = ProduceRequest(acks, timeout_ms, [ProducePartition(*key, batch(*values))])
        manager = self.incarnations[broker_id].manager
        response = await self.on(broker_id, manager.produces.produce(request))
        assert response is not None
        (result,) = response.partitions
        return result

    async def consume(
        self, broker_id: int, offset: int = 0, max_wait_ms: int = 0, key: TopicPartition = TP
    ) -> tuple[int, list[bytes]]:
        """Return the high watermark and the values that a consumer gets in one fetch."""
        request = FetchRequest(max_wait_ms, 1, 1 << 20, partitions=[FetchPartition(*key, offset)])
        response = await self.on(
            broker_id, self.incarnations[broker_id].manager.consumer_fetches.fetch(request)
        )
        (fetched,) = response.partitions
        assert not fetched.error_code, ErrorCode(fetched.error_code).name
        values = [record.value for record in records_from(fetched.records, offset)]
        return fetched.high_watermark, [value for value in values if value is not None]

    # ---- state

    def partition(self, broker_id: int, key: TopicPartition = TP) -> Partition:
        partition = self.incarnations[broker_id].manager.partitions.get(key)
        assert partition is not None
        return partition

    def log(self, broker_id: int, key: TopicPartition = TP) -> UnifiedLog:
        return self.partition(broker_id, key).follower_log()

    def isr(self, key: TopicPartition = TP) -> tuple[int, ...]:
        """Return the committed ISR, as the leader knows it."""
        return self.partition(self.states[key].leader, key).lead().isr.committed

    def values(self, broker_id: int, key: TopicPartition = TP) -> list[bytes]:
        """Return the values of all records in a replica's log, committed or not."""
        log = self.log(broker_id, key)
        if log.log_end_offset == log.log_start_offset:
            return []
        data = log.read(log.log_start_offset, 1 << 30, log.log_end_offset)
        return [r.value or b"" for r in records_from(data, log.log_start_offset)]

    async def until(self, condition: Callable[[], bool], timeout: float = 60.0) -> None:
        """Wait in virtual time until the condition holds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while not condition():
            assert loop.time() < deadline, "did not happen in time"
            await asyncio.sleep(0.01)

    async def until_equal(self, *broker_ids: int, key: TopicPartition = TP) -> None:
        """Wait until these replicas have the same log end and the same high watermark."""

        def equal() -> bool:
            logs = [self.log(broker_id, key) for broker_id in broker_ids]
            return len({(log.log_end_offset, log.high_watermark) for log in logs}) == 1

        await self.until(equal)
        contents = [self.values(broker_id, key) for broker_id in broker_ids]
        assert all(content == contents[0] for content in contents)


def address_of(broker_id: int) -> Address:
    return Address(f"b{broker_id}", 19092)
