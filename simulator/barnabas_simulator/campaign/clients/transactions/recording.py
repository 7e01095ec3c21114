"""A transactional producer and a consumer beside it that write down what they do and are told."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

from barnabas import Consumer, ConsumerRecord, OffsetAndMetadata, Producer
from barnabas.group.offsets import ConsumerGroupMetadata
from barnabas.producer.handle import DeliveryHandle, OnDelivery, RecordMetadata
from barnabas_common.errors import BarnabasError, RequestTimedOutError
from barnabas_common.history.operations import (
    UNKNOWN,
    Assign,
    Commit,
    End,
    Poll,
    Send,
    Stage,
)
from barnabas_common.history.recorder import Recorder
from barnabas_common.record.record import Headers
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients.recording import as_records, text_of, virtual_ns


class Witness(Protocol):
    """What the invariants are told."""

    def sent(self, partition: TopicPartition, value: bytes) -> None: ...

    def refused(self, partition: TopicPartition, value: bytes) -> None: ...

    def acked(self, partition: TopicPartition, offset: int, value: bytes) -> None: ...

    def consumed(self, partition: TopicPartition, offset: int, value: bytes) -> None: ...

    def read_committed(self, partition: TopicPartition, offset: int, value: bytes) -> None: ...


class TakeOver(NamedTuple):
    """A process has been given this epoch of its transactional id; the time is the history's."""

    time: int
    process: str
    epoch: int


@dataclass
class Journal:
    """What one incarnation of a client writes into. `transactions` counts those it has begun.

    `before_commit` is called when everything is sent but the commit, and may raise.
    """

    history: Recorder
    witness: Witness
    group: str
    takeovers: list[TakeOver]
    before_commit: Callable[[], Awaitable[None]] | None = None
    transactions: int = 0
    unanswered: dict[tuple[TopicPartition, bytes], None] = field(default_factory=dict)

    @property
    def following(self) -> str:
        """The name of its next transaction, unique in the run."""
        return f"{self.history.client}.{self.history.incarnation}:{self.transactions + 1}"

    def killed(self) -> None:
        """Its process is gone: nothing more will be told about its records."""
        for tp, value in self.unanswered:
            self.witness.refused(tp, value)


class RecordingProducer(Producer):
    """`current` is the name of the latest transaction.

    A call that timed out is repeated, and stays one operation until its outcome is known.
    """

    def __init__(self, journal: Journal, bootstrap: str, **options: Any) -> None:
        super().__init__(bootstrap, **options)
        self.current = ""
        self._journal = journal
        self._history = journal.history
        self._witness = journal.witness
        self._ending: End | None = None
        self._is_ended = False
        self._commit: Commit | None = None

    async def init_transactions(self, keep_prepared: bool = False) -> None:
        await super().init_transactions(keep_prepared)
        assert self.transactions is not None
        history, epoch = self._history, self.transactions._current.epoch
        process = f"{history.client}/{history.incarnation}"
        self._journal.takeovers.append(TakeOver(virtual_ns(), process, epoch))

    async def begin_transaction(self) -> None:
        await super().begin_transaction()
        self.current = self._journal.following
        self._journal.transactions += 1
        self._ending = self._commit = None
        self._is_ended = False

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryHandle:
        assert value is not None and partition is not None and on_delivery is None
        tp, current = TopicPartition(topic, partition), self.current
        send = self._history.begin(
            Send, partition=str(tp), value=text_of(value), transaction=current
        )
        self._journal.unanswered[tp, value] = None
        self._witness.sent(tp, value)
        told = partial(self._told, send, tp, value)
        try:
            return await super().send(topic, value, key, partition, on_delivery=told)
        except BarnabasError as error:
            told(None, error)
            raise

    def _told(
        self,
        send: Send,
        tp: TopicPartition,
        value: bytes,
        metadata: RecordMetadata | None,
        error: BarnabasError | None,
    ) -> None:
        self._journal.unanswered.pop((tp, value), None)
        if metadata is None:
            self._history.end(send, Stage.INFO, error=type(error).__name__)
            self._witness.refused(tp, value)
        else:
            self._history.end(send, offset=metadata.offset)
            self._witness.acked(tp, metadata.offset, value)

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        group: ConsumerGroupMetadata | str,
    ) -> None:
        named = {tp: self._named(offset) for tp, offset in offsets.items()}
        if self._commit is None:
            self._commit = self._history.begin(
                Commit,
                group=group if isinstance(group, str) else group.group_id,
                generation=UNKNOWN if isinstance(group, str) else group.generation_id,
                offsets={str(tp): offset.offset for tp, offset in named.items()},
                transaction=self.current,
            )
        try:
            await super().send_offsets_to_transaction(named, group)
        except RequestTimedOutError:
            raise
        except BarnabasError as error:
            self._history.end(self._commit, Stage.INFO, error=type(error).__name__)
            raise
        self._history.end(self._commit)

    def _named(self, offset: int | OffsetAndMetadata) -> OffsetAndMetadata:
        """The metadata tells the invariants who has sent the commit."""
        found = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        return OffsetAndMetadata(found.offset, self.current, found.leader_epoch)

    async def commit_transaction(self) -> None:
        if self._ending is None and self._journal.before_commit is not None:
            await self._journal.before_commit()
        end = self._begin_end(commit=True)
        try:
            await super().commit_transaction()
        except RequestTimedOutError:
            raise
        except BarnabasError as error:
            if error.fatal:
                self._ended(end, Stage.INFO, error)
            raise
        self._ended(end, Stage.OK)

    async def abort_transaction(self) -> None:
        """After an abort that succeeded, the commit that failed before it certainly has."""
        end = self._begin_end(commit=False)
        try:
            await super().abort_transaction()
        except RequestTimedOutError:
            raise
        except BarnabasError as error:
            self._ended(end, Stage.INFO, error)
            raise
        self._ended(end, Stage.FAIL if end.commit else Stage.OK)

    def _begin_end(self, commit: bool) -> End:
        if self._ending is None:
            self._ending = self._history.begin(End, transaction=self.current, commit=commit)
        return self._ending

    def _ended(self, end: End, stage: Stage, error: BarnabasError | None = None) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._history.end(end, stage, error="" if error is None else type(error).__name__)


class RecordingConsumer(Consumer):
    """Of committed records; each poll belongs to the transaction that begins next."""

    def __init__(self, journal: Journal, bootstrap: str, **options: Any) -> None:
        super().__init__(bootstrap_servers=bootstrap, isolation_level="read_committed", **options)
        self._journal = journal
        self._history = journal.history

    async def poll(
        self, timeout_ms: int | None = None, max_records: int | None = None
    ) -> list[ConsumerRecord]:
        records = await super().poll(timeout_ms, max_records)
        self._history.note(
            Poll,
            records=as_records(records),
            group=self._journal.group,
            read_committed=True,
            transaction=self._journal.following if records else "",
        )
        for record in records:
            assert record.value is not None
            self._journal.witness.read_committed(
                record.topic_partition, record.offset, record.value
            )
        return records

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        super().seek(partition, offset)
        self._history.note(Assign, partitions=[str(TopicPartition(*partition))])
