"""Compacted logs for tests: keyed batches, a model of the records that must stay, and a pass."""

from collections.abc import Iterable

from barnabas_broker.log.manager.compaction_pass import PassReport
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.record.batch import batches
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.reader import read_batch

from tests.support.log_world import NOW, read_all

Pair = tuple[bytes | None, bytes | None]
KeyedRecord = tuple[int, bytes | None, bytes | None]  # offset, key, value


def keyed(*pairs: Pair, timestamp: int = NOW, compression: str = "none") -> bytes:
    """Return one batch of keys and values as a producer sends it; the records are 1 ms apart."""
    builder = BatchBuilder(compression)
    for number, (key, value) in enumerate(pairs):
        builder.append(timestamp + number, key, value)
    return builder.build()


def put(
    log: UnifiedLog,
    *pairs: Pair,
    epoch: int = 0,
    timestamp: int = NOW,
    compression: str = "none",
) -> None:
    """Append one batch, and commit it."""
    batch = keyed(*pairs, timestamp=timestamp, compression=compression)
    log.append_as_leader(batch, epoch, NOW)
    log.update_high_watermark(log.log_end_offset)


def seal(log: UnifiedLog) -> None:
    """Roll and flush, so that all records are in sealed, durable segments."""
    log.roll()
    log.flush()


def records_in(log: UnifiedLog) -> list[KeyedRecord]:
    """Return offset, key and value of every record in the log."""
    data = read_all(log)
    return [
        (record.offset, record.key, record.value)
        for position, _ in batches(data)
        for record in read_batch(data, position)
    ]


def newest(records: Iterable[KeyedRecord]) -> list[KeyedRecord]:
    """The naive model: return the last record of each key, in the order of the offsets."""
    last = {key: (offset, key, value) for offset, key, value in records}
    return sorted(last.values(), key=lambda record: record[0])


async def compact(manager: LogManager, log: UnifiedLog, reports: list[PassReport]) -> PassReport:
    """Compact the log in one pass, whatever its dirty ratio, and return the report."""
    cleaner, count = manager.cleaner, len(reports)
    await cleaner.clean(log)
    assert len(reports) == count + 1, "no pass came to its end"
    return reports[-1]
