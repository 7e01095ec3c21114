"""The blocking consumer: the methods of `barnabas.Consumer`, each waiting for its result.

with Consumer("flights", auto_offset_reset="earliest") as consumer:
    for record in consumer:
        ...
"""

from collections.abc import Sequence
from typing import Self, Unpack

from barnabas_common.errors import ClosedError
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster.options import DEFAULT_BOOTSTRAP
from barnabas.consumer import Consumer as AsyncConsumer
from barnabas.consumer import ConsumerOptions, ConsumerRecord
from barnabas.sync.blocking import Blocking, blocking, on_loop


class Consumer(Blocking):
    """Takes the arguments of `barnabas.Consumer`; for one thread at a time.

    Raises `NoBrokerReachableError` within seconds if no broker answers at the addresses.
    """

    _client: AsyncConsumer

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Sequence[str] = DEFAULT_BOOTSTRAP,
        runtime: Runtime | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        super().__init__(
            AsyncConsumer(*topics, bootstrap_servers=bootstrap_servers, runtime=runtime, **options)
        )

    assign = on_loop(AsyncConsumer.assign)
    partitions_for = blocking(AsyncConsumer.partitions_for)

    seek = on_loop(AsyncConsumer.seek)
    seek_to_beginning = blocking(AsyncConsumer.seek_to_beginning)
    seek_to_end = blocking(AsyncConsumer.seek_to_end)
    position = blocking(AsyncConsumer.position)
    lag = blocking(AsyncConsumer.lag)
    beginning_offsets = blocking(AsyncConsumer.beginning_offsets)
    end_offsets = blocking(AsyncConsumer.end_offsets)
    offsets_for_times = blocking(AsyncConsumer.offsets_for_times)

    poll = blocking(AsyncConsumer.poll)
    poll_arrow = blocking(AsyncConsumer.poll_arrow)
    _fill_pending = blocking(AsyncConsumer.fill_pending)

    def assignment(self) -> list[TopicPartition]:
        """The partitions being read."""
        return self._client.assignment()

    def high_watermark(self, partition: TopicPartition | tuple[str, int]) -> int:
        """The end of what consumers may read, as of the last fetch; -1 before the first."""
        return self._client.high_watermark(partition)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord:
        if not self._client.pending:
            try:
                self._fill_pending()
            except ClosedError:
                raise StopIteration from None
        return self._client.pending.popleft()
