"""A process that compacts the log of a data directory, and may die inside a system call of it.

    python -m tests.support.compacting_process FOLDER [NUMBER WHEN MICROSECONDS]

It starts as a broker does, with recovery where that is due, runs one pass, and waits until the old
segments are deleted. It then prints how many calls of rename, fsync and unlink that took. At call
NUMBER it kills itself by SIGKILL: `before` the call, `after` it, or `during` it, by a thread that
waits so many microseconds.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from barnabas_broker.config import Config
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.runtime import Runtime, SystemClock, ThreadOffload, system_randomness
from barnabas_common.topic_partition import TopicPartition

NAME = TopicPartition("t", 0)
CALLS = ("rename", "fsync", "unlink")
TOPIC = {"cleanup.policy": "compact"}


def config_of(folder: Path) -> Config:
    return Config(
        {
            "broker.id": "1",
            "log.dirs": str(folder),
            "log.cleaner.enable": "false",
            "log.segment.delete.delay.ms": "0",
            "log.segment.bytes": "2000",
            "log.index.interval.bytes": "200",
            "log.initial.task.delay.ms": "100000000",
        }
    )


async def started(folder: Path) -> tuple[LogManager, UnifiedLog]:
    config = config_of(folder)
    runtime = Runtime(SystemClock(), system_randomness(), ThreadOffload(), None)  # type: ignore[arg-type]
    manager = LogManager(config, runtime, PosixDisk())
    manager.lock_directories()
    manager.check_identity("cluster")
    await manager.start()
    log = await manager.get_or_create(NAME, None, config.log_config(TOPIC), is_new=True)
    log.update_high_watermark(log.log_end_offset)
    return manager, log


async def compacted(folder: Path) -> None:
    manager, log = await started(folder)
    if log.recovery_point < log.active_segment_offset:
        await manager.flush(log)
    await manager.cleaner.clean(log)
    while list(folder.glob("*/*.deleted")):
        await asyncio.sleep(0.001)
    await manager.stop()
    manager.unlock_directories()


class Death:
    """Stands before every call; kills the process at one of them."""

    def __init__(self, number: int, when: str, microseconds: int) -> None:
        self.count = 0
        self._number = number
        self._when = when
        self._microseconds = microseconds
        self._lock = threading.Lock()

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                self.count += 1
                is_last = self.count == self._number
            if not is_last:
                return call(*arguments, **options)
            if self._when == "before":
                die()
            if self._when == "during":
                threading.Thread(target=self._die_soon, daemon=True).start()
            call(*arguments, **options)
            if self._when == "after":
                die()
            while True:  # until the thread has ended the process
                time.sleep(1)

        return watched

    def _die_soon(self) -> None:
        time.sleep(self._microseconds / 1_000_000)
        die()


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def main() -> None:
    folder, *last = sys.argv[1:]
    number, when, microseconds = last or ("0", "before", "0")
    death = Death(int(number), when, int(microseconds))
    for name in CALLS:
        setattr(os, name, death.around(getattr(os, name)))
    asyncio.run(compacted(Path(folder)))
    print(death.count, flush=True)
    os._exit(0)  # the threads have nothing left to do


if __name__ == "__main__":
    main()
