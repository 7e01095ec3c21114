"""Brokers of a few lines that coordinate transactions too, for tests of the client.

Their log keeps every batch. What a reader of committed records sees is computed from the outcome of
each producer epoch: with transaction version 2 it is that of one transaction.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    TRANSACTION_KEY,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
)
from barnabas_common.messages.produce import ProducedPartition, ProduceRequest, ProduceResponse
from barnabas_common.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from barnabas_common.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    EndTxnRequest,
    EndTxnResponse,
    TransactionPartitionResult,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from barnabas_common.record.batch import batches
from barnabas_common.record.reader import read_batch
from barnabas_common.topic_partition import TopicPartition

from tests.support.scripted_group import GroupBrokers

E = ErrorCode


@dataclass
class ScriptedTransaction:
    """One transactional id; `outcome` of the last transaction, None while one is open."""

    producer_id: int
    epoch: int = 0
    timeout_ms: int = 0
    open: bool = False
    outcome: bool | None = None
    partitions: set[TopicPartition] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    offsets: dict[str, dict[TopicPartition, tuple[int, int, str]]] = field(default_factory=dict)


class TransactionBrokers(GroupBrokers):
    """Broker `transaction_coordinator` coordinates every transactional id.

    `silences`: how many answers to requests of a type are lost after the request took effect.
    """

    def __init__(self, partitions: int = 3, brokers: int = 3, topic: str = "flights") -> None:
        super().__init__(partitions, brokers, topic)
        self.transaction_coordinator = 2
        self.transactions: dict[str, ScriptedTransaction] = {}
        self.outcomes: dict[tuple[int, int], bool] = {}
        self.silences: dict[type, int] = {}
        self.refused_topics: set[str] = set()
        self._ids = 0

    async def _handle(self, broker_id: int, request: Any) -> Any:
        if isinstance(request, FindCoordinatorRequest) and request.key_type == TRANSACTION_KEY:
            node = self.transaction_coordinator
            code = 0 if node in self._listeners else E.COORDINATOR_NOT_AVAILABLE
            keys = request.coordinator_keys
            return FindCoordinatorResponse(
                [FoundCoordinator(key, node, f"broker-{node}", 9092, code) for key in keys]
            )
        answer = {
            InitProducerIdRequest: self._init,
            AddPartitionsToTxnRequest: self._add_partitions,
            AddOffsetsToTxnRequest: self._add_offsets,
            TxnOffsetCommitRequest: self._commit_offsets,
            EndTxnRequest: self._end,
        }.get(type(request))
        if answer is None or (
            isinstance(request, InitProducerIdRequest) and not request.transactional_id
        ):
            return await super()._handle(broker_id, request)
        self.asked.append(request)
        for held in self._held:
            await held.wait(request)
        here = (
            self.coordinator
            if isinstance(request, TxnOffsetCommitRequest)
            else self.transaction_coordinator
        )
        code = E.NONE if broker_id == here else E.NOT_COORDINATOR
        if isinstance(request, TxnOffsetCommitRequest):
            code = self.strangers.get(broker_id, code)
        if not code and self.refusals[type(request)]:
            code = E(self.refusals[type(request)].pop(0))
        response = answer(request, code)
        if self.silences.get(type(request), 0) > 0:
            self.silences[type(request)] -= 1
            await asyncio.Event().wait()
        return response

    # ---- the coordinator

    def _init(self, request: InitProducerIdRequest, code: int) -> InitProducerIdResponse:
        if code:
            return InitProducerIdResponse(code)
        name = request.transactional_id
        known = self.transactions.get(name)
        if known is None:
            self._ids += 1
            known = self.transactions[name] = ScriptedTransaction(7_000 + self._ids)
        else:
            if known.open:
                self._decide(known, False)
            elif request.producer_id >= 0 and request.producer_epoch != known.epoch:
                return InitProducerIdResponse(E.PRODUCER_FENCED)
            known.epoch += 1
        known.timeout_ms, known.outcome = request.transaction_timeout_ms, None
        return InitProducerIdResponse(0, known.producer_id, known.epoch)

    def _check_producer(self, request: Any, code: int) -> int:
        known = self.transactions.get(request.transactional_id)
        if code:
            return code
        if known is None or known.producer_id != request.producer_id:
            return E.INVALID_PRODUCER_ID_MAPPING
        return E.NONE if known.epoch == request.producer_epoch else E.PRODUCER_FENCED

    def _add_partitions(
        self, request: AddPartitionsToTxnRequest, code: int
    ) -> AddPartitionsToTxnResponse:
        (item,) = request.transactions
        code = self._check_producer(item, code)
        named = [TopicPartition(p.topic, p.partition) for p in item.partitions]
        refused = {tp for tp in named if tp.topic in self.refused_topics}
        if not code and not refused:
            known = self.transactions[item.transactional_id]
            known.open = True
            known.partitions.update(named)
        results = [
            TransactionPartitionResult(
                *tp,
                code
                or (
                    E.NONE
                    if not refused
                    else E.TOPIC_AUTHORIZATION_FAILED
                    if tp in refused
                    else E.OPERATION_NOT_ATTEMPTED
                ),
            )
            for tp in named
        ]
        return AddPartitionsToTxnResponse(
            [AddPartitionsToTxnResult(item.transactional_id, results)]
        )

    def _add_offsets(self, request: AddOffsetsToTxnRequest, code: int) -> AddOffsetsToTxnResponse:
        code = self._check_producer(request, code)
        if not code:
            known = self.transactions[request.transactional_id]
            known.open = True
            known.groups.add(request.group_id)
        return AddOffsetsToTxnResponse(code)

    def _end(self, request: EndTxnRequest, code: int) -> EndTxnResponse:
        known = self.transactions.get(request.transactional_id)
        if code:
            return EndTxnResponse(code)
        if known is None or known.producer_id != request.producer_id:
            return EndTxnResponse(E.INVALID_PRODUCER_ID_MAPPING)
        if request.producer_epoch + 1 == known.epoch and known.outcome is not None:
            code = E.NONE if known.outcome == request.committed else E.INVALID_TXN_STATE
            return EndTxnResponse(code, known.producer_id, known.epoch)
        if request.producer_epoch != known.epoch:
            return EndTxnResponse(E.PRODUCER_FENCED)
        if request.committed and not known.open:
            return EndTxnResponse(E.INVALID_TXN_STATE)
        self._decide(known, request.committed)
        return EndTxnResponse(0, known.producer_id, known.epoch)

    def _decide(self, known: ScriptedTransaction, commit: bool) -> None:
        self.outcomes[known.producer_id, known.epoch] = commit
        if commit:
            for group_id, offsets in known.offsets.items():
                self.groups[group_id].offsets.update(offsets)
        known.open, known.outcome = False, commit
        known.partitions, known.groups, known.offsets = set(), set(), {}
        known.epoch += 1
        self.changed()

    def time_out(self, transactional_id: str) -> None:
        """The transaction was open for too long: it is aborted under an epoch of its own."""
        known = self.transactions[transactional_id]
        self._decide(known, False)
        known.epoch, known.outcome = known.epoch + 1, None

    # ---- groups

    def _commit_offsets(
        self, request: TxnOffsetCommitRequest, code: int
    ) -> TxnOffsetCommitResponse:
        group = self.groups[request.group_id]
        code = self._check_producer(request, code)
        if not code and (request.member_id or request.generation_id >= 0):
            if request.member_id not in group.members:
                code = E.UNKNOWN_MEMBER_ID
            elif request.generation_id != group.generation:
                code = E.ILLEGAL_GENERATION
        if not code:
            known = self.transactions[request.transactional_id]
            assert request.group_id in known.groups, "AddOffsetsToTxn comes first"
            known.offsets.setdefault(request.group_id, {}).update(
                {
                    TopicPartition(p.topic, p.partition): (
                        p.committed_offset,
                        p.committed_leader_epoch,
                        p.committed_metadata,
                    )
                    for p in request.partitions
                }
            )
        return TxnOffsetCommitResponse(
            [TransactionPartitionResult(p.topic, p.partition, code) for p in request.partitions]
        )

    # ---- leaders

    def produce(self, broker_id: int, request: ProduceRequest) -> ProduceResponse | None:
        """As a leader that verifies (KIP-890), for each partition."""
        refused = {
            (p.topic, p.partition): code
            for p in request.partitions
            if (code := self._verify(request.transactional_id, p))
        }
        rest = [p for p in request.partitions if (p.topic, p.partition) not in refused]
        answers = [ProducedPartition(*key, code) for key, code in refused.items()]
        response = super().produce(
            broker_id, ProduceRequest(request.acks, request.timeout_ms, rest)
        )
        return ProduceResponse([*answers, *(response.partitions if response else [])])

    def _verify(self, transactional_id: str, part: Any) -> int:
        headers = [header for _, header in batches(part.records)]
        if not any(header.is_transactional for header in headers):
            return E.NONE
        known = self.transactions.get(transactional_id)
        for header in headers:
            if known is None or header.producer_id != known.producer_id:
                return E.INVALID_PRODUCER_ID_MAPPING
            if header.producer_epoch < known.epoch:
                return E.INVALID_PRODUCER_EPOCH
            if TopicPartition(part.topic, part.partition) not in known.partitions:
                return E.TRANSACTION_ABORTABLE
        return E.NONE

    # ---- readers

    def committed(self, partition: int | None = None) -> list[bytes | None]:
        """What a reader of committed records sees, of one partition or of all in turn."""
        return self._values(partition, True)

    def aborted(self, partition: int | None = None) -> list[bytes | None]:
        """The records that such a reader skips."""
        return self._values(partition, False)

    def undecided(self, partition: int | None = None) -> list[bytes | None]:
        """The records of transactions that are open."""
        return self._values(partition, None)

    def _values(self, partition: int | None, outcome: bool | None) -> list[bytes | None]:
        logs = list(self.logs.values()) if partition is None else [self.log(partition)]
        return [
            record.value
            for log in logs
            for position, header in batches(bytes(log.data))
            if self._outcome(header) is outcome
            for record in read_batch(bytes(log.data[position : position + header.size]))
        ]

    def _outcome(self, header: Any) -> bool | None:
        if not header.is_transactional:
            return True
        return self.outcomes.get((header.producer_id, header.producer_epoch))
