"""Applies a list of faults to a cluster, ends each in time, and finally heals everything."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from barnabas_common.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

from barnabas_simulator.campaign import state
from barnabas_simulator.campaign.faults.budget import (
    folders_to_lose,
    keeps_what_is_committed,
    last_epoch,
    may_forget,
)
from barnabas_simulator.campaign.faults.connection_faults import ConnectionFaults
from barnabas_simulator.campaign.faults.disk_faults import DiskFaults
from barnabas_simulator.campaign.faults.faults import (
    DESTROYING,
    OF_CONNECTIONS,
    OF_SESSIONS,
    OF_TRANSACTIONS,
    OF_ZOOKEEPER,
    Fault,
    FaultKind,
    Undo,
    nothing,
)
from barnabas_simulator.campaign.faults.loss_window import LossWindow
from barnabas_simulator.campaign.faults.network_faults import NetworkFaults
from barnabas_simulator.campaign.faults.restored_copy import RestoredCopy
from barnabas_simulator.campaign.faults.zookeeper_faults import ZooKeeperFaults
from barnabas_simulator.cluster import SimulatedCluster

SUPERVISOR_SECONDS = 0.5
STOP_SECONDS = 20.0
LATELY_SECONDS = 5.0
SKEWS_MS = (-3_000_000, -90_000, -300, 300, 90_000, 3_000_000)  # less than any retention

OF_ONE_DISK = (
    FaultKind.FAIL_WRITE,
    FaultKind.FAIL_FLUSH,
    FaultKind.DISK_FULL,
    FaultKind.NO_DESCRIPTORS,
    FaultKind.FAIL_DIRECTORY,
    FaultKind.ROT,
    FaultKind.ROT_INDEX,
)


class Nemesis:
    """`note` is called with each action as text; `struck` and `skipped` count the kinds.

    A fault is skipped if it has no target now, or if it would destroy more than the promise of
    durability covers (`budget.py`). `election_waits` seconds for a replica that lost nothing.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        clients: Sequence[str],
        strike_client: Callable[[Fault], Undo | None],
        note: Callable[[str], None],
        election_waits: float = 0.0,
        min_isr: int = 1,
    ) -> None:
        self.struck: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.network = NetworkFaults(cluster, clients)
        self._chance = random.Random("nemesis")
        self._connections = ConnectionFaults(cluster, self.network, clients, self._resolve)
        self._zookeeper = ZooKeeperFaults(cluster, self._resolve, self._chance)
        self._restored = RestoredCopy(cluster, min_isr, self._zookeeper.has_damage)
        self.disks = DiskFaults(cluster, random.Random("disks"))
        self._cluster = cluster
        self._strike_client = strike_client
        self._note = note
        self._down: Counter[int] = Counter()  # brokers that must not be started yet
        self._without_zookeeper: Counter[int] = Counter()
        self._undos: dict[int, tuple[Fault, asyncio.TimerHandle, Undo]] = {}
        self._felt_at: dict[FaultKind, float] = {}
        self._numbers = 0
        self._for_ever: list[Undo] = []
        self._power_cycled_at: dict[int, int] = {}  # the zxid, by broker
        self._loss_window = LossWindow(cluster, election_waits)
        self._stopping: dict[int, asyncio.Task[None]] = {}
        self._supervisor = asyncio.get_running_loop().create_task(self._supervise())

    async def play(self, faults: Sequence[Fault]) -> None:
        """Strike each fault at its time, counted from now."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._restored.schedule(faults)
        for fault in faults:
            await asyncio.sleep(max(0.0, began + fault.at - loop.time()))
            await self._loss_window.before(fault)
            await self._strike(fault)
        await self._loss_window.over()

    async def heal(self) -> None:
        """End every fault now, so that every broker is started."""
        self._note("heal everything")
        for number in list(self._undos):
            self._end(number)
        for disk in self._cluster.disks.values():
            disk.repair()
        for broker_id in self.disks.to_flip_back():
            if (stopping := self._stopping.get(broker_id)) is not None:
                await stopping
            if broker_id in self._cluster.running_brokers:
                self._cluster.kill(broker_id)
            self._cluster.disks[broker_id].flip_back()
            self._start(broker_id)
        self._restart_after_repair()
        self._cluster.network.links.lose_nothing_more()
        for stopping in list(self._stopping.values()):
            await stopping

    def close(self) -> None:
        """Stop, without ending the faults."""
        self._supervisor.cancel()
        for _, timer, _ in self._undos.values():
            timer.cancel()

    def present(self) -> Iterable[FaultKind]:
        """Return the kinds of faults that last, or have begun or ended in the last seconds."""
        since = asyncio.get_running_loop().time() - LATELY_SECONDS
        lately = [kind for kind, at in self._felt_at.items() if at >= since]
        return dict.fromkeys([*lately, *(fault.kind for fault, _, _ in self._undos.values())])

    # ---- one fault

    async def _strike(self, fault: Fault) -> None:
        undo: Undo | None
        match fault.kind:
            case FaultKind.KILL_ALL:
                undo = self._kill_all()
            case FaultKind.RESTORE_ZOOKEEPER:
                undo = await self._restore_zookeeper(fault)
            case FaultKind.CUT_POWER:
                undo = self._cut_power()
            case FaultKind.EVICT:
                undo = await self._evict(fault, self._resolve(fault.target))
            case FaultKind.RING:
                undo = self.network.ring()
            case FaultKind.KILL_CLIENT | FaultKind.KILL_MEMBER | FaultKind.PAUSE_MEMBER:
                undo = self._strike_client_now(fault)
            case FaultKind.STALL_MEMBER | FaultKind.LEAVE_GROUP:
                undo = self._strike_client_now(fault)
            case kind if kind in OF_TRANSACTIONS:
                undo = self._strike_client_now(fault)
            case kind if kind in OF_ZOOKEEPER:
                undo = self._noted(fault, self._zookeeper.strike_data(fault))
            case kind if kind in OF_CONNECTIONS:
                undo = self._noted(fault, self._connections.strike(fault))
            case _:
                undo = self._strike_one(fault, self._resolve(fault.target))
        if undo is None:
            self.skipped[fault.kind] += 1
            return
        self.struck[fault.kind] += 1
        self._felt_at[fault.kind] = asyncio.get_running_loop().time()
        if fault.seconds and fault.kind is not FaultKind.RESTORE_ZOOKEEPER:  # which has ended
            self._later(fault, undo)
        else:
            undo()

    def _strike_client_now(self, fault: Fault) -> Undo | None:
        self._note(str(fault))
        return self._strike_client(fault)

    def _noted(self, fault: Fault, undo: Undo | None) -> Undo | None:
        if undo is not None:
            self._note(str(fault))
        return undo

    def _strike_one(self, fault: Fault, victim: int | None) -> Undo | None:
        """Strike one broker; returns how to end the fault, or None if it is impossible now."""
        if victim is None:
            return None
        if fault.kind in DESTROYING:
            return self._destroy(fault, victim)
        acts: dict[FaultKind, Callable[[int], Undo | None]] = {
            FaultKind.KILL: self._kill,
            FaultKind.STOP: self._stop,
            FaultKind.PAUSE: self._pause,
            FaultKind.SKEW: self._skew,
            FaultKind.UNPLUG: self._unplug,
            FaultKind.POWER_CYCLE: self._power_cycle,
            FaultKind.SPOIL_CHECKPOINT: self._spoil_checkpoint,
            FaultKind.ROT_CHECKPOINT: partial(self._spoil_checkpoint, bit=True),
            FaultKind.PART_ZOOKEEPER: self._part_zookeeper,
        }
        act = acts.get(fault.kind)
        if act is not None:
            undo = act(victim)
        elif fault.kind in OF_ONE_DISK:
            undo = self.disks.strike(fault, victim)
        elif fault.kind in OF_SESSIONS:
            undo = self._zookeeper.strike(fault, victim)
        else:
            undo = self.network.strike(fault, victim)
        if undo is not None:
            self._note(f"{fault} (broker {victim})")
        return undo

    def _resolve(self, target: str) -> int | None:
        """Return the running broker that a target means."""
        running_brokers = [b for b in self._cluster.running_brokers if b not in self._stopping]
        leader = state.leader(self._cluster)
        match target:
            case "leader":
                victim = leader
            case "coordinator":
                victim = state.leader(self._cluster, GROUP_METADATA_TOPIC)
            case "transactions":
                victim = state.leader(self._cluster, TRANSACTION_STATE_TOPIC)
            case "controller":
                victim = state.controller(self._cluster)
            case "follower":
                victim = next((b for b in running_brokers if b != leader), None)
            case _:
                victim = int(target)
        return victim if victim in running_brokers else None

    # ---- ends

    def _later(self, fault: Fault, undo: Undo) -> None:
        self._numbers += 1
        number = self._numbers
        timer = asyncio.get_running_loop().call_later(fault.seconds, self._end, number, fault)
        self._undos[number] = (fault, timer, undo)

    def _end(self, number: int, fault: Fault | None = None) -> None:
        ended, timer, undo = self._undos.pop(number)
        self._felt_at[ended.kind] = asyncio.get_running_loop().time()
        timer.cancel()
        if fault is not None:
            self._note(f"end of {fault}")
        undo()

    async def _supervise(self) -> None:
        """Restart every broker that does not run and should, as a process supervisor would."""
        while True:
            await asyncio.sleep(SUPERVISOR_SECONDS)
            for broker_id in self._cluster.broker_ids:
                if broker_id not in self._cluster.running_brokers:
                    self._start(broker_id)
            self._restart_after_repair()

    def _restart_after_repair(self) -> None:
        """A directory that has failed is used again from the next start on."""
        for broker_id in self.disks.to_restart():
            if broker_id not in self._stopping:
                self._note(f"restart broker {broker_id}, whose directory has recovered")
                self._cluster.kill(broker_id)

    def _start(self, broker_id: int) -> None:
        running_brokers = broker_id in self._cluster.running_brokers or broker_id in self._stopping
        if running_brokers or self._down[broker_id]:
            return
        self._note(f"start broker {broker_id}")
        self._cluster.start_broker(broker_id)
        if self._without_zookeeper[broker_id]:
            self._cluster.part_from_zookeeper(broker_id)

    def _keep_down(self, *brokers: int) -> Undo:
        self._down.update(brokers)

        def undo() -> None:
            self._down.subtract(brokers)
            for broker_id in brokers:
                self._start(broker_id)

        return undo

    # ---- processes

    def _kill(self, victim: int) -> Undo:
        self._cluster.kill(victim)
        return self._keep_down(victim)

    def _kill_all(self) -> Undo | None:
        victims = [b for b in self._cluster.running_brokers if b not in self._stopping]
        if not victims:
            return None
        self._note("kill every broker")
        for victim in victims:
            self._cluster.kill(victim)
        return self._keep_down(*victims)

    def _stop(self, victim: int) -> Undo | None:
        """A clean shutdown; one that hangs is killed."""
        if not self._cluster.is_serving(victim) or self._cluster.is_paused(victim):
            return None

        async def stop() -> None:
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await self._cluster.stop_broker(victim)
            except (OSError, TimeoutError) as error:
                self._note(f"broker {victim} did not stop cleanly: {error!r}")
            finally:
                del self._stopping[victim]

        undo = self._keep_down(victim)
        self._stopping[victim] = asyncio.get_running_loop().create_task(stop())
        return undo

    def _pause(self, victim: int) -> Undo | None:
        if self._cluster.is_paused(victim):
            return None
        self._cluster.pause(victim)
        incarnation = self._cluster.incarnation(victim)

        def undo() -> None:
            if (
                victim in self._cluster.running_brokers
                and self._cluster.incarnation(victim) == incarnation
            ):
                self._cluster.resume(victim)

        return undo

    def _skew(self, victim: int) -> Undo:
        self._cluster.set_clock(victim, self._chance.choice(SKEWS_MS))
        return lambda: self._cluster.set_clock(victim, 0)

    def _destroy(self, fault: Fault, victim: int) -> Undo | None:
        """Take from a disk what was not flushed, a partition's folder, or all of it."""
        disk = self._cluster.disks[victim]
        folders = folders_to_lose(disk)
        if self._zookeeper.znodes.damaged or not self._may_forget(victim):
            return None
        if fault.kind is FaultKind.LOSE_FOLDER and not folders:
            return None
        self._note(f"{fault} (broker {victim})")
        self._loss_window.begin(victim)
        if fault.kind is FaultKind.LOSE_POWER:
            self._cluster.lose_power(victim)
        else:
            self._cluster.kill(victim)
        if fault.kind is FaultKind.WIPE:
            disk.wipe()
        elif fault.kind is FaultKind.LOSE_FOLDER:
            disk.lose_directory(self._chance.choice(folders))
        return self._keep_down(victim)

    def _may_forget(self, victim: int) -> bool:
        unwell = [b for b, count in self._without_zookeeper.items() if count]
        return may_forget(self._cluster, victim, unwell)

    def _power_cycle(self, victim: int) -> Undo | None:
        if not keeps_what_is_committed(self._cluster, victim, self._power_cycled_at):
            return None
        self._power_cycled_at[victim] = last_epoch(self._cluster)
        self._cluster.kill(victim, keep_unflushed=False)
        return self._keep_down(victim)

    async def _evict(self, fault: Fault, victim: int | None) -> Undo | None:
        """Kill a broker whose flush has just failed, and drop its page cache."""
        if victim is None or self.disks.is_damaged(victim):
            return None
        if not await self.disks.failed_flush(victim, fault.seconds):
            return None
        if not self._may_forget(victim):
            return None
        self._note(f"{fault} (broker {victim})")
        self._loss_window.begin(victim)
        if victim in self._cluster.running_brokers and victim not in self._stopping:
            self._cluster.kill(victim)
        self._cluster.disks[victim].evict()
        return self._keep_down(victim)

    def _cut_power(self) -> Undo | None:
        """All machines lose power at once, those of brokers that do not run too."""
        is_damaged = any(self.disks.is_damaged(b) for b in self._cluster.broker_ids)
        if self._stopping or is_damaged:  # a start after it cuts a log at the damage
            return None
        self._note("cut the power of all machines")
        for broker_id in self._cluster.broker_ids:
            if broker_id in self._cluster.running_brokers:
                self._cluster.lose_power(broker_id)
            else:
                self._cluster.disks[broker_id].crash(keep_unflushed=False)
        self._loss_window.end()  # all have lost something
        return self._keep_down(*self._cluster.broker_ids)

    def _spoil_checkpoint(self, victim: int, bit: bool = False) -> Undo | None:
        if not self.disks.has_checkpoints(victim):
            return None
        undo = self._kill(victim)
        self.disks.spoil_checkpoint(victim, bit)
        return undo

    # ---- ZooKeeper

    def _part_zookeeper(self, victim: int) -> Undo:
        self._without_zookeeper[victim] += 1
        self._cluster.part_from_zookeeper(victim)

        def undo() -> None:
            self._without_zookeeper[victim] -= 1
            if not self._without_zookeeper[victim] and victim in self._cluster.running_brokers:
                self._cluster.reunite_with_zookeeper(victim)

        return undo

    def _unplug(self, victim: int) -> Undo:
        undos = [self._part_zookeeper(victim), self.network.unplug(victim)]

        def undo() -> None:
            for one in undos:
                one()

        return undo

    async def _restore_zookeeper(self, fault: Fault) -> Undo | None:
        """The operator mends everything else first."""
        await self.heal()
        if not await self._restored.until_covered(fault):
            return None
        self._note(str(fault))
        await self._restored.run(fault)
        return nothing

    # ---- permanent faults

    def break_for_ever(self, outsiders: Sequence[int], chance: random.Random) -> None:
        """Kill, pause, unplug or part from ZooKeeper each of these brokers, until `mend`."""
        ways = [self._kill, self._pause, self._unplug, self._part_zookeeper]
        for broker_id in outsiders:
            way = (
                chance.choice(ways)
                if broker_id in self._cluster.running_brokers
                else self._keep_down
            )
            undo = way(broker_id)
            assert undo is not None
            name = way.__name__.strip("_").replace("_", "-")
            self._note(f"for ever: {name} broker {broker_id}")
            self.struck[f"for ever: {name}"] += 1
            self._for_ever.append(undo)

    def mend(self) -> None:
        while self._for_ever:
            self._for_ever.pop()()
