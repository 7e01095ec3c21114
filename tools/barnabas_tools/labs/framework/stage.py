"""The stage of a lab: a real cluster, the means to break it, and a place to report what is seen.

A scenario reads like the events it plays:

    await stage.create_topic("letters")
    await stage.produce("letters", [b"a", b"b"])
    leader = await stage.leader("letters")
    await stage.kill(leader)
    await stage.until("another broker leads", lambda: stage.led_by_another("letters", leader))
    values = await stage.read("letters")
    stage.check("no acknowledged record is lost", values == [b"a", b"b"], values)
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas import Admin, Consumer, Producer
from barnabas.consumer.config import IsolationLevel
from barnabas_common.errors import BarnabasError
from barnabas_common.messages.metadata import PartitionMetadata
from barnabas_common.messages.replicas import ReplicaDescription
from barnabas_common.record.reader import records_from
from barnabas_common.runtime import Address, PausePoint, TaskScope
from barnabas_common.runtime.file_pauses import FilePauseControl
from barnabas_common.topic_partition import TopicPartition
from barnabas_common.transport.grpc_network import GrpcNetwork
from barnabas_controller.zookeeper.kazoo_session import connect_kazoo
from barnabas_controller.zookeeper.session import NoNode

from barnabas_tools.labs.framework.outcome import Check
from barnabas_tools.labs.framework.view import View
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.ports import HOST

POLL_SECONDS = 0.02
# Generous: most conditions take a second or two on an idle machine.
PATIENCE_SECONDS = 30.0

T = TypeVar("T")


class ScenarioBroken(Exception):
    """A condition that the rest of the scenario depends on did not occur."""


class LabCluster:
    """Everything a scenario may do. `tell` receives each line for the reader; `catch_up` prints all
    events of the brokers that answer, and returns which did; `patience` is how many seconds to wait
    for a condition; `application` has the settings of the scenario's programs."""

    def __init__(
        self,
        cluster: LocalCluster,
        tell: Callable[[str], None],
        catch_up: Callable[[], Awaitable[set[int]]],
        patience: float = PATIENCE_SECONDS,
        application: Mapping[str, str] | None = None,
    ) -> None:
        self.cluster = cluster
        self.application = dict(application or {})
        self.checks: list[Check] = []
        self._tell = tell
        self._catch_up = catch_up
        self._patience = patience
        self._tasks = TaskScope("scenario")

    async def __aenter__(self) -> Self:
        ports = {broker: self.cluster.layout.ports(broker)[0] for broker in self.cluster.broker_ids}
        addresses = {broker: Address(HOST, port) for broker, port in ports.items()}
        self.view = View(GrpcNetwork(), addresses)
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self._tasks.close()
        finally:
            await self.view.close()

    def meanwhile(self, doing: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run a coroutine concurrently with the scenario, until either ends."""
        return self._tasks.spawn(doing, "meanwhile")

    # ---- what the reader sees

    def say(self, text: str) -> None:
        """Print the next step."""
        self._tell(text)

    async def catch_up(self) -> None:
        """Wait until the events so far are printed, so that the next step comes after them."""
        await self._catch_up()

    def check(self, claim: str, holds: bool, seen: object = "") -> None:
        """Check something that the mechanism promises; the lab fails if it does not hold."""
        self.checks.append(Check(claim, bool(holds), str(seen)))
        self._tell(f"  {'✓' if holds else '✗'} {claim}" + (f": {seen}" if seen != "" else ""))

    async def until(self, what: str, condition: Callable[[], Awaitable[bool]]) -> float:
        """Wait for a condition; returns the seconds it took.

        Raises ScenarioBroken if it does not hold within the stage's patience.
        """
        took = await self.comes(condition)
        if took is None:
            raise ScenarioBroken(f"waited {self._patience:g} s in vain until {what}")
        return took

    async def comes(self, condition: Callable[[], Awaitable[bool]]) -> float | None:
        """Wait for a condition that the lab's switch may prevent.

        Returns the seconds it took, or None if it did not hold within the stage's patience.
        """
        now = asyncio.get_running_loop().time
        began = now()
        try:
            async with asyncio.timeout(self._patience):
                while not await condition():  # noqa: ASYNC110 - the condition asks another process
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            return None
        return now() - began

    def after(self, took: float | None) -> str:
        """Describe the result of `comes`, for a check."""
        return f"not after {self._patience:g} s" if took is None else f"after {took:.1f} s"

    # ---- topics and records

    def admin(self) -> Admin:
        """Return an admin client of the present brokers, for `async with`."""
        return Admin(self.view.bootstrap)

    async def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        replicas: Sequence[int] = (1, 2, 3),
        **configs: str,
    ) -> None:
        """Create a topic on these brokers, led by the first, and wait until all are in sync.

        Config names use _ for dots.
        """
        async with self.admin() as admin:
            await admin.create_topic(
                topic,
                configs={name.replace("_", "."): value for name, value in configs.items()},
                assignments={number: list(replicas) for number in range(partitions)},
            )
        await self.until(
            f"all replicas of {topic} are in sync", lambda: self._in_sync(topic, len(replicas))
        )

    async def _in_sync(self, topic: str, replicas: int) -> bool:
        """Whether all present brokers know the topic, and all its replicas are in sync."""
        known = await self.view.knows(topic)
        partitions = await self.view.partitions(topic)
        return all(known.values()) and all(
            p.leader_id >= 0 and len(p.in_sync_replicas) == replicas for p in partitions
        )

    async def produce(
        self, topic: str, values: Sequence[bytes], partition: int = 0, **options: Any
    ) -> list[int]:
        """Send the values one by one; returns their offsets. Raises what the producer raises."""
        async with Producer(self.view.bootstrap, **options) as producer:
            offsets = []
            for value in values:
                metadata = await producer.send_and_wait(topic, value, partition=partition)
                offsets.append(metadata.offset)
            return offsets

    async def try_to_produce(
        self, topic: str, value: bytes, partition: int = 0, **options: Any
    ) -> BarnabasError | None:
        """Send one value; returns its error, or None if it was acknowledged.

        The producer retries a retriable error for `delivery_timeout_ms`.
        """
        given = {"delivery_timeout_ms": 10_000, "request_timeout_ms": 10_000} | options
        try:
            await self.produce(topic, [value], partition, **given)
        except BarnabasError as error:
            return error
        return None

    async def read(
        self,
        topic: str,
        partition: int = 0,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> list[bytes]:
        """Return every record that such a consumer can see now, from the beginning.

        Raises TimeoutError if the log became shorter meanwhile.
        """
        wanted = TopicPartition(topic, partition)
        values: list[bytes] = []
        async with Consumer(
            bootstrap_servers=self.view.bootstrap,
            auto_offset_reset="earliest",
            isolation_level=isolation_level,
        ) as consumer:
            consumer.assign([wanted])
            await consumer.seek_to_beginning(wanted)
            end = (await consumer.end_offsets([wanted]))[wanted]
            async with asyncio.timeout(self._patience):
                while await consumer.position(wanted) < end:
                    records = await consumer.poll(timeout_ms=500)
                    values += [record.value or b"" for record in records]
        return values

    # ---- the state of things

    async def partition(self, topic: str, number: int = 0) -> PartitionMetadata:
        """Return leader, epoch and ISR, of the newest epoch that any present broker knows."""
        for partition in await self.view.partitions(topic):
            if partition.partition == number:
                return partition
        return PartitionMetadata(number)

    async def leader(self, topic: str, partition: int = 0) -> int:
        """Return the leader's broker id, -1 for none."""
        return (await self.partition(topic, partition)).leader_id

    async def isr(self, topic: str, partition: int = 0) -> list[int]:
        return sorted((await self.partition(topic, partition)).in_sync_replicas)

    async def led_by_another(self, topic: str, than: int, partition: int = 0) -> bool:
        return await self.leader(topic, partition) not in (than, -1)

    async def led_by(self, topic: str, broker_id: int, partition: int = 0) -> bool:
        return await self.leader(topic, partition) == broker_id

    async def isr_is(self, topic: str, members: Sequence[int], partition: int = 0) -> bool:
        return await self.isr(topic, partition) == sorted(members)

    async def replicas(self, topic: str, partition: int = 0) -> dict[int, ReplicaDescription]:
        """Return each present broker's description of its own replica, by broker id."""
        return await self.view.replicas(topic, partition)

    async def every_replica(
        self, topic: str, count: int, condition: Callable[[ReplicaDescription], bool]
    ) -> bool:
        """Whether `count` replicas answer, and the condition holds for each of them."""
        replicas = (await self.replicas(topic)).values()
        return len(replicas) == count and all(map(condition, replicas))

    async def log_end(self, broker_id: int, topic: str) -> int:
        """Return the log end offset of a broker's replica; KeyError if the broker is away."""
        return (await self.replicas(topic))[broker_id].log_end_offset

    async def say_replicas(self, topic: str, partition: int = 0) -> None:
        """Print the offsets and the epoch of each replica."""
        for broker_id, replica in sorted((await self.replicas(topic, partition)).items()):
            role = "leader  " if replica.is_leader else "follower"
            self.say(
                f"    broker {broker_id}  {role}  epoch {replica.leader_epoch}"
                f"  LEO {replica.log_end_offset}  HW {replica.high_watermark}"
                + self._stable(replica)
                + (f"  ISR {replica.in_sync_replicas}" if replica.is_leader else "")
            )

    @staticmethod
    def _stable(replica: ReplicaDescription) -> str:
        """The last stable offset, where an open transaction holds it back."""
        held_back = 0 <= replica.last_stable_offset < replica.high_watermark
        return f"  LSO {replica.last_stable_offset}" if held_back else ""

    async def controller(self) -> int:
        """Wait until all present brokers know the same controller, and return it."""
        found: set[int] = set()

        async def agreed() -> bool:
            found.clear()
            found.update((await self.view.controllers()).values())
            return len(found) == 1 and -1 not in found and not found & self.view.away

        await self.until("the brokers agree on a controller", agreed)
        return found.pop()

    def log_values(self, broker_id: int, topic: str, partition: int = 0) -> list[bytes]:
        """Return every record in the log of a stopped broker's replica, read from its disk."""
        content = self.log_bytes(broker_id, topic, partition)
        return [record.value or b"" for record in records_from(content, 0)]

    def log_bytes(self, broker_id: int, topic: str, partition: int = 0) -> bytes:
        """Return the segments of a stopped broker's replica."""
        folder = self.cluster.layout.data_directory(broker_id) / f"{topic}-{partition}"
        segments = sorted(folder.glob("*.log"))
        return b"".join(segment.read_bytes() for segment in segments)

    async def znode(self, path: str) -> str | None:
        """Return the data of a znode, None if it does not exist."""
        session = await connect_kazoo(self.cluster.zookeeper_connect)(10_000, 10_000)
        try:
            data, _ = await session.get(path)
        except NoNode:
            return None
        finally:
            await session.close()
        return data.decode()

    # ---- breaking things

    async def kill(self, broker_id: int) -> None:
        """kill -9."""
        self.say(f"kill -9 of broker {broker_id}")
        self.view.away.add(broker_id)
        await asyncio.to_thread(self.cluster.kill, broker_id)

    async def lose_power(self, *brokers: int) -> None:
        """Stop the machines together; volatile disks then lose everything that was not flushed."""
        self.say(f"power loss of broker {' and '.join(map(str, brokers))}")
        self.view.away.update(brokers)
        for broker_id in brokers:  # so that no broker notices the end of another
            self.cluster.signal(broker_id, signal.SIGSTOP)
        for broker_id in brokers:
            await asyncio.to_thread(self.cluster.kill, broker_id)

    async def stop(self, broker_id: int) -> None:
        """SIGTERM: the broker shuts down cleanly, after its events have been printed."""
        if await self.comes(lambda: self._has_told_its_events(broker_id)) is None:
            self.say(f"    broker {broker_id} does not answer; its last events are missing here")
        self.say(f"SIGTERM to broker {broker_id}: it moves its leaderships and stops")
        self.view.away.add(broker_id)
        await asyncio.to_thread(self.cluster.stop_broker, broker_id)

    async def _has_told_its_events(self, broker_id: int) -> bool:
        """Print what the brokers have recorded. One that has just started may not answer yet."""
        return broker_id in await self._catch_up()

    async def start(self, broker_id: int, wait: bool = True) -> None:
        """Start a broker that does not run; `wait` until it serves and the others know it."""
        self.say(f"start broker {broker_id}")
        await asyncio.to_thread(self.cluster.start_broker, broker_id, wait)
        self.view.away.discard(broker_id)

    async def restart_with(self, broker_id: int, setting: str) -> None:
        """Shut one broker down cleanly and start it with an additional setting."""
        await self.stop(broker_id)
        with self.cluster.layout.properties_file(broker_id).open("a") as properties:
            properties.write(f"{setting}\n")
        await self.start(broker_id)

    @property
    def pauses(self) -> FilePauseControl:
        """Holds brokers at pause points; only in labs with `pause_points`."""
        return self.cluster.pauses

    async def stop_fetching(self, *brokers: int) -> None:
        """Hold these followers before their next fetch, when no response is in flight to them.

        A process stopped by SIGSTOP could still find a response in its socket when it resumes.
        """
        for broker_id in brokers:
            self.pauses.hold(broker_id, PausePoint.FOLLOWER_BEFORE_FETCH)
        for broker_id in brokers:
            await self.pauses.reached(broker_id, PausePoint.FOLLOWER_BEFORE_FETCH)

    async def pause(self, broker_id: int) -> None:
        """SIGSTOP, like a long garbage collection or a suspended virtual machine."""
        self.say(f"pause broker {broker_id}")
        self.view.away.add(broker_id)
        self.cluster.signal(broker_id, signal.SIGSTOP)

    async def resume(self, broker_id: int) -> None:
        """SIGCONT."""
        self.say(f"resume broker {broker_id}")
        self.cluster.signal(broker_id, signal.SIGCONT)
        self.view.away.discard(broker_id)
