"""What the admin client does in a run: topics come and go, partitions move, settings change."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence

from barnabas import Admin
from barnabas.admin import ConfigResource
from barnabas.errors import BarnabasError
from barnabas.topic_partition import TopicPartition

from barnabas_simulator.campaign.options import Mode, Options
from barnabas_simulator.cluster import SimulatedCluster

PAUSE_SECONDS = 6.0
TIMEOUT_MS = 5_000


class AdminWork:
    """Any of it may be refused or fail: `errors` counts that by kind, and what was done too."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        options: Options,
        partitions: Sequence[TopicPartition],
        errors: Counter[str],
        note: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._partitions = list(partitions)
        self._errors = errors
        self._note = note
        self._chance = random.Random(f"admin {options.seed}")
        self._topics = 0
        self._scratch: list[str] = []

    async def run(self, stop: asyncio.Event) -> None:
        """One act after another until told to stop."""
        acts = [self._create, self._create, self._grow, self._move, self._move]
        acts += [self._cancel, self._configure]
        if self._options.mode is Mode.SAFETY:  # a deletion waits for dead brokers, be it for ever
            acts.append(self._delete)
        runtime = self._cluster.client_runtime("admin")
        async with Admin(
            self._cluster.bootstrap, runtime=runtime, request_timeout_ms=TIMEOUT_MS
        ) as admin:
            while True:
                await asyncio.sleep(PAUSE_SECONDS * 2 * self._chance.random())
                if stop.is_set():
                    return
                act = self._chance.choice(acts)
                name = act.__name__.strip("_")
                try:
                    await act(admin)
                    self._errors[f"admin: {name}"] += 1
                except BarnabasError as error:
                    self._errors[f"admin: {name} failed"] += 1
                    self._note(f"admin: {name}: {type(error).__name__}: {error}")

    async def _create(self, admin: Admin) -> None:
        self._topics += 1
        name = f"scratch-{self._topics}"
        self._note(f"admin: create {name}")
        self._scratch.append(name)
        factor = min(self._options.replication_factor, 3)
        await admin.create_topic(
            name, 2, factor, configs={"min.insync.replicas": "2"}, timeout_ms=TIMEOUT_MS
        )

    async def _delete(self, admin: Admin) -> None:
        if self._scratch:
            name = self._scratch.pop(self._chance.randrange(len(self._scratch)))
            self._note(f"admin: delete {name}")
            await admin.delete_topics([name], timeout_ms=TIMEOUT_MS)

    async def _grow(self, admin: Admin) -> None:
        if self._scratch:
            name = self._chance.choice(self._scratch)
            self._note(f"admin: grow {name}")
            await admin.create_partitions(name, 3, timeout_ms=TIMEOUT_MS)

    async def _move(self, admin: Admin) -> None:
        """To other brokers, or the same in another order: the next preferred leader."""
        partition = self._chance.choice(self._partitions)
        brokers = self._chance.sample(self._cluster.broker_ids, self._options.replication_factor)
        self._note(f"admin: move {partition} to {brokers}")
        await admin.alter_partition_reassignments({partition: brokers})

    async def _cancel(self, admin: Admin) -> None:
        ongoing = list(await admin.list_partition_reassignments())
        if ongoing:
            self._note(f"admin: cancel the move of {ongoing[0]}")
            await admin.alter_partition_reassignments({ongoing[0]: None})

    async def _configure(self, admin: Admin) -> None:
        size = str(self._chance.choice([1_024, 16_384, 1_048_576]))
        self._note(f"admin: segments of {size} bytes")
        resource = ConfigResource.topic(self._partitions[0].topic)
        await admin.incremental_alter_configs(resource, {"segment.bytes": size})
