"""What a compaction pass over a whole log would keep now, record by record, and why.

It looks at the sealed segments only, as a pass does, and applies the broker's own rules.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas_broker.log.compaction.batch_filter import decoded, is_abort_marker
from barnabas_broker.log.compaction.offset_map import OffsetMap, slots_within
from barnabas_broker.log.compaction.transactions import CleanedTransactions, ProducerScan
from barnabas_broker.log.compaction.what_stays import STAYS, fate
from barnabas_common.record.batch import BatchHeader, batches

_MEMORY_BYTES = 128 * 1024 * 1024
_ABORTED = "its transaction was aborted"


class Preview(NamedTuple):
    """One record, whether a pass would keep it, and the reason."""

    offset: int
    key: bytes | None
    stays: bool
    because: str


def preview(segments: Sequence[Path], now_ms: int) -> Iterator[Preview]:
    """Yield a preview of each record of all segments but the last, in order.

    `now_ms` decides which tombstones have expired. Raises CorruptBatch.
    """
    sealed, scan, last_offset = segments[:-1], ProducerScan(), -1
    for header, batch in _batches(sealed):
        last_offset = header.last_offset
        if header.is_control and header.record_count:
            scan.marker(header, is_abort_marker(batch, header))
        elif not header.is_control:
            scan.batch(header)
    offsets = OffsetMap(slots_within(_MEMORY_BYTES, last_offset + 1))
    for header, batch, aborted in _data_batches(sealed, scan):
        for record in decoded(batch, header)[1]:
            if offsets.is_full:
                break
            if record.key is not None and not aborted:
                offsets.put(record.key, record.offset)
            offsets.account_for(record.offset)
    for header, batch, aborted in _data_batches(sealed, scan):
        horizon = header.delete_horizon_ms
        expired = horizon is not None and horizon <= now_ms
        for record in decoded(batch, header)[1]:
            what = fate(record, offsets, expired)
            because = _ABORTED if aborted else str(what)
            yield Preview(record.offset, record.key, what in STAYS and not aborted, because)


def _data_batches(
    segments: Sequence[Path], scan: ProducerScan
) -> Iterator[tuple[BatchHeader, memoryview, bool]]:
    """Yield each batch of users' records, and whether its transaction was aborted."""
    transactions = CleanedTransactions(scan.aborted)
    for header, batch in _batches(segments):
        if not header.is_control:
            yield header, batch, transactions.batch_is_aborted(header)
        elif header.record_count:
            transactions.marker_may_go(header, is_abort_marker(batch, header))


def _batches(segments: Sequence[Path]) -> Iterator[tuple[BatchHeader, memoryview]]:
    for segment in segments:
        data = segment.read_bytes()
        for position, header in batches(data):
            yield header, memoryview(data)[position : position + header.size]
