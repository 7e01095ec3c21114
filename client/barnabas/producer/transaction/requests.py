"""The requests of a transactional producer: each is sent until its coordinator has decided.

What is raised says by its class what the producer can do (see `outcomes`). A producer speaks
transaction version 2 (KIP-890): the answer to EndTxn carries the epoch of the next transaction.
"""

from collections.abc import Callable, Iterable
from typing import Any

from barnabas_common.errors import (
    BarnabasError,
    KafkaError,
    NotApplied,
    TransactionAbortedError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import GROUP_KEY, TRANSACTION_KEY
from barnabas_common.messages.producer_ids import InitProducerIdRequest
from barnabas_common.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    TransactionPartition,
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster import Cluster
from barnabas.cluster.coordinator import Coordinator
from barnabas.group.offsets import ConsumerGroupMetadata, Offsets, give_up_unknown
from barnabas.producer.producer_id import ProducerIdAndEpoch
from barnabas.producer.transaction.outcomes import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    TXN_OFFSET_COMMIT,
    Table,
    as_abortable,
    next_attempt,
    raised,
)

OnFailure = Callable[[BarnabasError], None]

TRANSACTION_VERSION = 2
# The previous transaction is only being completed: Kafka's ADD_PARTITIONS_RETRY_BACKOFF_MS.
_FIRST_IN_TRANSACTION = {int(ErrorCode.CONCURRENT_TRANSACTIONS): 0.02}
# The coordinator has refused without writing anything.
_NOT_DONE = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
_NO_PRODUCER = ProducerIdAndEpoch(-1, -1)


class Addition:
    """A request to add something to the transaction, which may be given up between two attempts.

    `maybe_done`: the coordinator may have begun the transaction with it. That must be known: the
    coordinator refuses the end of a transaction that has not begun as that of a fenced producer,
    while it completes the one before.
    """

    def __init__(self, given_up: Callable[[], bool]) -> None:
        self.maybe_done = False
        self._given_up = given_up

    def failed(self, failure: BarnabasError) -> None:
        """Note a failed attempt; raises `TransactionAbortedError` if it was the last."""
        code = failure.code if isinstance(failure, KafkaError) else None
        if code not in _NOT_DONE and not isinstance(failure, NotApplied):
            self.maybe_done = True
        unknown = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # may last forever
        if self._given_up() and (unknown or not self.maybe_done):
            raise TransactionAbortedError(f"the transaction was aborted; last failure: {failure}")


class TransactionRequests:
    """One transactional id at its coordinator, and groups at theirs.

    `last_failure`: why the last attempt failed, until one succeeds.
    """

    def __init__(
        self,
        cluster: Cluster,
        transactional_id: str,
        timeout_ms: int,
        client_id: str,
        two_phase: bool = False,
    ) -> None:
        self.coordinator = Coordinator(cluster, transactional_id, TRANSACTION_KEY, client_id)
        self._cluster = cluster
        self.transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._two_phase = two_phase
        self._client_id = client_id
        self._groups: dict[str, Coordinator] = {}
        self.last_failure: BarnabasError | None = None

    async def init_producer_id(
        self, current: ProducerIdAndEpoch | None, keep_prepared: bool = False
    ) -> tuple[ProducerIdAndEpoch, bool]:
        """An id and epoch that fence every earlier producer; `current` is what this one has.

        With `keep_prepared` (KIP-939) they may be those of an open transaction: then True.
        """
        request = InitProducerIdRequest(
            self.transactional_id,
            self._timeout_ms,
            *(current or _NO_PRODUCER),
            enable_two_phase_commit=self._two_phase,
            keep_prepared=keep_prepared,
        )
        response = await self._ask(request, INIT_PRODUCER_ID)
        producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        return producer, response.has_ongoing_transaction

    async def add_partitions(
        self,
        producer: ProducerIdAndEpoch,
        partitions: Iterable[TopicPartition],
        first: bool,
        addition: Addition,
    ) -> None:
        """Make partitions part of the transaction; `first`: it has none yet."""
        named = [TransactionPartition(*partition) for partition in partitions]
        transaction = AddPartitionsToTxnTransaction(
            self.transactional_id,
            *producer,
            partitions=named,
            transaction_version=TRANSACTION_VERSION,
        )
        request = AddPartitionsToTxnRequest([transaction])
        await self._ask(
            request,
            ADD_PARTITIONS,
            short_pauses=_FIRST_IN_TRANSACTION if first else {},
            on_failure=addition.failed,
        )
        addition.maybe_done = True

    async def add_offsets(
        self, producer: ProducerIdAndEpoch, group_id: str, first: bool, addition: Addition
    ) -> None:
        """Make the committed offsets of a group part of the transaction."""
        request = AddOffsetsToTxnRequest(
            self.transactional_id, *producer, group_id, TRANSACTION_VERSION
        )
        await self._ask(
            request,
            ADD_OFFSETS,
            short_pauses=_FIRST_IN_TRANSACTION if first else {},
            on_failure=addition.failed,
        )
        addition.maybe_done = True

    async def commit_offsets(
        self, producer: ProducerIdAndEpoch, offsets: Offsets, group: ConsumerGroupMetadata
    ) -> None:
        """Leave the offsets with the group's coordinator until the transaction is complete.

        After an error the coordinator is looked up again. A broker that is cut off from the others
        goes on coordinating the group as it was, and refuses members that have joined elsewhere.
        A topic that stays unknown was deleted: the transaction must be aborted.
        """
        request = TxnOffsetCommitRequest(
            self.transactional_id,
            group.group_id,
            *producer,
            group.generation_id,
            group.member_id,
            group.group_instance_id,
            [
                TxnOffsetCommitPartition(*tp, value.offset, value.leader_epoch, value.metadata)
                for tp, value in offsets.items()
            ],
        )
        coordinator = self._groups.get(group.group_id)
        if coordinator is None:
            coordinator = Coordinator(self._cluster, group.group_id, GROUP_KEY, self._client_id)
            self._groups[group.group_id] = coordinator
        try:
            await self._ask(
                request,
                TXN_OFFSET_COMMIT,
                coordinator=coordinator,
                on_failure=give_up_unknown(self._cluster.clock),
            )
        except UnknownTopicOrPartitionError as error:
            topics = ", ".join(dict.fromkeys(tp.topic for tp in offsets))
            gone = f"no offsets were committed: one of these topics does not exist: {topics}"
            raise as_abortable(UnknownTopicOrPartitionError(gone)) from error
        except BarnabasError as error:
            coordinator.forget(error)
            raise

    async def end(self, producer: ProducerIdAndEpoch, committed: bool) -> ProducerIdAndEpoch:
        """Decide the transaction; returns the id and epoch of the next one."""
        request = EndTxnRequest(self.transactional_id, *producer, committed, TRANSACTION_VERSION)
        response = await self._ask(request, END_TXN)
        return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

    async def _ask(
        self,
        request: Any,
        table: Table,
        coordinator: Coordinator | None = None,
        on_failure: OnFailure = lambda failure: None,
        **options: Any,
    ) -> Any:
        """The answer of a request that succeeded; raises the error that ends the attempts."""
        asked = coordinator or self.coordinator

        def failed(failure: BarnabasError) -> None:
            self.last_failure = failure
            on_failure(failure)

        response = await asked.ask_until(
            request,
            None,
            _codes,
            lambda code: next_attempt(table, code),
            on_failure=failed,
            **options,
        )
        self.last_failure = None
        code = _worst(_codes(response))
        if code != ErrorCode.NONE:
            raise raised(table, code, self._explain(asked, code, response))
        return response

    def _explain(self, asked: Coordinator, code: int, response: Any) -> str:
        if code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            return (
                f"transaction_timeout_ms ({self._timeout_ms}) must be at most the brokers' "
                "transaction.max.timeout.ms"
            )
        if code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED and self._two_phase:
            return (
                "enable_two_phase_commit: the brokers refuse it"
                " (transaction.two.phase.commit.enable=false)"
            )
        return getattr(response, "error_message", "") or asked.name


def _codes(response: Any) -> list[int]:
    """The error codes of any of the answers."""
    if hasattr(response, "error_code"):
        return [response.error_code]
    results = getattr(response, "results", None)
    partitions = response.partitions if results is None else results[0].partitions
    return [item.error_code for item in partitions]


def _worst(codes: list[int]) -> int:
    """The code that says most: one that was not attempted says nothing about why."""
    failed = [code for code in codes if code != ErrorCode.NONE]
    reasons = [code for code in failed if code != ErrorCode.OPERATION_NOT_ATTEMPTED]
    return (reasons or failed or [int(ErrorCode.NONE)])[0]
