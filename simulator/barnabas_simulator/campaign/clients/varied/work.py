"""All clients that only some runs have, on topics of their own or on that of the others."""

import asyncio
from collections.abc import Collection, Iterator, Sequence

from barnabas import Admin
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients.varied.expiring import Expiring
from barnabas_simulator.campaign.clients.varied.low_acks import LowAcks
from barnabas_simulator.campaign.clients.varied.recreated import Recreated
from barnabas_simulator.campaign.clients.varied.run import Part, VariedRun
from barnabas_simulator.campaign.clients.varied.seekers import Seekers


class VariedWork:
    """A part is None in a run that has no such clients. `partitions`: of the common topic."""

    def __init__(self, run: VariedRun, partitions: Sequence[TopicPartition]) -> None:
        options = run.options
        self.run = run
        self.recreated = Recreated(run) if options.recreated else None
        self.expiring = Expiring(run) if options.expiring else None
        self.low_acks = LowAcks(run) if options.low_acks else None
        self.seekers = Seekers(run, partitions) if options.seekers else None
        every: tuple[Part | None, ...] = (
            self.recreated,
            self.expiring,
            self.low_acks,
            self.seekers,
        )
        self._parts = [part for part in every if part is not None]

    @property
    def hosts(self) -> list[str]:
        return [host for part in self._parts for host in part.hosts]

    @property
    def movable(self) -> list[TopicPartition]:
        """The partitions with records that the admin may move."""
        having = [part for part in (self.expiring, self.low_acks) if part is not None]
        return [partition for part in having for partition in part.partitions]

    async def create_topics(self, admin: Admin) -> None:
        for part in self._parts:
            await part.create_topics(admin)

    def start(self) -> None:
        for part in self._parts:
            part.start()

    async def finish(self) -> None:
        """Send no more, and wait for the answers."""
        self.run.stop.set()
        for part in self._parts:
            await part.finish()

    def tasks(self) -> Iterator[asyncio.Task[None]]:
        for part in self._parts:
            yield from part.tasks()

    async def read_back(self, core: Collection[int] | None) -> None:
        bootstrap = self.run.cluster.bootstrap_of(core) if core else ""
        for part in self._parts:
            await part.read_back(bootstrap)
