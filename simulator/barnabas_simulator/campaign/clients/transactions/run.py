"""What the transactional clients of a run have in common: their topics, and who they are."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from barnabas_common.errors import BarnabasError, RequestTimedOutError
from barnabas_common.history.operations import Operation
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients.factory import METADATA_MAX_AGE_MS, REQUEST_TIMEOUT_MS
from barnabas_simulator.campaign.clients.recording import recorder
from barnabas_simulator.campaign.clients.transactions.recording import (
    Journal,
    RecordingProducer,
    TakeOver,
    Witness,
)
from barnabas_simulator.campaign.options import COPIERS, COPIES, ORDERS, Options
from barnabas_simulator.cluster import SimulatedCluster

BLOCK_MS = 8_000
MOST_RECORDS = 4  # of a transaction


@dataclass
class TransactionRun:
    """`errors` counts what clients were told, by kind; `operations` is their history.

    `stop` is set when each producer commits its last transaction; only copies come after it.
    """

    cluster: SimulatedCluster
    options: Options
    witness: Witness
    errors: Counter[str]
    note: Callable[[str], None]
    operations: list[Operation] = field(default_factory=list)
    takeovers: list[TakeOver] = field(default_factory=list)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def orders(self) -> list[TopicPartition]:
        return [TopicPartition(ORDERS, n) for n in range(self.options.order_partitions)]

    @property
    def copies(self) -> list[TopicPartition]:
        return [TopicPartition(COPIES, n) for n in range(self.options.order_partitions)]

    def told(self, name: str, error: BarnabasError) -> None:
        self.errors[f"transaction: {type(error).__name__}"] += 1
        self.note(f"{name}: {type(error).__name__}: {error}")

    def journal(self, incarnation: str) -> Journal:
        return Journal(
            recorder(self.operations, incarnation), self.witness, COPIERS, self.takeovers
        )

    def producer(self, incarnation: str, journal: Journal) -> RecordingProducer:
        """The producer of a client; all its incarnations have one transactional id."""
        name, options = incarnation.partition("/")[0], self.options
        return RecordingProducer(
            journal,
            self.cluster.bootstrap,
            runtime=self.cluster.client_runtime(incarnation),
            transactional_id=name,
            client_id=incarnation,
            transaction_timeout_ms=options.transaction_timeout_ms,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            delivery_timeout_ms=max(options.transaction_timeout_ms, 2 * REQUEST_TIMEOUT_MS),
            max_block_ms=BLOCK_MS,
            batch_size=options.batch_size,
            linger_ms=options.linger_ms,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )

    def member_options(self, incarnation: str) -> dict[str, Any]:
        """The options of a copier's consumer."""
        options = self.options
        return {
            "runtime": self.cluster.client_runtime(incarnation),
            "group_id": COPIERS,
            "client_id": incarnation.partition("/")[0],
            "partition_assignment_strategy": options.assignors.split(","),
            "session_timeout_ms": options.member_session_ms,
            "heartbeat_interval_ms": options.heartbeat_ms,
            "max_poll_interval_ms": options.max_poll_ms,
            "max_poll_records": MOST_RECORDS,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "fetch_max_bytes": options.fetch_max_bytes,
            "request_timeout_ms": REQUEST_TIMEOUT_MS,
            "default_api_timeout_ms": 20_000,
            "metadata_max_age_ms": METADATA_MAX_AGE_MS,
        }


async def until_decided(call: Callable[[], Awaitable[None]]) -> None:
    """Call until the outcome is known."""
    while True:
        try:
            return await call()
        except RequestTimedOutError:
            pass
