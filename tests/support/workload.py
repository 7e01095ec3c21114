"""A producer that records what it sent and what was acknowledged, and the check by reading back.

The integration, Docker and simulation tests use it: it talks to a cluster only through the public
client.
"""

import asyncio
from typing import Any

from barnabas import Consumer, Producer
from barnabas.producer import ProducerMetrics
from barnabas_common.errors import BarnabasError
from barnabas_common.topic_partition import TopicPartition

from tests.support.delivery import History, Verdict, judge


class Workload:
    """Writes unique values round-robin to every partition of one topic until stopped."""

    def __init__(
        self, topic: str, partitions: int, bootstrap: str, pause: float = 0.002, **options: Any
    ) -> None:
        self.topic = topic
        self.partitions = [TopicPartition(topic, p) for p in range(partitions)]
        self.histories = {partition: History() for partition in self.partitions}
        self.failed: list[BarnabasError] = []
        self.metrics = ProducerMetrics()
        self._bootstrap = bootstrap
        self._pause = pause
        self._options: dict[str, Any] = {"acks": "all", "retry_backoff_ms": 50} | options
        self._stop = asyncio.Event()
        self._acked = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    @property
    def acked(self) -> int:
        return sum(len(history.acked) for history in self.histories.values())

    async def __aenter__(self) -> "Workload":
        self._task = asyncio.create_task(self._run(), name="workload")
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop sending, and wait until each record is acknowledged or given up."""
        self._stop.set()
        if self._task is not None:
            task, self._task = self._task, None
            await task

    async def acked_in_every_partition(self, count: int, within: float = 60.0) -> None:
        """Wait until `count` more records are acknowledged in each partition."""
        goal = {tp: len(history.acked) + count for tp, history in self.histories.items()}

        def reached() -> bool:
            return all(len(self.histories[tp].acked) >= goal[tp] for tp in goal)

        async with asyncio.timeout(within), self._acked:
            await self._acked.wait_for(reached)

    async def _run(self) -> None:
        async with Producer(bootstrap_servers=self._bootstrap, **self._options) as producer:
            pending: set[asyncio.Task[None]] = set()
            number = 0
            while not self._stop.is_set():
                for partition in self.partitions:
                    value = b"%s/%d" % (str(partition).encode(), number)
                    self.histories[partition].sent.append(value)
                    handle = await producer.send(
                        partition.topic, value, partition=partition.partition
                    )
                    task = asyncio.create_task(self._await(partition, value, handle))
                    pending.add(task)
                    task.add_done_callback(pending.discard)
                number += 1
                await asyncio.sleep(self._pause)
            await producer.flush()
            await asyncio.gather(*pending)
            self.metrics = producer.metrics()

    async def _await(self, partition: TopicPartition, value: bytes, handle: Any) -> None:
        try:
            metadata = await handle
        except BarnabasError as error:
            self.failed.append(error)
            return
        async with self._acked:
            self.histories[partition].acked[value] = metadata.offset
            self._acked.notify_all()

    async def verdict(self, within: float = 60.0) -> Verdict:
        """Read every partition from beginning to end, and compare with what was acknowledged."""
        return judge(self.histories, await read_all(self._bootstrap, self.partitions, within))


async def read_all(
    bootstrap: str, partitions: list[TopicPartition], within: float = 60.0
) -> dict[TopicPartition, list[tuple[int, bytes]]]:
    """Return offsets and values of every record below the high watermarks seen at the start."""
    consumed: dict[TopicPartition, list[tuple[int, bytes]]] = {tp: [] for tp in partitions}
    async with (
        asyncio.timeout(within),
        Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        while any([await consumer.position(tp) < ends[tp] for tp in partitions]):
            for record in await consumer.poll(timeout_ms=500, max_records=100_000):
                tp = TopicPartition(record.topic, record.partition)
                consumed[tp].append((record.offset, record.value))
    return consumed
