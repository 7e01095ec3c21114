"""The blocking consumer.

with Consumer("flights", auto_offset_reset="earliest") as consumer:
    for record in consumer:
        ...
"""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from barnabas.cluster.options import DEFAULT_BOOTSTRAP
from barnabas.consumer import Consumer as AsyncConsumer
from barnabas.consumer import ConsumerOptions, ConsumerRecord
from barnabas.errors import ClosedError
from barnabas.messages.offsets import ListedOffset
from barnabas.runtime import Runtime
from barnabas.sync.blocking import Blocking
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    import pyarrow


class Consumer(Blocking):
    """Takes the arguments of `barnabas.Consumer` and has its methods, all blocking.

    For one thread at a time. Raises `NoBrokerReachableError` within seconds if nobody answers.
    """

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Sequence[str] = DEFAULT_BOOTSTRAP,
        runtime: Runtime | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        super().__init__("Consumer")
        self._consumer = AsyncConsumer(
            *topics, bootstrap_servers=bootstrap_servers, runtime=runtime, **options
        )
        self._thread.call(self._consumer.start())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop fetching."""
        if not self._closed:
            self._check_usable()
            self._closed = True
            self._thread.call(self._consumer.close())

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read exactly these partitions."""

        async def assign() -> None:
            self._consumer.assign(partitions)

        self._call(assign())

    def assignment(self) -> list[TopicPartition]:
        """The partitions being read."""
        return self._consumer.assignment()

    def partitions_for(self, topic: str) -> list[TopicPartition]:
        """All partitions of a topic."""
        return self._call(self._consumer.partitions_for(topic))

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        """Go on from `offset`."""

        async def seek() -> None:
            self._consumer.seek(partition, offset)

        self._call(seek())

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go to the first offset of these partitions, or of all assigned ones."""
        self._call(self._consumer.seek_to_beginning(*partitions))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go behind the last offset, as of now, of these partitions, or of all assigned ones."""
        self._call(self._consumer.seek_to_end(*partitions))

    def position(self, partition: TopicPartition | tuple[str, int]) -> int:
        """The offset of the next record this consumer will return from the partition."""
        return self._call(self._consumer.position(partition))

    def high_watermark(self, partition: TopicPartition | tuple[str, int]) -> int:
        """The end of what consumers may read, as of the last fetch; -1 before the first."""
        return self._consumer.high_watermark(partition)

    def lag(self, partition: TopicPartition | tuple[str, int]) -> int:
        """How many offsets lie between the position and the high watermark; -1 while unknown."""
        return self._call(self._consumer.lag(partition))

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset there is, by partition."""
        return self._call(self._consumer.beginning_offsets(partitions))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last record consumers may read, by partition."""
        return self._call(self._consumer.end_offsets(partitions))

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset | None]:
        """The first record at or after each timestamp (ms); None where there is none so late."""
        return self._call(self._consumer.offsets_for_times(timestamps))

    def poll(
        self, timeout_ms: int | None = None, max_records: int | None = None
    ) -> list[ConsumerRecord]:
        """The next records; an empty list after `timeout_ms` (None: waits for ever)."""
        return self._call(self._consumer.poll(timeout_ms, max_records))

    def poll_arrow(self, timeout_ms: int | None = None) -> "pyarrow.Table":
        """All that was fetched so far as an Arrow table."""
        return self._call(self._consumer.poll_arrow(timeout_ms))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord:
        if not self._consumer.pending:
            try:
                self._call(self._consumer.fill_pending())
            except ClosedError:
                raise StopIteration from None
        return self._consumer.pending.popleft()
