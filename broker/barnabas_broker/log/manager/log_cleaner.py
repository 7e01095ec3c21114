"""Compacts the logs of a broker (Kafka's `LogCleaner`).

A task picks the log with the highest dirty ratio, runs a pass over it, and looks again; there are
`log.cleaner.threads` such tasks, which share the memory. A pass
works off the event loop in slices of `log.cleaner.io.buffer.size`. The loop does only what readers
must not see half done: the new segment takes the place of the old ones between two appends.

A pass gives up when its log is truncated, deleted, or fails. A log with a damaged batch is left out
from then on; the others are still compacted.
"""

import asyncio
import errno
import logging
import posixpath
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from barnabas_common.errors import KafkaError
from barnabas_common.record.batch import CorruptBatch
from barnabas_common.runtime import Runtime, TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.config import Config, keys
from barnabas_broker.disk.disk import Disk, is_out_of_descriptors
from barnabas_broker.log.compaction.cleanable import (
    Cleanable,
    LogFacts,
    cleanable,
    filthiest,
    is_compacted,
)
from barnabas_broker.log.compaction.cleaner import Cleaner, Source
from barnabas_broker.log.compaction.offset_map import OffsetMap, slots_within
from barnabas_broker.log.compaction.transactions import CleanedTransactions, ProducerScan
from barnabas_broker.log.compaction.what_stays import PassRules
from barnabas_broker.log.manager.compaction_pass import GivenUp, Pass, PassReport
from barnabas_broker.log.manager.log_directory import LogDirectory
from barnabas_broker.log.retention import SegmentFacts
from barnabas_broker.log.segment.segment import Segment
from barnabas_broker.log.unified_log import UnifiedLog

logger = logging.getLogger(__name__)

T = TypeVar("T")

_USUAL_SWITCH_SECONDS = sys.getswitchinterval()
_SWITCH_SECONDS = min(_USUAL_SWITCH_SECONDS, 0.001)
_REST_PER_TURN = 4
"""Turns of the event loop that a pass rests for after each slice."""
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


OnCompaction = Callable[[PassReport], None]


class CompactedLogs(Protocol):
    """The part of the log manager that the cleaner uses."""

    directories: list[LogDirectory]

    def configured_logs(self) -> list[UnifiedLog]: ...

    async def checkpoint_offsets(self, directory: LogDirectory) -> None: ...

    def directory_failed(self, directory: LogDirectory, error: OSError) -> None: ...


class LogCleaner:
    """Started and closed by the log manager."""

    def __init__(
        self,
        config: Config,
        runtime: Runtime,
        disk: Disk,
        logs: CompactedLogs,
        on_compaction: OnCompaction,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._disk = disk
        self._logs = logs
        self._on_compaction = on_compaction
        self._tasks = TaskScope("log cleaner")
        self._left_out: dict[UnifiedLog, str] = {}
        self._failed_at: dict[UnifiedLog, float] = {}
        self._in_progress: dict[UnifiedLog, None] = {}
        self._free_at = 0.0

    def start(self) -> None:
        if self._config[keys.LOG_CLEANER_ENABLE]:
            for number in range(self._threads):
                self._tasks.spawn(self._run(), f"passes {number}")

    @property
    def _threads(self) -> int:
        return self._config[keys.LOG_CLEANER_THREADS]

    async def close(self) -> None:
        await self._tasks.close()

    async def forget(self, name: TopicPartition, directory: LogDirectory) -> None:
        """Forget a deleted log: a later one of its name is all dirty."""
        if directory.checkpoints.clean_offsets.pop(name, None) is not None:
            await self._save(directory)

    async def start_over(self, log: UnifiedLog) -> None:
        """Count a log as all dirty: its tombstones are looked at again without new records."""
        await self.forget(log.topic_partition, self._directory_of(log))

    async def _run(self) -> None:
        while True:
            try:
                has_more = await self.clean_filthiest()
            except Exception:
                logger.exception("a pass has failed")
                has_more = False
            if not has_more:
                await asyncio.sleep(self._config[keys.LOG_CLEANER_BACKOFF_MS] / 1000)

    # ---- the choice

    def dirty(self, log: UnifiedLog) -> Cleanable:
        """What may be compacted of a log now."""
        segments = log.segments()
        ends = [*(one.base_offset for one in segments[1:]), log.log_end_offset]
        facts = LogFacts(
            [
                SegmentFacts(one.base_offset, end, one.size, one.largest_timestamp())
                for one, end in zip(segments, ends, strict=True)
            ],
            [one.first_timestamp() for one in segments],
            log.log_start_offset,
            log.log_end_offset,
            _stable_offset(log),
            self._directory_of(log).checkpoints.clean_offsets.get(log.topic_partition),
        )
        return cleanable(facts, log.config, self._runtime.clock.wall_ms())

    def dirty_percent(self, log: UnifiedLog) -> int:
        """How much of a log's bytes may be compacted and was not yet; -1 if it is not compacted."""
        if log.is_failed or not is_compacted(log.config):
            return -1
        try:
            return round(100 * self.dirty(log).dirty_ratio)
        except (OSError, CorruptBatch):
            return -1

    async def clean_filthiest(self) -> bool:
        """One pass over the log that needs it most; whether there was one, and it went well."""
        logs = [log for log in self._logs.configured_logs() if is_compacted(log.config)]
        self._left_out = {log: why for log, why in self._left_out.items() if log in logs}
        self._failed_at = {log: at for log, at in self._failed_at.items() if log in logs}
        found = self._look_at([log for log in logs if log not in self._left_out])
        await self._note_new(found)
        log = filthiest(
            {
                log: (facts, log.config)
                for log, facts in found.items()
                if log not in self._in_progress and not log.is_failed
            },
            self._failed_at,
        )
        return log is not None and await self.clean(log)

    def _look_at(self, logs: Sequence[UnifiedLog]) -> dict[UnifiedLog, Cleanable]:
        """What may be compacted of each log; one that cannot be read does not stop the others."""
        found = {}
        for log in logs:
            try:
                found[log] = self.dirty(log)
            except CorruptBatch as error:
                self._left_out[log] = str(error)
                report = PassReport(log.topic_partition, 0, 0, fault=str(error), will_retry=False)
                self._on_compaction(report)
            except OSError as error:
                if not log.is_failed:
                    self._logs.directory_failed(self._directory_of(log), error)
        return found

    async def _note_new(self, found: dict[UnifiedLog, Cleanable]) -> None:
        """Write every compacted log into the checkpoint, also one that was never cleaned: its gaps
        are no fault, wherever it got them."""
        changed: dict[LogDirectory, None] = {}
        for log, facts in found.items():
            if facts.wrong_checkpoint:
                logger.error("%s: %s; starting over", log.topic_partition, facts.wrong_checkpoint)
            directory = self._directory_of(log)
            offsets = directory.checkpoints.clean_offsets
            if facts.wrong_checkpoint or log.topic_partition not in offsets:
                if not await self._start_is_durable(log) or log.is_failed:
                    continue
                offsets[log.topic_partition] = facts.first_dirty_offset
                changed[directory] = None
        for directory in changed:
            await self._save(directory)

    # ---- a pass

    async def clean(self, log: UnifiedLog) -> bool:
        """A pass over a log, whatever its dirty ratio; whether it came to its end."""
        self._failed_at[log] = self._runtime.clock.monotonic()  # until it has come to its end
        self._in_progress[log] = None
        # A pass computes on another thread, and the event loop waits this long for its turn.
        sys.setswitchinterval(_SWITCH_SECONDS)
        try:
            work = Pass(log, self.dirty(log), log.segments(), log.truncations)
            has_ended = await self._clean(work)
        finally:
            del self._in_progress[log]
            if not self._in_progress:
                sys.setswitchinterval(_USUAL_SWITCH_SECONDS)
        if has_ended:
            self._failed_at.pop(log, None)  # gone if the log is compacted no more
        return has_ended

    async def _clean(self, work: Pass) -> bool:
        log = work.log
        try:
            await self._run_pass(work)
        except (GivenUp, KafkaError) as error:
            logger.info("%s: compaction given up: %s", log.topic_partition, error)
            return False
        except CorruptBatch as error:
            if work.is_current() and work.has_its_sources():
                self._left_out[log] = str(error)
                self._report(work, str(error), will_retry=False)
            return True
        except OSError as error:
            if not work.is_current() or not work.has_its_sources():
                logger.info("%s: compaction given up: %s", log.topic_partition, error)
                return False  # it read a segment that was deleted meanwhile
            if is_out_of_descriptors(error) or error.errno in _FULL_DISK:
                self._report(work, str(error))  # of the old segments nothing was touched
            else:
                self._logs.directory_failed(self._directory_of(log), error)
            return False
        self._report(work, "")
        return True

    async def _run_pass(self, work: Pass) -> None:
        log, found, start = work.log, work.found, self._runtime.clock.monotonic()
        now_ms = self._runtime.clock.wall_ms()
        cleaner = Cleaner(
            self._disk,
            log.directory,
            log.config,
            work.sources,
            max(self._config[keys.LOG_CLEANER_IO_BUFFER_SIZE] // self._threads, 1),
            ProducerScan(_stable_offset(log)),
        )
        work.counts = cleaner.counts
        await self._slices(work, cleaner.scan())
        upper_bound = found.first_uncleanable_offset  # no transaction is open below
        memory = self._config[keys.LOG_CLEANER_DEDUPE_BUFFER_SIZE] // self._threads
        slots = slots_within(memory, upper_bound - found.first_dirty_offset)
        offsets = await self._off_loop(work, OffsetMap, slots)
        await self._slices(work, cleaner.build_map(offsets, found.first_dirty_offset, upper_bound))
        end = offsets.latest_offset + 1
        if end <= found.first_dirty_offset:
            if upper_bound <= found.first_dirty_offset:
                raise GivenUp("there is nothing to compact now")
            raise CorruptBatch(
                f"a batch at offset {found.first_dirty_offset} has more keys than fit into"
                " log.cleaner.dedupe.buffer.size"
            )
        rules = PassRules(
            offsets,
            now_ms,
            log.config.delete_retention_ms,
            upper_bound,
            cleaner.producers.active(now_ms, self._config[keys.PRODUCER_ID_EXPIRATION_MS]),
        )
        transactions = CleanedTransactions(cleaner.producers.aborted)
        await self._make_checkpoints_durable(work, end)
        for group in cleaner.groups(end):
            await self._clean_group(work, cleaner, group, rules, transactions)
        directory = self._directory_of(log)
        # The new names must be as durable as the offset that rests on them.
        await self._off_loop(work, self._disk.sync_directory, log.directory)
        directory.checkpoints.clean_offsets[log.topic_partition] = work.end_offset = end
        work.seconds = self._runtime.clock.monotonic() - start
        await self._save(directory)

    async def _clean_group(
        self,
        work: Pass,
        cleaner: Cleaner,
        group: Sequence[Source],
        rules: PassRules,
        transactions: CleanedTransactions,
    ) -> None:
        work.check()
        try:
            await self._off_loop(work, cleaner.open_segment, group)
            await self._slices(work, cleaner.write_group(group, rules, transactions))
            work.check()
            if cleaner.last_marker_gone is not None:
                work.log.producers.marker_goes(cleaner.last_marker_gone)
            cleaned = cleaner.take_segment()
        except BaseException:
            with suppress(OSError):
                cleaner.remove_segment()
            raise
        await self._replace(work, group, cleaned)

    async def _replace(self, work: Pass, group: Sequence[Source], cleaned: Segment) -> None:
        log = work.log
        replacement = log.begin_replacement([one.segment for one in group], cleaned)
        try:
            await self._off_loop(work, replacement.prepare)
            work.check()
            if not log.use(replacement):
                raise GivenUp("a segment was deleted")
            work.replaced(group)
            await self._off_loop(work, replacement.put_aside)
        except BaseException as error:
            if isinstance(error, OSError) and not is_out_of_descriptors(error):
                # Also on a full disk: files have other names already, and the next start would put
                # the new segment in the place of what was written since.
                self._logs.directory_failed(self._directory_of(log), error)
            if not log.is_failed:
                with suppress(KafkaError):
                    log.end_replacement(replacement)
            elif not replacement.is_in_use:  # the next start settles what is left on the disk
                cleaned.close()
            raise
        if not log.is_failed:
            log.end_replacement(replacement)

    async def _make_checkpoints_durable(self, work: Pass, end: int) -> None:
        """A crash must not bring back a recovery point below the gaps that the pass leaves, nor
        must it be unknown then that the log is compacted."""
        directory, name = self._directory_of(work.log), work.log.topic_partition
        checkpoints = directory.checkpoints
        if not await self._start_is_durable(work.log):
            raise GivenUp("the log start on the disk is below its own")
        if not checkpoints.names_as_compacted(name):
            checkpoints.clean_offsets.setdefault(name, work.found.first_dirty_offset)
            await checkpoints.write_clean_offsets(self._runtime.offload)
        if checkpoints.durable_recovery_point(name) < end:
            await self._logs.checkpoint_offsets(directory)
        work.check()
        if checkpoints.durable_recovery_point(name) < end:
            raise GivenUp("the recovery point on the disk is below its end")

    async def _start_is_durable(self, log: UnifiedLog) -> bool:
        """Write the log start if it is not on the disk yet; return whether it is there.

        Nothing below it is compacted: after a crash that must not count as clean.
        """
        directory, start = self._directory_of(log), log.log_start_offset
        stored = directory.checkpoints.durable_log_start
        if max(stored(log.topic_partition), log.segment_offsets[0]) >= start:
            return True
        await self._logs.checkpoint_offsets(directory)
        return stored(log.topic_partition) >= start

    async def _slices(self, work: Pass, steps: Iterator[int]) -> None:
        """Run a step of the pass, slice by slice."""
        while True:
            work.check()
            done = await self._off_loop(work, next, steps, None)
            if done is None:
                return
            await self._throttle(done)
            await self._give_way()

    async def _off_loop(self, work: Pass, function: Callable[..., T], *args: object) -> T:
        """Run a slice. If the pass is cancelled meanwhile, wait for the slice: it must not use a
        file that has been closed."""
        watched = self._directory_of(work.log).watched
        running = asyncio.ensure_future(self._runtime.offload.run(watched, function, *args))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            with suppress(Exception):
                await running
            raise

    async def _throttle(self, done_bytes: int) -> None:
        """Keep below `log.cleaner.io.max.bytes.per.second`, reads and writes together."""
        now = self._runtime.clock.monotonic()
        seconds = done_bytes / self._config[keys.LOG_CLEANER_IO_MAX_BYTES_PER_SECOND]
        self._free_at = max(self._free_at, now) + seconds
        if self._free_at > now:
            await asyncio.sleep(self._free_at - now)

    async def _give_way(self) -> None:
        """Rest while the event loop is busy: a pass shares the processor with producers."""
        before = self._runtime.clock.monotonic()
        await asyncio.sleep(0)
        turn = self._runtime.clock.monotonic() - before
        await asyncio.sleep(turn * _REST_PER_TURN)

    # ---- its end

    async def _save(self, directory: LogDirectory) -> None:
        try:
            await directory.checkpoints.write_clean_offsets(self._runtime.offload)
        except OSError as error:
            self._logs.directory_failed(directory, error)

    def _report(self, work: Pass, fault: str, will_retry: bool = True) -> None:
        found = work.found
        self._on_compaction(
            PassReport(
                work.log.topic_partition,
                found.first_dirty_offset,
                work.end_offset,
                work.counts,
                work.seconds,
                fault,
                will_retry,
            )
        )

    def _directory_of(self, log: UnifiedLog) -> LogDirectory:
        path = posixpath.dirname(log.directory)
        return next(one for one in self._logs.directories if one.path == path)


def _stable_offset(log: UnifiedLog) -> int:
    """The end of what is committed and durable: a crash must not bring old records back under new
    ones."""
    return min(log.last_stable_offset, log.recovery_point)
