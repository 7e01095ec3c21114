"""One transactional producer: its state, and the operations that change it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from barnabas_common.errors import (
    BarnabasError,
    ClientError,
    InvalidProducerIdMappingError,
    TransactionAbortedError,
    TransactionFailedError,
)
from barnabas_common.prepared_transaction import PreparedTransaction
from barnabas_common.runtime import TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster import Cluster
from barnabas.group.offsets import ConsumerGroupMetadata, Offsets
from barnabas.producer.config import ProducerConfig
from barnabas.producer.producer_id import ProducerIdAndEpoch, ProducerIds
from barnabas.producer.transaction.operations import Operations
from barnabas.producer.transaction.outcomes import (
    after_produce,
    as_fatal,
    needs_producer_id,
    raised_again,
)
from barnabas.producer.transaction.requests import Addition, TransactionRequests
from barnabas.producer.transaction.states import State, may_follow

logger = logging.getLogger(__name__)

_INIT = "init_transactions"
_SEND_OFFSETS = "send_offsets_to_transaction"
_PREPARE = "prepare_transaction"
_COMMIT = "commit_transaction"
_ABORT = "abort_transaction"


class Batches(Protocol):
    """What the transactions do with the records of the producer."""

    async def flush(self) -> None:
        """Send everything and wait until it is delivered or given up."""

    def drop(self, error: BarnabasError) -> None:
        """Give up everything that is not in flight."""

    def restart(self) -> None:
        """Begin again with sequence 0 everywhere: there is a new epoch."""

    def partitions_added(self) -> None:
        """Send what had to wait for its partition."""


class TransactionManager:
    """`last_error`: why the state is one of the two errors. `number`: how many transactions were
    begun. `max_block` is in seconds."""

    def __init__(
        self, requests: TransactionRequests, ids: ProducerIds, batches: Batches, max_block: float
    ) -> None:
        self.state = State.UNINITIALIZED
        self.last_error: BarnabasError | None = None
        self.number = 0
        self._requests = requests
        self._ids = ids
        self._batches = batches
        self._tasks = TaskScope("transactions", on_failure=_raised_to_the_caller)
        self._operations = Operations(self._tasks, max_block, self._last_failure)
        self._new: dict[TopicPartition, None] = {}
        self._added: set[TopicPartition] = set()
        self._adding: asyncio.Task[None] | None = None
        self._adding_offsets: asyncio.Task[None] | None = None
        # Whether the coordinator may know of the transaction.
        self._started = False
        self._ended_by_close = False

    @classmethod
    def of(
        cls, config: ProducerConfig, cluster: Cluster, ids: ProducerIds, batches: Batches
    ) -> "TransactionManager":
        """The manager of a producer with these options."""
        assert config.transactional_id is not None
        requests = TransactionRequests(
            cluster,
            config.transactional_id,
            config.transaction_timeout_ms,
            config.client_id,
            config.enable_two_phase_commit,
        )
        return cls(requests, ids, batches, config.max_block_ms / 1000)

    async def close(self) -> None:
        """Stop; a transaction that is open stays so until it times out."""
        await self._tasks.close()

    # ---- records

    def check_send(self, number: int | None = None) -> int:
        """Return the number of the transaction to which records can be added now. Raises if there
        is none, or if it is not the one of this number: another one that began while a record
        waited to be sent must not have the record."""
        if self.state is not State.IN_TRANSACTION:
            raise self._refusal("send")
        if number not in (None, self.number):
            raise ClientError("send: the transaction has ended while the record waited to be sent")
        return self.number

    def add(self, topic_partition: TopicPartition) -> None:
        """Make the partition part of the transaction soon; until then `contains` is False.

        Partitions that are added while a request is unanswered go together into the next one.
        """
        if topic_partition in self._added:
            return
        self._new[topic_partition] = None
        if self._adding is None:
            self._adding = self._tasks.spawn(self._add_new(), "partitions")

    def contains(self, topic_partition: TopicPartition) -> bool:
        """Whether records of the partition may be sent."""
        return topic_partition in self._added

    @property
    def why_dropped(self) -> BarnabasError | None:
        """The error for records that are no longer worth sending; None if they are."""
        if not self.state.drops_batches:
            return None
        return self.last_error or TransactionAbortedError("the transaction was aborted")

    def batch_failed(self, error: BarnabasError) -> None:
        """Records were given up: the transaction must not be committed without them."""
        if self.state in (State.IN_TRANSACTION, State.PREPARED, State.COMMITTING):
            self.fail(after_produce(error))
        elif error.fatal and self.state.is_open:
            self.fail(error)

    def fail(self, error: BarnabasError) -> None:
        """Go to the error state that the class of the error calls for; the first one stays."""
        if self.state is State.FATAL_ERROR:
            return
        if self.state is State.ABORTABLE_ERROR and not error.fatal:
            return
        if error.fatal or not may_follow(State.ABORTABLE_ERROR, self.state):
            error = as_fatal(error)
            self._enter(State.FATAL_ERROR)
        else:
            self._enter(State.ABORTABLE_ERROR)
        logger.warning("the producer %s: %s", self.state.value, error)
        self.last_error = error
        self._batches.drop(error)

    # ---- operations

    async def init_transactions(self, keep_prepared: bool = False) -> None:
        """Get an id and an epoch; an open transaction of the same transactional id is aborted,
        unless it may be prepared and is to be kept."""
        if self._operations.is_new(_INIT, keep_prepared):
            if self.state not in (State.UNINITIALIZED, State.FATAL_ERROR):
                raise ClientError(f"{_INIT}: this producer is initialized already")
            self._require(State.UNINITIALIZED, _INIT)
            self._enter(State.INITIALIZING)
        await self._run(self._initialize, _INIT, keep_prepared)

    def begin(self) -> None:
        """Open a transaction; no broker is asked."""
        self._operations.is_new("begin_transaction")
        self._require(State.READY, "begin_transaction")
        self._enter(State.IN_TRANSACTION)
        self.number += 1
        self._new.clear()
        self._added.clear()
        self._adding_offsets = None
        self._started = False
        self.last_error = None

    async def send_offsets(self, offsets: Offsets, group: ConsumerGroupMetadata) -> None:
        """Commit these offsets of the group with the transaction."""
        if self._operations.is_new(_SEND_OFFSETS, offsets, group):
            self._require(State.IN_TRANSACTION, _SEND_OFFSETS)
        await self._run(self._send_offsets, _SEND_OFFSETS, offsets, group)

    async def prepare(self) -> PreparedTransaction | None:
        """Send everything, and leave the outcome open; None if nothing was written."""
        if self._operations.is_new(_PREPARE):
            self._require(State.IN_TRANSACTION, _PREPARE)
            self._enter(State.PREPARED)
        await self._run(self._deliver, _PREPARE)
        return self.prepared

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and is not over; an abort may have to ask for an id."""
        return self.state.is_open or self._operations.is_open(_ABORT)

    @property
    def was_left(self) -> bool:
        """Whether the transaction that a block has begun was not ended in it: it must be committed.
        After a fatal error, or a `close`, it cannot be, and must not seem to be."""
        return self._ended_by_close or self.state not in (State.READY, State.PREPARED)

    @property
    def is_undecided(self) -> bool:
        """Whether a transaction is open that only this producer can end: nothing is decided, and
        the application has not learned that it is prepared."""
        if self.state is State.PREPARED:
            return self._operations.is_open(_PREPARE)
        return self.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR)

    @property
    def prepared(self) -> PreparedTransaction | None:
        """The transaction that is prepared, if one is, and the application may know of it."""
        if self.state is not State.PREPARED or not self._started or self.is_undecided:
            return None
        return PreparedTransaction(self._requests.transactional_id, *self._current)

    async def commit(self) -> None:
        """Send everything, then commit."""
        if self._operations.is_new(_COMMIT):
            if self.state is not State.PREPARED:
                self._require(State.IN_TRANSACTION, _COMMIT)
            self._enter(State.COMMITTING)
        await self._run(self._commit, _COMMIT)

    async def abort(self) -> None:
        """Drop what is not sent, wait for what is in flight, then abort."""
        await self._operations.abandon(_SEND_OFFSETS, _PREPARE)
        if self._operations.is_new(_ABORT):
            if self.state not in (State.ABORTABLE_ERROR, State.PREPARED):
                self._require(State.IN_TRANSACTION, _ABORT)
            self._enter(State.ABORTING)
        await self._run(self._abort, _ABORT)

    async def settle(self) -> None:
        """Learn the outcome of an operation whose caller no longer waits, if there is one."""
        await self._operations.wait()

    async def abort_if_open(self) -> None:
        """For `close`: finish what has been decided, and abort what has not."""
        try:
            if self.is_undecided:
                logger.info("the transaction is aborted, because the producer is closed")
                self._ended_by_close = True
                await self.abort()
            elif self.is_open:
                await self._operations.wait()
        except BarnabasError as error:
            logger.warning("the transaction could not be ended: %s", error)

    async def _run(
        self, work: Callable[..., Coroutine[Any, Any, None]], name: str, *arguments: object
    ) -> None:
        await self._operations.run(lambda: self._guarded(work, *arguments), name, *arguments)

    # ---- their work

    async def _initialize(self, keep_prepared: bool) -> None:
        init = self._requests.init_producer_id
        self._ids.current, self._started = await init(None, keep_prepared)
        self._batches.restart()
        self._enter(State.PREPARED if self._started else State.READY)

    async def _add_new(self) -> None:
        try:
            while self._new:
                asked, self._new = self._new, {}
                add = self._requests.add_partitions
                with self._addition() as addition:
                    await add(self._current, asked, not self._started, addition)
                self._added.update(asked)
                self._batches.partitions_added()
        except TransactionAbortedError:
            pass
        except BarnabasError as error:
            if error.fatal or self.state is not State.ABORTING:
                self.fail(error)
        except Exception as error:
            logger.exception("partitions could not be added to a transaction")
            self.fail(TransactionFailedError(repr(error)))
        finally:
            self._adding = None

    async def _send_offsets(self, offsets: Offsets, group: ConsumerGroupMetadata) -> None:
        if not offsets:
            return
        # A task of its own: an abort ends the rest of this one, and waits for that.
        self._adding_offsets = self._tasks.spawn(self._add_offsets(group.group_id), "offsets")
        await asyncio.shield(self._adding_offsets)
        await self._requests.commit_offsets(self._current, offsets, group)
        self._raise_error()

    async def _add_offsets(self, group_id: str) -> None:
        with self._addition() as addition:
            await self._requests.add_offsets(self._current, group_id, not self._started, addition)

    @contextmanager
    def _addition(self) -> Iterator[Addition]:
        """Note whether what is asked for has begun the transaction."""
        addition = Addition(lambda: self.state.drops_batches)
        try:
            yield addition
        finally:
            self._started = self._started or addition.maybe_done

    async def _deliver(self) -> None:
        await self._batches.flush()
        if self._adding is not None:
            await asyncio.gather(self._adding, return_exceptions=True)
        self._raise_error()

    async def _commit(self) -> None:
        await self._deliver()
        if self._started:
            self._take(await self._requests.end(self._current, committed=True))
        self._enter(State.READY)

    async def _abort(self) -> None:
        why = self.why_dropped
        assert why is not None
        self._batches.drop(why)
        self._new.clear()
        for task in (self._adding, self._adding_offsets):
            if task is not None:
                await asyncio.gather(task, return_exceptions=True)
        await self._batches.flush()
        if self.state is State.FATAL_ERROR:
            self._raise_error()
        if needs_producer_id(self.last_error) or self._ids.current is None:
            await self._take_another_id()
        elif self._started:
            try:
                self._take(await self._requests.end(self._current, committed=False))
            except InvalidProducerIdMappingError:
                await self._take_another_id()
        self._batches.restart()
        self._enter(State.READY)

    async def _take_another_id(self) -> None:
        self._enter(State.INITIALIZING)
        self._take((await self._requests.init_producer_id(self._ids.current))[0])

    def _take(self, producer: ProducerIdAndEpoch) -> None:
        """Use the id and epoch of an answer. A broker that does not raise epochs names none."""
        if producer.producer_id >= 0 and producer != self._ids.current:
            self._ids.current = producer
            self._batches.restart()

    @property
    def _current(self) -> ProducerIdAndEpoch:
        assert self._ids.current is not None
        return self._ids.current

    async def _guarded(
        self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: object
    ) -> None:
        """Enter an error state before the error is raised."""
        try:
            await work(*arguments)
        except BarnabasError as error:
            self.fail(error)
            if self.last_error is None or self.last_error is error:
                raise
            raise raised_again(self.last_error) from error
        except Exception as error:
            logger.exception("a transaction failed")
            failure = TransactionFailedError(repr(error))
            self.fail(failure)
            raise failure from error

    # ---- states

    def _enter(self, state: State) -> None:
        assert may_follow(state, self.state), f"{self.state} -> {state}"
        logger.debug("transaction: %s -> %s", self.state.name, state.name)
        self.state = state

    def _require(self, state: State, what: str) -> None:
        if self.state is not state:
            raise self._refusal(what)

    def _last_failure(self) -> object:
        return self._requests.last_failure or "none"

    def _refusal(self, what: str) -> BarnabasError:
        if self.last_error is not None and self.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            return raised_again(self.last_error)
        return ClientError(f"{what}: this producer {self.state.value}")

    def _raise_error(self) -> None:
        if self.last_error is not None:
            raise raised_again(self.last_error)


def _raised_to_the_caller(name: str, error: BaseException) -> None:
    """Nothing to log."""
