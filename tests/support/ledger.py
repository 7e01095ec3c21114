"""Everything that a cluster has acknowledged to producers, transactions and groups, read back."""

import contextlib
from random import Random

from barnabas import Admin, Consumer, Producer
from barnabas_common.errors import CorruptMessageError
from barnabas_common.topic_partition import TopicPartition

from tests.support.cluster_state import create_topic, wait_until_in_sync

PLAIN, COMPACTED, TRANSACTIONS = (
    TopicPartition(topic, 0) for topic in ("plain", "compacted", "transactions")
)
GROUP = "readers"
TOPICS = (PLAIN.topic, COMPACTED.topic, TRANSACTIONS.topic)
INTERNAL = ("__consumer_offsets", "__transaction_state")
KEYS = 15


class Ledger:
    """`write` adds records, transactions and a committed offset; `check` finds what is missing."""

    def __init__(self, bootstrap: str, random: Random) -> None:
        self._bootstrap = bootstrap
        self._random = random
        self.plain: dict[int, bytes] = {}
        self.newest: dict[bytes, tuple[int, bytes]] = {}
        self.committed: list[bytes] = []
        self.group_offset = 0
        self._written = 0

    async def create_topics(self) -> None:
        await create_topic(self._bootstrap, PLAIN.topic, 1)
        await create_topic(
            self._bootstrap, COMPACTED.topic, 1, cleanup_policy="compact", segment_ms="2000"
        )
        await create_topic(self._bootstrap, TRANSACTIONS.topic, 1)

    async def until_in_sync(self, within: float) -> None:
        for topic in (*TOPICS, *INTERNAL):
            await wait_until_in_sync(self._bootstrap, topic, within=within)

    def _value(self) -> bytes:
        self._written += 1
        return b"%d " % self._written * 8

    async def write(self, count: int) -> None:
        """Everything is acknowledged when it returns."""
        async with Producer(self._bootstrap) as producer:
            for _ in range(count):
                value = self._value()
                told = await producer.send_and_wait(PLAIN.topic, value, partition=0)
                self.plain[told.offset] = value
                key, value = b"%d" % self._random.randrange(KEYS), self._value()
                told = await producer.send_and_wait(COMPACTED.topic, value, key, partition=0)
                self.newest[key] = (told.offset, value)
        await self._write_transactions()
        self.group_offset += 1
        async with Admin(self._bootstrap) as admin:
            await admin.alter_group_offsets(GROUP, {PLAIN: self.group_offset})

    async def _write_transactions(self) -> None:
        """Three; the second is aborted."""
        async with Producer(self._bootstrap, transactional_id="ledger") as producer:
            await producer.init_transactions()
            for number in range(3):
                await producer.begin_transaction()
                values = [self._value() for _ in range(5)]
                for value in values:
                    await producer.send(TRANSACTIONS.topic, value, partition=0)
                if number == 1:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
                    self.committed += values

    async def check(self) -> None:
        """Fail with what was acknowledged and is not there."""
        plain = dict(await self._read(PLAIN))
        lost = [(o, v) for o, v in self.plain.items() if plain.get(o) != v]
        assert not lost, f"{len(lost)} of {len(self.plain)} records are lost: {lost[:3]}"
        compacted = dict(await self._read(COMPACTED))
        gone = [(k, t) for k, t in self.newest.items() if compacted.get(t[0]) != t[1]]
        assert not gone, f"the newest records of keys are lost: {gone[:3]}"
        visible = [value for _, value in await self._read(TRANSACTIONS)]
        assert visible == self.committed, f"{len(visible)} of {len(self.committed)} are visible"
        async with Admin(self._bootstrap) as admin:
            offsets = await admin.list_group_offsets(GROUP)
        assert offsets[PLAIN].offset == self.group_offset

    async def _read(self, partition: TopicPartition) -> list[tuple[int, bytes]]:
        """A reader may be told of damage on one replica; the others have a valid copy."""
        found: list[tuple[int, bytes]] = []
        async with Consumer(
            bootstrap_servers=self._bootstrap,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer:
            consumer.assign([partition])
            end = (await consumer.end_offsets([partition]))[partition]
            while await consumer.position(partition) < end:
                with contextlib.suppress(CorruptMessageError):
                    found += [(r.offset, r.value or b"") for r in await consumer.poll(500)]
        return found
