"""Builds a batch record by record, with the compiled codec.

The producer has one builder for each open batch. `append` is called once per record, so it does
very little in Python. Compression and checksum are computed once, in `build`.
"""

from collections.abc import Callable, Iterable

from barnabas_common.errors import InvalidArgumentError
from barnabas_common.record.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC
from barnabas_common.record.compiled import DefaultRecordBatchBuilder
from barnabas_common.record.compression import MAX_DECOMPRESSED_SIZE, Compression
from barnabas_common.record.recompress import recompress
from barnabas_common.record.record import Header

MAX_BATCH_SIZE = LOG_OVERHEAD + 2**31 - 1
"""The limit in bytes: the length of a batch is an int32 that does not count the first 12 bytes."""

_NO_PRODUCER_ID = -1
_NO_HEADERS: list[Header] = []


class BatchBuilder:
    """An open batch: `append` until it is full, then `build`.

    `compression` is Kafka's name of the codec. `max_size` is in bytes, before compression and
    including the header. The first record always has room, whatever its size.
    """

    __slots__ = ("_append", "_build", "_codec", "_size", "count")

    def __init__(self, compression: str = "none", max_size: int = MAX_BATCH_SIZE) -> None:
        self._codec = Compression.of(compression)
        compiled = DefaultRecordBatchBuilder(
            magic=MAGIC,
            compression_type=Compression.NONE,
            is_transactional=0,
            producer_id=_NO_PRODUCER_ID,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=max_size + 1,  # the compiled builder stays below its limit
        )
        self._append = compiled.append
        self._size: Callable[[], int] = compiled.size
        self._build: Callable[[], bytearray] = compiled.build
        self.count = 0
        """Records appended so far."""

    @property
    def size(self) -> int:
        """The bytes so far, before compression and including the header."""
        return self._size()

    def append(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[Header] = (),
    ) -> int:
        """Add one record; return `size`, or 0 if the batch has no room for the record.

        Raises:
            InvalidArgumentError: the timestamp is negative.
            TypeError: key or value are not bytes, or a header is not a pair of str and bytes.
        """
        if timestamp_ms < 0:
            raise InvalidArgumentError(f"timestamp {timestamp_ms} ms is negative")
        headers = list(headers) if headers else _NO_HEADERS
        if self._append(self.count, timestamp_ms, key, value, headers) is None:
            return 0
        self.count += 1
        return self._size()

    def build(self) -> bytes:
        """The finished batch, with base offset 0 and no leader epoch, ready to be sent.

        Raises:
            InvalidArgumentError: there is no record, or the first is too large for any batch.
        """
        return bytes(self.build_buffer())

    def build_buffer(self) -> bytearray:
        """As `build`, for a producer that completes the header later; the bytes are not copied."""
        if not self.count:
            raise InvalidArgumentError("a batch needs at least one record")
        self._check_size()
        if self._codec == Compression.NONE:
            return self._build()
        return recompress(self._build(), self._codec)

    def _check_size(self) -> None:
        """Raise InvalidArgumentError for a batch that no reader would accept."""
        packed = self._codec != Compression.NONE
        limit = HEADER_SIZE + MAX_DECOMPRESSED_SIZE if packed else MAX_BATCH_SIZE
        if self.size > limit:
            raise InvalidArgumentError(f"a batch of {self.size} bytes is over the limit of {limit}")
