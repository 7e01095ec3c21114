"""A log under a log manager, stopped at any moment in any way, against a model of its content.

After the death of the process everything that was written is there. After a power loss everything
below the recovery point is there. Above it the log has some of the batches ever written, each at
its offset, without a gap. The leader epoch of each offset is always that of its batch.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from barnabas_broker.config import Config
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.record.batch import batches
from barnabas_common.record.reader import read_batch
from barnabas_common.runtime import InlineOffload, Runtime
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.log_world import NOW, FakeClock, produced, read_all

T = TypeVar("T")
NAME = TopicPartition("t", 0)
SETTINGS = {
    "broker.id": "1",
    "log.dir": "/data",
    "log.segment.bytes": "400",
    "log.index.interval.bytes": "100",
    "log.segment.delete.delay.ms": "0",
}


class CrashingLog(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 10**6))
    def create(self, seed: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.disk = MemoryDisk(seed)
        self.clock = FakeClock()
        self.records: list[tuple[int, bytes]] = []  # epoch and value of each offset
        self.ever: set[tuple[int, int, bytes]] = set()
        self.epoch = 0
        self.counter = 0
        self.start()

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.kill_tasks()
            self.loop.close()

    # ---- the environment of the log

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def start(self) -> None:
        async def open_log() -> tuple[LogManager, UnifiedLog]:
            runtime = Runtime(self.clock, _Chance(), InlineOffload(), None)  # type: ignore[arg-type]
            config = Config(SETTINGS)
            manager = LogManager(config, runtime, self.disk)
            manager.lock_directories()
            await manager.start()
            log = await manager.get_or_create(NAME, None, config.log_config(), is_new=True)
            return manager, log

        self.manager, self.log = self.run(open_log())

    def kill_tasks(self) -> None:
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.run(_ended(tasks))

    def found(self) -> list[tuple[int, int, bytes]]:
        data = read_all(self.log)
        return [
            (record.offset, header.partition_leader_epoch, record.value or b"")
            for position, header in batches(data)
            for record in read_batch(data, position)
        ]

    # ---- what may happen

    @rule(count=st.integers(1, 3), new_epoch=st.booleans())
    def append(self, count: int, new_epoch: bool) -> None:
        self.epoch += new_epoch
        values = [b"%d" % (self.counter + n) for n in range(count)]
        self.counter += count
        end = self.log.log_end_offset

        async def append() -> None:
            self.log.append_as_leader(produced(*values), self.epoch, NOW)

        self.run(append())
        self.records += [(self.epoch, value) for value in values]
        self.ever |= {(end + n, self.epoch, value) for n, value in enumerate(values)}

    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        async def truncate() -> None:
            self.log.truncate_to(int(part * self.log.log_end_offset))

        self.run(truncate())
        del self.records[self.log.log_end_offset :]
        self.epoch += 1

    @rule(turns=st.integers(1, 20))
    def let_the_background_work(self, turns: int) -> None:
        async def wait() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self.run(wait())

    @rule()
    def flush(self) -> None:
        async def flush() -> None:
            self.log.flush()

        self.run(flush())
        assert self.log.recovery_point == self.log.log_end_offset

    @rule()
    def checkpoint(self) -> None:
        self.run(self.manager.checkpoint_all_offsets())

    @rule(turns=st.integers(1, 6))
    def begin_a_checkpoint(self, turns: int) -> None:
        self.loop.create_task(self.manager.checkpoint_all_offsets())
        self.let_the_background_work(turns)

    @rule()
    def stop_and_start(self) -> None:
        self.run(self.manager.stop())
        self.manager.unlock_directories()
        self.kill_tasks()
        if self.counter % 2:
            self.disk.crash(keep_unflushed=False)
        self.start()

    @rule()
    def kill(self) -> None:
        self.kill_tasks()
        self.disk.crash(keep_unflushed=True)
        self.start()

    @precondition(lambda self: self.records)
    @rule()
    def cut_the_power(self) -> None:
        safe = self.found()[: self.log.recovery_point]
        self.kill_tasks()
        self.disk.crash(keep_unflushed=False)
        self.start()
        found = self.found()
        assert found[: len(safe)] == safe, "below the recovery point nothing may be lost"
        assert set(found) <= self.ever, "what comes back was written, and at this offset"
        self.records = [(epoch, value) for _, epoch, value in found]
        self.epoch += 1

    # ---- what always holds

    @invariant()
    def the_log_is_the_model(self) -> None:
        if not hasattr(self, "log"):
            return
        found = self.found()
        assert [(epoch, value) for _, epoch, value in found] == self.records
        assert [offset for offset, _, _ in found] == list(range(self.log.log_end_offset))
        for offset, epoch, _ in found:
            assert self.log.leader_epochs.epoch_for_offset(offset) == epoch
        assert self.log.recovery_point <= self.log.log_end_offset


class _Chance:
    def randrange(self, stop: int) -> int:
        return 0


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


TestCrashingLog = CrashingLog.TestCase
TestCrashingLog.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
