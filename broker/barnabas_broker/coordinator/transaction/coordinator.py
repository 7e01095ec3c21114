"""The transaction coordinator of one broker: its parts, and the requests of producers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from barnabas_common.errors import KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog
from barnabas_common.messages.producer_ids import (
    NO_PRODUCER_ID,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas_common.messages.transactions import EndTxnRequest, EndTxnResponse
from barnabas_common.runtime import Runtime, TaskScope
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.config import Config, keys
from barnabas_broker.coordinator.internal_topic import InternalTopic
from barnabas_broker.coordinator.partition_log import PartitionLog
from barnabas_broker.coordinator.transaction.admin import TransactionAdmin
from barnabas_broker.coordinator.transaction.admission import (
    UNNAMED,
    Fence,
    Kept,
    Producer,
    add_to_transaction,
    granted_timeout_ms,
    init_producer_id,
    verify,
)
from barnabas_broker.coordinator.transaction.completions import Completions
from barnabas_broker.coordinator.transaction.ending import abort_fenced, end_transaction
from barnabas_broker.coordinator.transaction.marker_channel import MarkerChannel, MayExist
from barnabas_broker.coordinator.transaction.markers import PendingMarkers
from barnabas_broker.coordinator.transaction.metadata import (
    Transaction,
    TransactionMetadata,
    bump_supported,
    complete,
    fence_producer,
    has_expired,
    has_timed_out,
    is_exhausted,
    is_known_version,
)
from barnabas_broker.coordinator.transaction.states import (
    TransactionState,
    is_decided,
)
from barnabas_broker.coordinator.transaction.transaction_log import TransactionLog
from barnabas_broker.coordinator.transaction.transactions import Transactions
from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

# Not compressed, whatever the topic says (Kafka's `EnforcedCompression`).
_NO_COMPRESSION = 0
_APPEND_TIMEOUT_MS = 5000
_RETRY_SECONDS = 0.1
# For so long the next transaction waits for the completion of the one before.
_COMPLETION_SECONDS = 0.5
_EXPIRED_AT_ONCE = 500


@dataclass(frozen=True)
class TransactionContext:
    """The surroundings of the coordinator.

    `new_producer_id` returns an id that no producer had before; it raises KafkaError while there is
    none. `topic` is `__transaction_state`. `may_exist` asks ZooKeeper about a partition that is not
    in the metadata.
    """

    runtime: Runtime
    config: Config
    replica_manager: ReplicaManager
    metadata_cache: MetadataCache
    events: EventLog
    new_producer_id: Callable[[], Awaitable[int]]
    topic: InternalTopic
    may_exist: MayExist


class TransactionCoordinator:
    """`admin` answers the requests that change nothing.

    Call `start` before the broker takes its first role, and `close` before its listeners close.
    """

    def __init__(self, context: TransactionContext) -> None:
        self.topic_refusal = ""
        """Why `__transaction_state` could not be created, as it was last reported."""
        self._config = context.config
        self._replica_manager = context.replica_manager
        self._events = context.events
        self._wall_ms = context.runtime.clock.wall_ms
        self._new_producer_id = context.new_producer_id
        self._partition_log = PartitionLog(
            context.replica_manager,
            context.runtime.clock,
            _NO_COMPRESSION,
            context.config[keys.TRANSACTION_STATE_LOG_LOAD_BUFFER_SIZE],
            _APPEND_TIMEOUT_MS,
        )
        cache = context.metadata_cache
        self.topic = context.topic
        self._transactions = Transactions(
            self._partition_log, self.topic, context.events, self._loaded, self._forgotten
        )
        self._log = TransactionLog(self._partition_log, self._transactions)
        self._markers = MarkerChannel(
            context.runtime.network,
            context.runtime.clock,
            cache,
            context.config.inter_broker_listener,
            context.may_exist,
            self._has_all_markers,
            self._fenced,
        )
        self.admin = TransactionAdmin(self._transactions, self._markers.missing, self._wall_ms)
        self._completions = Completions()
        self._tasks = TaskScope("transactions")

    def metadata_updated(self) -> None:
        """The metadata may name `__transaction_state` now."""
        self._transactions.learn_soon()

    def start(self) -> None:
        """Follow the roles of `__transaction_state`, and look for what has timed out or expired."""
        self._replica_manager.roles.add_listener(TRANSACTION_STATE_TOPIC, self._transactions)
        config = self._config
        abort = config[keys.TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS]
        expire = config[keys.TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS]
        self._tasks.repeat(self.abort_timed_out, abort / 1000, "timeouts")
        self._tasks.repeat(self.expire, expire / 1000, "expiry")

    async def close(self) -> None:
        """Forget the transactions; the next coordinator finishes them."""
        await self._transactions.close()
        await self._tasks.close()
        await self._markers.close()
        await self._partition_log.close()

    # ---- InitProducerId

    async def init_producer_id(
        self, request: InitProducerIdRequest, sender: str = "unknown"
    ) -> InitProducerIdResponse:
        """InitProducerId of a transactional producer: it fences all earlier ones."""
        try:
            return await self._init(request, sender)
        except KafkaError as error:
            return InitProducerIdResponse(error.code, error_message=error.message)

    async def _init(self, request: InitProducerIdRequest, sender: str) -> InitProducerIdResponse:
        name = request.transactional_id
        timeout_ms = granted_timeout_ms(
            request.transaction_timeout_ms,
            request.enable_two_phase_commit,
            self._config[keys.TRANSACTION_MAX_TIMEOUT_MS],
            self._config[keys.TRANSACTION_TWO_PHASE_COMMIT_ENABLE],
        )
        if isinstance(timeout_ms, ErrorCode):
            return InitProducerIdResponse(timeout_ms)
        error = self._transactions.status(name)
        if error:
            return InitProducerIdResponse(error)
        known = self._transactions.get(name)
        new_id = NO_PRODUCER_ID
        if known is None or known.metadata.is_epoch_exhausted:
            new_id = await self._new_producer_id()
            error = self._transactions.status(name)
            if error:
                return InitProducerIdResponse(error)
        now_ms = self._wall_ms()
        transaction = self._transactions.get(name)
        if transaction is None:
            if new_id == NO_PRODUCER_ID:  # it has expired meanwhile
                return InitProducerIdResponse(ErrorCode.CONCURRENT_TRANSACTIONS)
            transaction = self._transactions.get_or_add(
                TransactionMetadata(name, new_id, timeout_ms=timeout_ms, last_update_ms=now_ms)
            )
        producer = Producer(request.producer_id, request.producer_epoch)
        decision = init_producer_id(
            transaction, producer, timeout_ms, now_ms, new_id, request.keep_prepared
        )
        if isinstance(decision, ErrorCode):
            return InitProducerIdResponse(decision)
        if isinstance(decision, Kept):
            kept = decision.metadata
            return InitProducerIdResponse(
                0, kept.producer_id, kept.producer_epoch, has_ongoing_transaction=True
            )
        if isinstance(decision, Fence):
            why = "another producer has initialized its transactional id"
            error = await self._abort_fenced(transaction, decision.fenced, why)
            return InitProducerIdResponse(error or ErrorCode.CONCURRENT_TRANSACTIONS)
        transaction.begin(decision)
        error = await self._log.write(transaction, decision)
        if error:
            return InitProducerIdResponse(error)
        self._record(
            EventKind.TRANSACTION_INITIALIZED,
            f"a producer at {sender} has initialized it"
            if producer == UNNAMED
            else f"its producer at {sender} has asked for a higher epoch",
            decision,
        )
        return InitProducerIdResponse(0, decision.producer_id, decision.producer_epoch)

    def _record(self, kind: EventKind, cause: str, metadata: TransactionMetadata) -> None:
        self._events.record(
            kind,
            cause,
            self._transactions.partition_if_here(metadata.transactional_id),
            transactional_id=metadata.transactional_id,
            producer_id=metadata.producer_id,
            producer_epoch=metadata.producer_epoch,
        )

    # ---- AddPartitionsToTxn

    async def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: frozenset[TopicPartition],
        client_version: int,
    ) -> ErrorCode:
        """AddPartitionsToTxn and AddOffsetsToTxn: all the partitions, or none."""
        if bump_supported(client_version):
            before = self._transactions.get(transactional_id)
            await self._completions.wait(before, _COMPLETION_SECONDS)
        error = self._status(transactional_id, client_version)
        if error:
            return error
        transaction = self._transactions.get(transactional_id)
        now_ms = self._wall_ms()
        decision = add_to_transaction(transaction, producer, partitions, now_ms, client_version)
        if isinstance(decision, ErrorCode):
            return decision
        assert transaction is not None
        transaction.begin(decision)
        return await self._log.write(transaction, decision)

    def _status(self, transactional_id: str, client_version: int) -> ErrorCode:
        if not is_known_version(client_version):
            return ErrorCode.UNSUPPORTED_VERSION
        return self._transactions.status(transactional_id)

    def verify(
        self, transactional_id: str, producer: Producer, partition: TopicPartition
    ) -> ErrorCode:
        """AddPartitionsToTxn that only asks (KIP-890)."""
        error = self._transactions.status(transactional_id)
        return error or verify(self._transactions.get(transactional_id), producer, partition)

    # ---- EndTxn

    async def end(self, request: EndTxnRequest) -> EndTxnResponse:
        """EndTxn: answered when the decision is committed; the markers follow."""
        name, version = request.transactional_id, request.transaction_version
        error = self._status(name, version)
        if error:
            return EndTxnResponse(error)
        producer = Producer(request.producer_id, request.producer_epoch)
        new_id = NO_PRODUCER_ID
        if bump_supported(version) and is_exhausted(producer.epoch):
            try:
                new_id = await self._new_producer_id()
            except KafkaError as failure:
                return EndTxnResponse(failure.code)
            error = self._transactions.status(name)
            if error:
                return EndTxnResponse(error)
        transaction = self._transactions.get(name)
        now_ms = self._wall_ms()
        decision = end_transaction(
            transaction, producer, request.committed, version, now_ms, new_id
        )
        if isinstance(decision, ErrorCode):
            if decision or transaction is None or not bump_supported(version):
                return EndTxnResponse(decision)
            metadata = transaction.metadata
            return EndTxnResponse(0, metadata.producer_id, metadata.producer_epoch)
        assert transaction is not None
        transaction.begin(decision)
        error = await self._log.write(transaction, decision)
        if error:
            return EndTxnResponse(error)
        completion = self._decided(transaction)
        if not bump_supported(version):
            return EndTxnResponse()
        return EndTxnResponse(0, completion.producer_id, completion.producer_epoch)

    async def _abort_fenced(
        self, transaction: Transaction, fenced: TransactionMetadata, why: str
    ) -> ErrorCode:
        """Abort an open transaction under an epoch that its producer does not have."""
        change = abort_fenced(fenced, self._wall_ms())
        transaction.begin(change)
        error = await self._log.write(transaction, change)
        if not error:
            self._record(EventKind.TRANSACTION_FENCED, why, fenced)
            self._decided(transaction)
        elif self._transactions.is_here(transaction):
            transaction.fencing_failed(fenced)
        return error

    # ---- markers

    def _decided(self, transaction: Transaction) -> TransactionMetadata:
        """Have the markers written; returns what the metadata is when they are."""
        decided = transaction.metadata
        completion = complete(decided, self._wall_ms())
        transaction.begin(completion)
        self._markers.add(
            PendingMarkers.of(decided, lambda: self._transactions.coordinator_epoch(transaction))
        )
        return completion

    def _has_all_markers(self, pending: PendingMarkers) -> None:
        transaction = self._transactions.get(pending.decided.transactional_id)
        if transaction is not None and transaction.metadata is pending.decided:
            self._spawn(self._complete(transaction), "completion")

    async def _complete(self, transaction: Transaction) -> None:
        """Write that the transaction is complete; repeated until it succeeds, or another broker
        coordinates and does it."""
        while self._transactions.is_here(transaction):
            change = complete(transaction.metadata, self._wall_ms())
            if not await self._log.write(transaction, change, repeated=True):
                self._completions.over(transaction)
                return
            await asyncio.sleep(_RETRY_SECONDS)

    def _fenced(self, pending: PendingMarkers) -> None:
        self._record(
            EventKind.TRANSACTION_MARKERS_REFUSED,
            "a leader has markers of a newer producer epoch or of a later coordinator",
            pending.decided,
        )
        transaction = self._transactions.get(pending.decided.transactional_id)
        if transaction is not None and transaction.metadata is pending.decided:
            self._transactions.taken_over(transaction)
            self._completions.over(transaction)

    def _loaded(self, transaction: Transaction) -> None:
        metadata = transaction.metadata
        if is_decided(metadata.state):
            why = f"this broker coordinates it now; it is decided ({metadata.state.kafka_name})"
            self._record(EventKind.TRANSACTION_RESUMED, why, metadata)
            self._decided(transaction)

    def _forgotten(self, transaction: Transaction) -> None:
        self._markers.drop(transaction.transactional_id)
        self._completions.over(transaction)

    # ---- time

    async def abort_timed_out(self) -> None:
        """Abort the transactions that are open for longer than their producers allow."""
        now_ms = self._wall_ms()
        for transaction in self._transactions.all():
            if transaction.pending is None and has_timed_out(transaction.metadata, now_ms):
                self._spawn(self._time_out(transaction), "timeout")

    async def _time_out(self, transaction: Transaction) -> None:
        metadata = transaction.metadata
        open_still = transaction.pending is None and has_timed_out(metadata, self._wall_ms())
        if open_still and self._transactions.is_here(transaction):
            why = f"it was open for more than {metadata.timeout_ms} ms"
            await self._abort_fenced(transaction, fence_producer(transaction), why)

    async def expire(self) -> None:
        """Forget transactional ids that were not used for `transactional.id.expiration.ms`."""
        limit_ms = self._config[keys.TRANSACTIONAL_ID_EXPIRATION_MS]
        now_ms = self._wall_ms()
        expired = [t for t in self._transactions.all() if has_expired(t, now_ms, limit_ms)]
        for start in range(0, len(expired), _EXPIRED_AT_ONCE):
            some = expired[start : start + _EXPIRED_AT_ONCE]
            await asyncio.gather(*(self._expire(t, now_ms, limit_ms) for t in some))

    async def _expire(self, transaction: Transaction, now_ms: int, limit_ms: int) -> None:
        here = self._transactions.is_here(transaction)
        if not here or not has_expired(transaction, now_ms, limit_ms):
            return
        transaction.pending = TransactionState.DEAD
        error = await self._log.remove(transaction)
        if not self._transactions.is_here(transaction):
            return
        if error:
            transaction.fail()
            logger.warning("tombstone of %r: %s", transaction.transactional_id, error.name)
        else:
            self._transactions.remove(transaction)

    def _spawn(self, work: Coroutine[Any, Any, object], name: str) -> None:
        self._tasks.spawn(work, name)
