"""Which batches of a fetch a read_committed reader leaves out.

A leader sends the batches of aborted transactions too, and with them where those transactions
began. The reader meets their markers among the batches.
"""

from collections.abc import Iterable

from barnabas_common.record.batch import BatchHeader, Buffer
from barnabas_common.record.transactional import marker_in


class AbortedBatches:
    """`began` has the producer ids and first offsets of aborted transactions.

    Asked about every batch of a fetch, in order.
    """

    def __init__(self, began: Iterable[tuple[int, int]] = ()) -> None:
        self._began = sorted(((offset, producer) for producer, offset in began), reverse=True)
        self._aborted: set[int] = set()

    def leaves_out(self, header: BatchHeader, buffer: Buffer, position: int) -> bool:
        """Whether the batch at `position` is not for the reader: part of an aborted transaction, or
        a control batch."""
        while self._began and self._began[-1][0] <= header.last_offset:
            self._aborted.add(self._began.pop()[1])
        producer_id = header.producer_id
        if header.is_control:
            if producer_id in self._aborted:
                marker = marker_in(memoryview(buffer)[position : position + header.size])
                if marker is not None and not marker.commit:
                    self._aborted.discard(producer_id)
            return True
        return header.is_transactional and producer_id in self._aborted
