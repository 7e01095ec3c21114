"""The admin client of a run: it creates and deletes topics, moves partitions, changes settings."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from barnabas import Admin
from barnabas.admin import ConfigResource
from barnabas_common.errors import BarnabasError
from barnabas_common.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.faults.spoiling import request_deletion
from barnabas_simulator.campaign.options import Mode, Options
from barnabas_simulator.cluster import SimulatedCluster

PAUSE_SECONDS = 6.0
TIMEOUT_MS = 5_000
WEIGHTS = {
    "create": 2,
    "delete": 1,
    "grow": 1,
    "move": 2,
    "move scratch": 1,
    "cancel": 1,
    "elect": 1,
    "configure": 1,
    "move groups": 1,
    "move transactions": 1,
}

Act = Callable[[Admin], Coroutine[Any, Any, bool]]


class AdminWork:
    """Any act may be refused or fail; `errors` counts acts and failures by kind.

    An act returns whether there was anything to do.
    """

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
        """Carry out one act after another until `stop` is set."""
        acts: dict[str, Act] = {
            "create": self._create,
            "grow": self._grow,
            "move": self._move,
            "move scratch": self._move_scratch,
            "cancel": self._cancel,
            "elect": self._elect,
            "configure": self._configure,
        }
        if self._options.mode is Mode.SAFETY:  # a deletion waits for dead brokers indefinitely
            acts["delete"] = self._delete
        if self._options.groups:
            acts["move groups"] = self._move_groups
        if self._options.has_transactions:
            acts["move transactions"] = self._move_transactions
        weights = [WEIGHTS[name] for name in acts]
        runtime = self._cluster.client_runtime("admin")
        async with Admin(
            self._cluster.bootstrap, runtime=runtime, request_timeout_ms=TIMEOUT_MS
        ) as admin:
            while True:
                await asyncio.sleep(PAUSE_SECONDS * 2 * self._chance.random())
                if stop.is_set():
                    return
                (name,) = self._chance.choices(list(acts), weights)
                try:
                    if await acts[name](admin):
                        self._errors[f"admin: {name}"] += 1
                except BarnabasError as error:
                    self._errors[f"admin: {name} failed"] += 1
                    self._note(f"admin: {name}: {type(error).__name__}: {error}")

    async def _create(self, admin: Admin) -> bool:
        self._topics += 1
        name = f"scratch-{self._topics}"
        self._note(f"admin: create {name}")
        self._scratch.append(name)
        factor = min(self._options.replication_factor, 3)
        await admin.create_topic(
            name, 2, factor, configs={"min.insync.replicas": "2"}, timeout_ms=TIMEOUT_MS
        )
        return True

    async def _delete(self, admin: Admin) -> bool:
        if not self._scratch:
            return False
        name = self._scratch.pop(self._chance.randrange(len(self._scratch)))
        self._note(f"admin: delete {name}")
        if self._options.delete_topics:
            await admin.delete_topics([name], timeout_ms=TIMEOUT_MS)
        else:
            request_deletion(self._cluster, name)
        return True

    async def _grow(self, admin: Admin) -> bool:
        if not self._scratch:
            return False
        name = self._chance.choice(self._scratch)
        self._note(f"admin: grow {name}")
        await admin.create_partitions(name, 3, timeout_ms=TIMEOUT_MS)
        return True

    async def _move(self, admin: Admin) -> bool:
        """Move to other brokers, or to the same in another order: another preferred leader."""
        partition = self._chance.choice(self._partitions)
        brokers = self._chance.sample(self._cluster.broker_ids, self._options.replication_factor)
        self._note(f"admin: move {partition} to {brokers}")
        await admin.alter_partition_reassignments({partition: brokers})
        return True

    async def _move_scratch(self, admin: Admin) -> bool:
        """Move to more brokers or fewer; the present replicas may be dead."""
        if not self._scratch:
            return False
        partition = TopicPartition(self._chance.choice(self._scratch), 0)
        brokers = self._cluster.broker_ids
        target = self._chance.sample(brokers, self._chance.randint(2, len(brokers)))
        self._note(f"admin: move {partition} to {target}")
        await admin.alter_partition_reassignments({partition: target})
        return True

    async def _move_groups(self, admin: Admin) -> bool:
        return await self._move_state(admin, GROUP_METADATA_TOPIC, self._options.offsets_partitions)

    async def _move_transactions(self, admin: Admin) -> bool:
        topic, partitions = TRANSACTION_STATE_TOPIC, self._options.state_partitions
        return await self._move_state(admin, topic, partitions)

    async def _move_state(self, admin: Admin, topic: str, partitions: int) -> bool:
        """Move a partition of an internal topic; often to another coordinator."""
        partition = TopicPartition(topic, self._chance.randrange(partitions))
        brokers = self._chance.sample(self._cluster.broker_ids, 3)
        self._note(f"admin: move {partition} to {brokers}")
        await admin.alter_partition_reassignments({partition: brokers})
        return True

    async def _cancel(self, admin: Admin) -> bool:
        """Cancel a move in progress, or one that is started now."""
        ongoing = list(await admin.list_partition_reassignments())
        if not ongoing and await self._move_scratch(admin):
            await asyncio.sleep(0.1 * self._chance.random())
            ongoing = list(await admin.list_partition_reassignments())
        if not ongoing:
            return False
        self._note(f"admin: cancel the move of {ongoing[0]}")
        await admin.alter_partition_reassignments({ongoing[0]: None})
        return True

    async def _elect(self, admin: Admin) -> bool:
        """Elect the preferred leaders wherever another replica leads."""
        results = await admin.elect_leaders("preferred", timeout_ms=TIMEOUT_MS)
        elected = [partition for partition, error in results.items() if error is None]
        self._note(f"admin: elect preferred leaders: {elected}")
        return bool(elected)

    async def _configure(self, admin: Admin) -> bool:
        settings = {"segment.bytes": str(self._chance.choice([1_024, 16_384, 1_048_576]))}
        if self._options.is_compacted:  # which does not end: the checker counts on it
            policy = self._chance.choice(["compact", "compact,delete"])
            settings = {"segment.bytes": str(self._chance.choice([512, 1_024, 4_096]))}
            settings["cleanup.policy"] = policy
        self._note(f"admin: {settings}")
        resource = ConfigResource.topic(self._partitions[0].topic)
        await admin.incremental_alter_configs(resource, settings)
        return True
