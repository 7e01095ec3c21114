"""What is done to all logs from time to time: retention, checkpoints, flushing by time."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol

from barnabas.errors import KafkaError
from barnabas.runtime import Clock, TaskScope

from barnabas_broker.config import Config, keys
from barnabas_broker.config.key import MAX_LONG
from barnabas_broker.log.log import Log
from barnabas_broker.log.log_keeper import LogKeeper

logger = logging.getLogger(__name__)

_LONGEST_PAUSE_MS = 24 * 3600 * 1000


class Logs(Protocol):
    """What the rounds need of the log manager."""

    def logs(self) -> list[Log]: ...

    def configured_logs(self) -> list[Log]: ...

    async def checkpoint_all_offsets(self) -> None: ...


class LogRounds:
    """Started and closed by the log manager."""

    def __init__(self, config: Config, clock: Clock, keeper: LogKeeper, logs: Logs) -> None:
        self._config = config
        self._clock = clock
        self._keeper = keeper
        self._logs = logs
        self._tasks = TaskScope("log rounds")
        self._settings_changed = asyncio.Event()

    def start(self) -> None:
        config = self._config
        self._every(config[keys.LOG_RETENTION_CHECK_INTERVAL_MS], self.apply_retention)
        self._every(
            min(
                config[keys.LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS],
                config[keys.LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS],
            ),
            self._logs.checkpoint_all_offsets,
        )
        self._tasks.spawn(self._flush_by_time(), "flush")

    async def close(self) -> None:
        await self._tasks.close()

    def settings_changed(self) -> None:
        """A log may have got another `flush.ms`."""
        self._settings_changed.set()

    def _every(self, interval_ms: int, work: "Work") -> None:
        delay = self._config[keys.LOG_INITIAL_TASK_DELAY_MS] / 1000
        name = getattr(work, "__name__", "round")
        self._tasks.spawn(_repeat(work, delay, interval_ms / 1000), name)

    async def apply_retention(self) -> None:
        """Delete what no log has to keep any more."""
        for log in self._logs.configured_logs():
            try:
                log.delete_old_segments(self._clock.wall_ms())
            except KafkaError as error:
                logger.error("%s: retention: %s", log.topic_partition, error)
            await asyncio.sleep(0)

    # ---- flushing by time

    async def _flush_by_time(self) -> None:
        """Kafka looks at the logs every `log.flush.scheduler.interval.ms` only, which is for ever
        unless it is set; here a topic's `flush.ms` is enough."""
        while True:
            self._settings_changed.clear()
            pause = self._flush_pause_ms()
            try:
                async with asyncio.timeout(None if pause is None else pause / 1000):
                    await self._settings_changed.wait()
            except TimeoutError:
                await self._flush_due()

    def _flush_pause_ms(self) -> int | None:
        """Until the next log may be due; None if none ever is."""
        scheduled = self._config[keys.LOG_FLUSH_SCHEDULER_INTERVAL_MS]
        pause = min([scheduled, *(log.config.flush_ms for log in self._logs.logs())])
        return None if pause == MAX_LONG else min(max(pause, 1), _LONGEST_PAUSE_MS)

    async def _flush_due(self) -> None:
        now_ms = self._clock.wall_ms()
        for log in self._logs.logs():
            waited = now_ms - log.last_flush_ms
            if waited >= log.config.flush_ms and log.recovery_point < log.log_end_offset:
                await self._keeper.flush(log)


class Work(Protocol):
    def __call__(self) -> Coroutine[Any, Any, None]: ...


async def _repeat(work: Work, delay: float, interval: float) -> None:
    await asyncio.sleep(delay)
    while True:
        await work()
        await asyncio.sleep(interval)
