"""Brokers and controllers start and die at random; safety at every step, convergence at the end.

At every step the requests to brokers and the states in ZooKeeper are checked: one leader per epoch,
epochs that only grow, an ISR that is never empty and that no replica joins without a request.
"""

import asyncio
import random

import pytest
from barnabas_common.messages.control import LeaderAndIsrRequest
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr

from tests.support.control_world import ControlWorld, RecordingBroker, run_world

BROKERS = (1, 2, 3, 4)
PARTITIONS = {0: [1, 2, 3], 1: [2, 3, 4], 2: [3, 4, 1], 3: [4, 1]}


class Violation(AssertionError):
    """The controller broke a rule of safety."""


class Watcher:
    """Checks every LeaderAndIsr that any broker received."""

    def __init__(self) -> None:
        self._leaders: dict[tuple[str, TopicPartition, int], int] = {}
        self._isrs: dict[tuple[str, TopicPartition], tuple[int, LeaderAndIsr]] = {}
        self._incarnations: dict[str, RecordingBroker] = {}

    def watch(self, broker: RecordingBroker) -> None:
        self._incarnations[broker.node] = broker

    def check(self) -> None:
        for broker in self._incarnations.values():
            for request in broker.told:
                if isinstance(request, LeaderAndIsrRequest):
                    self._check_request(request)

    def _check_request(self, request: LeaderAndIsrRequest) -> None:
        for said in request.partitions:
            partition = TopicPartition(said.topic, said.partition)
            if not said.in_sync_replicas:
                raise Violation(f"{partition}: an empty ISR")
            if said.leader != NO_LEADER and said.leader not in said.in_sync_replicas:
                raise Violation(f"{partition}: leader {said.leader} is not in sync")
            key = (said.topic_id, partition, said.leader_epoch)
            if self._leaders.setdefault(key, said.leader) != said.leader:
                raise Violation(f"{partition}: two leaders in epoch {said.leader_epoch}")

    def check_state(self, topic_id: str, partition: TopicPartition, state: LeaderAndIsr) -> None:
        """Check a state read from ZooKeeper.

        No leader sends AlterPartition, so ISRs only shrink.
        """
        version, before = self._isrs.get((topic_id, partition), (0, state))
        if state.partition_epoch < version or state.leader_epoch < before.leader_epoch:
            raise Violation(f"{partition}: went back from {before} to {state}")
        if not set(state.isr) <= set(before.isr):
            raise Violation(f"{partition}: someone entered the ISR {before.isr}: {state.isr}")
        self._isrs[(topic_id, partition)] = (state.partition_epoch, state)


class Chaos:
    """Random actions on a `ControlWorld`."""

    def __init__(self, world: ControlWorld, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.watcher = Watcher()

    async def start(self, broker_id: int) -> None:
        self.watcher.watch(await self.world.start_broker(broker_id))

    async def step(self) -> None:
        world = self.world
        up, down = sorted(world.brokers), [b for b in BROKERS if b not in world.brokers]
        deed = self.random.choice(
            ["kill", "expire", "start", "start", "cut", "lose", "lose", "wait"]
        )
        if deed == "start" and down:
            await self.start(self.random.choice(down))
        elif deed == "kill" and up:
            world.kill(self.random.choice(up))
        elif deed == "expire" and up:
            await world.kill_and_expire(self.random.choice(up))
        elif deed == "cut" and up:
            client = world.zookeeper.client(world.brokers[self.random.choice(up)].node)
            client.disconnect()
            await asyncio.sleep(self.random.uniform(0, 5))  # less than a session
            client.reconnect()
        elif deed == "lose" and up:
            session = world.brokers[self.random.choice(up)].session
            world.zookeeper.lose_next_reply(session, znodes.CONTROLLER_EPOCH)
        else:
            await asyncio.sleep(self.random.uniform(0, 8))
        await asyncio.sleep(self.random.uniform(0, 0.5))
        await self.observe()

    async def observe(self) -> None:
        self.watcher.check()
        for topic in await self.world.store.topics():
            node = await self.world.store.topic(topic)
            for partition in PARTITIONS if node is not None else ():
                name = TopicPartition(topic, partition)
                state = await self.world.state(name)
                if state is not None and node is not None and node.topic_id is not None:
                    self.watcher.check_state(node.topic_id, name, state)


async def converged(world: ControlWorld) -> bool | None:
    """True if every partition has a leader that received its role and that every broker knows."""
    for partition in (TopicPartition("flights", p) for p in PARTITIONS):
        state = await world.state(partition)
        if state is None or state.leader not in world.brokers:
            return None
        for broker_id, broker in world.brokers.items():
            metadata, role = broker.metadata(partition), broker.role(partition)
            if metadata is None or metadata.leader_epoch != state.leader_epoch:
                return None
            if broker_id in PARTITIONS[partition.partition] and (
                role is None
                or (role.leader, role.leader_epoch) != (state.leader, state.leader_epoch)
            ):
                return None
            if broker.live_brokers() != set(BROKERS):
                return None
    return True


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_the_cluster_comes_to_one_mind(seed: int) -> None:
    async def test(world: ControlWorld) -> None:
        chaos = Chaos(world, seed)
        for broker_id in BROKERS:
            await chaos.start(broker_id)
        await world.create_topic("flights", PARTITIONS)
        await world.create_topic("doomed", PARTITIONS)
        for step in range(25):
            if step == 10:
                await world.store.ensure(znodes.delete_topic_path("doomed"))
            await chaos.step()
        for broker_id in BROKERS:
            if broker_id not in world.brokers:
                await chaos.start(broker_id)
        await world.until_some(lambda: converged(world))

        async def deleted() -> bool | None:
            return await world.store.topics() == ["flights"] or None

        await world.until_some(deleted)
        await chaos.observe()

    run_world(test, seed=seed)


def test_the_watcher_sees_two_leaders_in_one_epoch_and_an_isr_that_grew() -> None:
    watcher = Watcher()
    partition = TopicPartition("flights", 0)
    watcher.check_state("id", partition, LeaderAndIsr(1, 3, (1,), 1, 4))
    with pytest.raises(Violation, match="entered"):
        watcher.check_state("id", partition, LeaderAndIsr(1, 3, (1, 2), 1, 5))
    with pytest.raises(Violation, match="back"):
        watcher.check_state("id", partition, LeaderAndIsr(1, 2, (1,), 1, 5))
