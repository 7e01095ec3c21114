"""The periodic tasks of all logs: retention, checkpoints, expiry of producers, flushing by time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from barnabas_common.errors import KafkaError
from barnabas_common.runtime import Clock, TaskScope

from barnabas_broker.config import Config, keys
from barnabas_broker.config.key import MAX_LONG
from barnabas_broker.log.manager.log_background_work import LogBackgroundWork
from barnabas_broker.log.unified_log import UnifiedLog

logger = logging.getLogger(__name__)

_LONGEST_PAUSE_MS = 24 * 3600 * 1000
_PRODUCERS_BETWEEN_PAUSES = 2_000


class Logs(Protocol):
    """The part of the log manager that the tasks use."""

    def logs(self) -> list[UnifiedLog]: ...

    def configured_logs(self) -> list[UnifiedLog]: ...

    async def checkpoint_all_offsets(self) -> None: ...

    async def checkpoint_high_watermarks(self) -> None: ...


class PeriodicLogTasks:
    """Started and closed by the log manager."""

    def __init__(
        self, config: Config, clock: Clock, background: LogBackgroundWork, logs: Logs
    ) -> None:
        self._config = config
        self._clock = clock
        self._background = background
        self._logs = logs
        self._tasks = TaskScope("periodic log tasks")
        self._settings_changed = asyncio.Event()

    def start(self) -> None:
        config = self._config
        retention = config[keys.LOG_RETENTION_CHECK_INTERVAL_MS]
        self._every(retention, "retention", self.apply_retention)
        checkpoint = min(
            config[keys.LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS],
            config[keys.LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS],
        )
        self._every(checkpoint, "checkpoints", self._logs.checkpoint_all_offsets)
        expiration = config[keys.PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS] / 1000
        self._tasks.repeat(self.expire_producers, expiration, "producers")
        self._tasks.spawn(self._flush_by_time(), "flush")

    async def close(self) -> None:
        await self._tasks.close()

    def settings_changed(self) -> None:
        """Compute the next flush again: a log's `flush.ms` may have changed."""
        self._settings_changed.set()

    async def catch_up(self) -> None:
        """Do what could not be done while no file descriptor was left."""
        await self._flush_due()
        await self._logs.checkpoint_all_offsets()
        await self._logs.checkpoint_high_watermarks()

    def _every(self, interval_ms: int, name: str, work: Callable[[], Awaitable[None]]) -> None:
        first = self._config[keys.LOG_INITIAL_TASK_DELAY_MS] / 1000
        self._tasks.repeat(work, interval_ms / 1000, name, first)

    async def apply_retention(self) -> None:
        """Delete the segments that no log has to keep."""
        for log in self._logs.configured_logs():
            try:
                log.delete_old_segments(self._clock.wall_ms())
            except KafkaError as error:
                logger.error("%s: retention: %s", log.topic_partition, error)
            await asyncio.sleep(0)

    async def expire_producers(self) -> None:
        """Forget the producers that have not written for long; others get their turn between."""
        expiration_ms = self._config[keys.PRODUCER_ID_EXPIRATION_MS]
        for log in self._logs.logs():
            log.producers.verifications.expire(self._clock.wall_ms(), expiration_ms)
            producer_ids = list(log.producers.entries)
            for start in range(0, len(producer_ids), _PRODUCERS_BETWEEN_PAUSES):
                part = producer_ids[start : start + _PRODUCERS_BETWEEN_PAUSES]
                log.producers.expire(part, self._clock.wall_ms(), expiration_ms)
                await asyncio.sleep(0)

    # ---- flushing by time

    async def _flush_by_time(self) -> None:
        """Flush the logs by their `flush.ms`. Kafka checks them only every
        `log.flush.scheduler.interval.ms`, whose default is infinite."""
        while True:
            self._settings_changed.clear()
            pause = self._flush_pause_ms()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if pause is None else pause / 1000):
                    await self._settings_changed.wait()
            await self._flush_due()

    def _flush_pause_ms(self) -> int | None:
        """Milliseconds until the next log may be due; None if none ever is."""
        scheduled = self._config[keys.LOG_FLUSH_SCHEDULER_INTERVAL_MS]
        pause = min([scheduled, *(log.config.flush_ms for log in self._logs.logs())])
        return None if pause == MAX_LONG else min(max(pause, 1), _LONGEST_PAUSE_MS)

    async def _flush_due(self) -> None:
        now_ms = self._clock.wall_ms()
        for log in self._logs.logs():
            waited = now_ms - log.last_flush_ms
            # The clock may have been set back since: how long it has waited is unknown then.
            is_over = waited >= log.config.flush_ms or waited < 0
            is_late = is_over and log.recovery_point < log.log_end_offset
            if is_late or log.is_flush_due:  # the latter if the flush of an append has failed
                await self._background.flush(log)
