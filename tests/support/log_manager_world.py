"""A log manager over a disk that outlives it, for tests that start and stop it."""

import asyncio
import random
from dataclasses import dataclass, field

from barnabas_broker.config import Config
from barnabas_broker.log.manager.compaction_pass import PassReport
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.runtime import InlineOffload, Offload, Runtime
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_world import NOW, FakeClock, produced

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


@dataclass
class ManagerWorld:
    """`settings` are added to those of a broker whose log directory is /data."""

    settings: dict[str, str] = field(default_factory=dict)
    disk: MemoryDisk = field(default_factory=MemoryDisk)
    clock: FakeClock = field(default_factory=FakeClock)
    failures: list[tuple[str, int | None]] = field(default_factory=list)
    passes: list[PassReport] = field(default_factory=list)
    offload: Offload = field(default_factory=InlineOffload)

    def __post_init__(self) -> None:
        self.settings = dict(self.settings)  # a test may change them

    @property
    def config(self) -> Config:
        return Config({"broker.id": "1", "log.dirs": "/data", **self.settings})

    def manager(self) -> LogManager:
        runtime = Runtime(
            self.clock,
            random.Random(1),
            self.offload,
            None,  # type: ignore[arg-type]  # a log manager uses no network
        )
        return LogManager(
            self.config,
            runtime,
            self.disk,
            lambda path, error: self.failures.append((path, error.errno)),
            on_compaction=self.passes.append,
        )

    async def start(self) -> LogManager:
        manager = self.manager()
        manager.lock_directories()
        manager.check_identity("cluster-a")
        await manager.start()
        return manager

    async def restart(self, manager: LogManager) -> LogManager:
        """Stop the manager cleanly and start another on the same disk."""
        await manager.stop()
        manager.unlock_directories()
        return await self.start()

    async def open(
        self, manager: LogManager, name: str = "t", partition: int = 0, **topic: str
    ) -> UnifiedLog:
        """Get or create a log; `topic` has topic settings, with _ for dots."""
        settings = {key.replace("_", "."): value for key, value in topic.items()}
        key, config = TopicPartition(name, partition), self.config.log_config(settings)
        return await manager.get_or_create(key, TOPIC_ID, config, is_new=True, is_first=True)

    def text(self, path: str) -> str:
        return self.disk.read_file(path).decode()


def append(log: UnifiedLog, *values: bytes, epoch: int = 0, timestamp: int = NOW) -> None:
    """Append one batch, and commit it."""
    log.append_as_leader(produced(*values, timestamp=timestamp), epoch, NOW)
    log.update_high_watermark(log.log_end_offset)


async def settle() -> None:
    """Let background tasks run."""
    for _ in range(50):
        await asyncio.sleep(0)
