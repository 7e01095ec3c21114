"""A cluster under random faults: producers write with acks=all while a nemesis breaks things.

    python -m tests.support.random_faults FIRST_SEED COUNT [kills-only]

runs many seeds and prints those that failed. `min.insync.replicas` is 2 and elections are clean.
Every acknowledged record must be at its offset with its value, in the order in which it was sent,
and so must every record that a consumer saw. Once everything is healed, every ISR must be full,
every record sent must be acknowledged, and producing must continue.

The nemesis stays within what the promise covers. It may kill, cut and expire sessions in any
number. A broker may lose power, so that its disk loses what was not flushed, in two cases: each
partition has another replica, running or not, with everything committed on a disk that has lost
nothing since; or the broker is the last of its ISR and has reported its log as flushed.
"""

import asyncio
import logging
import random
import sys
import time
import traceback
from dataclasses import dataclass, field

from barnabas import Admin, Consumer, Producer
from barnabas.producer.handle import DeliveryHandle
from barnabas_common.errors import BarnabasError
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import Invariants
from barnabas_simulator.loop import run

from tests.support.delivery import History, judge

TOPIC = "flights"
PARTITIONS = [TopicPartition(TOPIC, number) for number in range(3)]
MAX_SECONDS = 3600.0
HEALING_SECONDS = 60.0
CONFIG = {
    "replica.lag.time.max.ms": "5000",
    "replica.socket.timeout.ms": "5000",
    "controller.socket.timeout.ms": "5000",
    "controlled.shutdown.retry.backoff.ms": "1000",
    "eligible.leader.replicas.wait.ms": "600000",  # the nemesis may keep a better replica away
}


@dataclass
class RandomFaults:
    """One run: `steps` acts of the nemesis, then healing and the final checks."""

    seed: int
    steps: int = 25
    power_loss: bool = True
    detection: str = "evidence"
    checked: bool = True
    acts: list[str] = field(default_factory=list)
    histories: dict[TopicPartition, History] = field(
        default_factory=lambda: {partition: History() for partition in PARTITIONS}
    )

    seen: dict[TopicPartition, dict[int, bytes]] = field(
        default_factory=lambda: {partition: {} for partition in PARTITIONS}
    )

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._cluster = SimulatedCluster(
            self.seed, config={**CONFIG, "failure.detection": self.detection}
        )
        self.invariants = Invariants(self._cluster)
        self._cuts: list[tuple[int, int]] = []
        self._without_zookeeper: list[int] = []
        self._stop = False
        self._lost_at: dict[int, int] = {}  # the zxid at each broker's last loss of power
        self.power_losses = {"in all": 0, "of a last member": 0}
        self._waiting: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        cluster = self._cluster
        if self.checked:
            self.invariants.install()
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(
                TOPIC, len(PARTITIONS), replication_factor=3, configs={"min.insync.replicas": "2"}
            )
        started = asyncio.Event()
        producing = asyncio.create_task(self._produce(started))
        await started.wait()
        consuming = asyncio.create_task(self._consume())
        for _ in range(self.steps):
            await asyncio.sleep(self._random.choice([0.01, 0.1, 1.0, 3.0]) * self._random.random())
            await self._act()
        await self._heal()
        self._stop = True
        await producing
        consuming.cancel()
        records = await self._read_back()
        judge(self.histories, records).assert_good()
        if self.checked:
            await self.invariants.at_rest()
        for partition, seen in self.seen.items():
            lost = seen.items() - dict(records[partition]).items()
            assert not lost, f"{partition}: a consumer has seen what is lost now: {sorted(lost)}"

    # ---- the producer

    async def _produce(self, started: asyncio.Event) -> None:
        """Send unique values to all partitions; record each as sent, and later as acknowledged."""
        cluster, number = self._cluster, 0
        async with Producer(
            cluster.bootstrap,
            runtime=cluster.client_runtime("producer"),
            request_timeout_ms=4_000,
            delivery_timeout_ms=600_000,
        ) as producer:
            started.set()
            while not self._stop:
                for partition in PARTITIONS:
                    value = b"%d" % number
                    self.histories[partition].sent.append(value)
                    self.invariants.sent(partition, value)
                    handle = await producer.send(TOPIC, value, partition=partition.partition)
                    waiting = asyncio.create_task(self._await(partition, value, handle))
                    self._waiting.append(waiting)
                number += 1
                await asyncio.sleep(0.05 * self._random.random())
            async with asyncio.timeout(HEALING_SECONDS):
                await producer.flush()
                await asyncio.gather(*self._waiting)

    async def _await(self, partition: TopicPartition, value: bytes, handle: DeliveryHandle) -> None:
        offset = (await handle).offset
        self.histories[partition].acked[value] = offset
        self.invariants.acked(partition, offset, value)

    # ---- the consumers

    async def _consume(self) -> None:
        """Read from whichever broker leads."""
        async with self._consumer("reader") as consumer:
            consumer.assign(PARTITIONS)
            while True:
                for record in await consumer.poll(timeout_ms=500):
                    tp = TopicPartition(record.topic, record.partition)
                    self.seen[tp][record.offset] = record.value or b""
                    self.invariants.consumed(tp, record.offset, record.value or b"")

    def _consumer(self, name: str) -> Consumer:
        return Consumer(
            bootstrap_servers=self._cluster.bootstrap,
            runtime=self._cluster.client_runtime(name),
            auto_offset_reset="earliest",
        )

    async def _read_back(self) -> dict[TopicPartition, list[tuple[int, bytes]]]:
        consumed: dict[TopicPartition, list[tuple[int, bytes]]] = {tp: [] for tp in PARTITIONS}
        async with self._consumer("judge") as consumer:
            consumer.assign(PARTITIONS)
            ends = await consumer.end_offsets(PARTITIONS)
            while any([await consumer.position(tp) < ends[tp] for tp in PARTITIONS]):
                for record in await consumer.poll(timeout_ms=500):
                    tp = TopicPartition(record.topic, record.partition)
                    consumed[tp].append((record.offset, record.value or b""))
                    self.invariants.consumed(tp, record.offset, record.value or b"")
        return consumed

    # ---- the nemesis

    async def _act(self) -> None:
        rare = self._random.random()
        if rare < 0.1 and self.power_loss:
            self._lose_power()
            return
        if rare > 0.95:
            await self._stop_one()
            return
        acts = [self._kill, self._start, self._start, self._bounce, self._cut, self._heal_a_cut]
        acts += [self._expire, self._part, self._reunite, self._kill_all]
        self._random.choices(acts, [4, 6, 6, 4, 3, 4, 2, 2, 3, 0.3])[0]()

    def _note(self, act: str) -> None:
        self.invariants.findings.note(act)
        self.acts.append(f"{asyncio.get_running_loop().time():.3f} {act}")

    def _one(self, brokers: list[int]) -> int | None:
        return self._random.choice(brokers) if brokers else None

    def _kill(self) -> None:
        victim = self._one(self._cluster.running_brokers)
        if victim is not None:
            self._kill_one(victim)

    def _kill_one(self, victim: int, keep_unflushed: bool = True) -> None:
        self._note(f"{'kill' if keep_unflushed else 'power loss of'} {victim}")
        self._forget(victim)
        self._cluster.kill(victim, keep_unflushed)

    def _forget(self, victim: int) -> None:
        """Remove the victim's cuts: they do not apply to its next process."""
        self._cuts = [pair for pair in self._cuts if victim not in pair]
        self._without_zookeeper = [b for b in self._without_zookeeper if b != victim]

    async def _stop_one(self) -> None:
        """Shut a broker down cleanly."""
        victim = self._one(list(self._registered()))
        if victim is not None and self._cluster.is_serving(victim):
            self._note(f"stop {victim}")
            self._forget(victim)
            async with asyncio.timeout(HEALING_SECONDS):
                await self._cluster.stop_broker(victim)

    def _kill_all(self) -> None:
        for victim in self._cluster.running_brokers:
            self._kill_one(victim)

    def _start(self) -> None:
        dead = [b for b in self._cluster.broker_ids if b not in self._cluster.running_brokers]
        broker_id = self._one(dead)
        if broker_id is not None:
            self._note(f"start {broker_id}")
            self._cluster.start_broker(broker_id)

    def _bounce(self) -> None:
        victim = self._one(self._cluster.running_brokers)
        if victim is not None:
            self._kill_one(victim)
            self._note(f"start {victim}")
            self._cluster.start_broker(victim)

    def _lose_power(self) -> None:
        """Cut a broker's power and restart it immediately, while its old session is still open."""
        victim = self._one([b for b in self._cluster.running_brokers if self._may_lose_power(b)])
        if victim is None:
            return
        self.power_losses["of a last member"] += any(
            state.isr == (victim,) for state in self.states().values()
        )
        self.power_losses["in all"] += 1
        self._lost_at[victim] = self._cluster.zookeeper.tree.zxid
        self._kill_one(victim, keep_unflushed=False)
        self._note(f"start {victim}")
        self._cluster.start_broker(victim)

    def _may_lose_power(self, victim: int) -> bool:
        """Whether each partition keeps everything committed without the victim's unflushed data.

        It does if another replica has everything committed, or if the victim is the last member
        of the ISR and has flushed all records that count.
        """
        return all(
            (state.isr == (victim,) and state.durable)
            or any(b != victim and self._is_sound(state, b) for b in (*state.isr, *state.eligible))
            for state in self.states().values()
        )

    def _is_sound(self, state: LeaderAndIsr, broker_id: int) -> bool:
        """Whether the replica has lost nothing since it last proved what it holds."""
        return state.proved_at.get(broker_id, -1) > self._lost_at.get(broker_id, -1)

    def _cut(self) -> None:
        if len(self._cluster.running_brokers) > 1:
            sender, receiver = self._random.sample(self._cluster.running_brokers, 2)
            self._note(f"cut {sender} -> {receiver}")
            if (sender, receiver) not in self._cuts:
                self._cuts.append((sender, receiver))
            self._cluster.cut(sender, receiver)

    def _heal_a_cut(self) -> None:
        if self._cuts:
            sender, receiver = self._cuts.pop(self._random.randrange(len(self._cuts)))
            self._note(f"heal {sender} -> {receiver}")
            self._cluster.heal(sender, receiver)

    def _expire(self) -> None:
        victim = self._one(list(self._registered()))
        if victim is not None:
            self._note(f"expire {victim}")
            self._cluster.expire_session(victim)

    def _part(self) -> None:
        victim = self._one(list(self._registered()))
        if victim is not None:
            self._note(f"{victim} without ZooKeeper")
            self._without_zookeeper.append(victim)
            self._cluster.part_from_zookeeper(victim)

    def _reunite(self) -> None:
        while self._without_zookeeper:
            victim = self._without_zookeeper.pop()
            self._note(f"{victim} with ZooKeeper")
            self._cluster.reunite_with_zookeeper(victim)

    # ---- healing

    async def _heal(self) -> None:
        self._note("heal")
        self.invariants.healed()
        while self._cuts:
            self._heal_a_cut()
        self._reunite()
        while len(self._cluster.running_brokers) < len(self._cluster.broker_ids):
            self._start()
        async with asyncio.timeout(HEALING_SECONDS):
            await self._cluster.serving()
            while not all(len(state.isr) == 3 for state in self.states().values()):
                await asyncio.sleep(0.2)

    # ---- the state of the cluster, read from the server's tree

    def states(self) -> dict[TopicPartition, LeaderAndIsr]:
        tree, found = self._cluster.zookeeper.tree, {}
        for partition in PARTITIONS:
            node = tree.node(znodes.state_path(partition))
            found[partition] = znodes.decode_state(partition, node.data, node.version)
        return found

    def _registered(self) -> dict[int, int]:
        """Return the broker epochs of the running brokers that are registered.

        The registration may still be that of an earlier incarnation.
        """
        tree = self._cluster.zookeeper.tree
        nodes = {b: tree.find(znodes.broker_path(b)) for b in self._cluster.running_brokers}
        return {broker_id: node.czxid for broker_id, node in nodes.items() if node is not None}


def run_seed(seed: int, **options: bool | int | str) -> RandomFaults:
    """Run one seed on virtual time; raises an error that says what failed."""
    faults = RandomFaults(seed, **options)  # type: ignore[arg-type]
    run(faults.run(), seed=seed, max_time=MAX_SECONDS)
    return faults


def main(first: int, count: int, power_loss: bool) -> None:
    logging.disable(logging.CRITICAL)
    failed = []
    for seed in range(first, first + count):
        began = time.perf_counter()
        try:
            faults = run_seed(seed, power_loss=power_loss)
            acked = sum(len(history.acked) for history in faults.histories.values())
            print(f"seed {seed}: {acked} records, {time.perf_counter() - began:.1f} s", flush=True)
        except Exception as error:
            failed.append(seed)
            print(f"seed {seed}: FAILED {type(error).__name__}: {str(error)[:600]}", flush=True)
            if not isinstance(error, AssertionError | BarnabasError):
                traceback.print_exc(limit=-4)
    print(f"{len(failed)} of {count} seeds failed: {failed}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), power_loss="kills-only" not in sys.argv)
