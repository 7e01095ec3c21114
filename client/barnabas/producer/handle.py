"""What `send` returns: a light, awaitable handle of one record's delivery."""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.errors import BarnabasError, ClientError

if TYPE_CHECKING:
    from barnabas.producer.batch import ProducerBatch


class RecordMetadata(NamedTuple):
    """Where a record was stored.

    `offset` is -1 with acks=0, where nobody says. `timestamp` in ms is the broker's if the topic
    stamps at append, else the record's own.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


OnDelivery = Callable[[RecordMetadata | None, BarnabasError | None], None]


class DeliveryHandle:
    """The delivery of one record: `await handle` gives its `RecordMetadata` or raises its error.

    There is one per record, so it holds no future of its own, just its place in its batch.
    """

    __slots__ = ("_batch", "_index", "_timestamp")

    def __init__(self, batch: "ProducerBatch", index: int, timestamp: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp = timestamp

    def done(self) -> bool:
        """Whether the record was delivered or given up."""
        return self._batch.locate(self._index)[0].done

    def exception(self) -> BarnabasError | None:
        """Why the record was given up, or None; `ClientError` while that is not known."""
        batch, _ = self._batch.locate(self._index)
        if not batch.done:
            raise ClientError("the record is not delivered yet: await the handle")
        batch.observed = True
        return batch.error

    def result(self) -> RecordMetadata:
        """Where the record is; raises its error, or `ClientError` while it is not delivered."""
        error = self.exception()
        if error is not None:
            raise error
        batch, index = self._batch.locate(self._index)
        return batch.metadata_of(index, self._timestamp)

    def __await__(self) -> Generator[Any, Any, RecordMetadata]:
        yield from self._batch.settled(self._index).__await__()
        return self.result()
