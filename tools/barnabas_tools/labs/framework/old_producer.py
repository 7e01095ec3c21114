"""A transactional producer that speaks the messages of Kafka 3.9: its epoch stays the same.

It sends what it is told, also when the transaction is over, as a network does that delivers late.
`Producer` cannot do that: each of its transactions has an epoch of its own (KIP-890).
"""

from typing import Any

from barnabas.cluster import ClusterConfig
from barnabas.cluster.client import Client
from barnabas.cluster.coordinator import Coordinator, NextAttempt
from barnabas.producer.prebuilt import with_producer
from barnabas_common.bootstrap_servers import parse_bootstrap_servers
from barnabas_common.errors import LeaderNotAvailableError, raise_for
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import TRANSACTION_KEY
from barnabas_common.messages.produce import ProducePartition, ProduceRequest, ProduceResponse
from barnabas_common.messages.producer_ids import InitProducerIdRequest
from barnabas_common.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    EndTxnRequest,
    TransactionPartition,
)
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.runtime import Runtime, Service
from barnabas_common.topic_partition import TopicPartition

_ATTEMPTS = {
    ErrorCode.NOT_COORDINATOR: NextAttempt.FIND,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: NextAttempt.FIND,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: NextAttempt.SAME,
    ErrorCode.CONCURRENT_TRANSACTIONS: NextAttempt.SAME,
}
_SECONDS = 30.0
_ACKS_ALL = -1


class OldProducer(Client):
    """`producer_id` and `producer_epoch` are those of `init`."""

    def __init__(
        self,
        bootstrap: str,
        transactional_id: str,
        timeout_ms: int = 60_000,
        runtime: Runtime | None = None,
    ) -> None:
        super().__init__(ClusterConfig(parse_bootstrap_servers(bootstrap)), runtime)
        self.producer_id = -1
        self.producer_epoch = -1
        self._transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._next_sequence: dict[TopicPartition, int] = {}

    async def _open(self) -> None:
        name = self._transactional_id
        self._coordinator = Coordinator(self._cluster, name, TRANSACTION_KEY, name)

    async def init(self) -> None:
        """InitProducerId."""
        request = InitProducerIdRequest(self._transactional_id, self._timeout_ms)
        answer = await self._ask(request, lambda answer: [answer.error_code])
        raise_for(answer.error_code, answer.error_message)
        self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch

    async def add(self, partition: TopicPartition) -> None:
        """AddPartitionsToTxn."""
        await self._cluster.topic(partition.topic, _SECONDS)
        transaction = AddPartitionsToTxnTransaction(
            self._transactional_id,
            self.producer_id,
            self.producer_epoch,
            partitions=[TransactionPartition(*partition)],
        )

        def codes(answer: Any) -> list[int]:
            return [p.error_code for result in answer.results for p in result.partitions]

        answer = await self._ask(AddPartitionsToTxnRequest([transaction]), codes)
        for code in codes(answer):
            raise_for(code, str(partition))

    async def end(self, *, commit: bool) -> None:
        """EndTxn."""
        request = EndTxnRequest(
            self._transactional_id, self.producer_id, self.producer_epoch, commit
        )
        answer = await self._ask(request, lambda answer: [answer.error_code])
        raise_for(answer.error_code, "EndTxn")

    async def is_complete(self) -> bool:
        """Whether every marker of its last transaction is written."""
        request = DescribeTransactionsRequest([self._transactional_id])
        answer = await self._ask(
            request, lambda answer: [found.error_code for found in answer.transaction_states]
        )
        state: str = answer.transaction_states[0].transaction_state
        return state.startswith("Complete")

    def batch(self, partition: TopicPartition, *values: bytes) -> bytes:
        """The next batch of a partition; it is not sent."""
        builder = BatchBuilder("none")
        for value in values:
            builder.append(self._cluster.clock.wall_ms(), None, value)
        sequence = self._next_sequence.get(partition, 0)
        self._next_sequence[partition] = sequence + len(values)
        return with_producer(
            builder.build(), self.producer_id, self.producer_epoch, sequence, transactional=True
        )

    async def send(self, partition: TopicPartition, batch: bytes) -> ErrorCode:
        """Send a batch once; returns what the leader says."""
        leader = self._cluster.metadata.leader(partition)
        if leader is None:
            raise LeaderNotAvailableError(f"{partition} has no leader now")
        request = ProduceRequest(
            _ACKS_ALL, 10_000, [ProducePartition(*partition, batch)], self._transactional_id
        )
        channel = self._cluster.channel(leader.broker_id, Service.DATA)
        answer: ProduceResponse | None = await channel.call(request, _SECONDS)
        assert answer is not None
        return ErrorCode(answer.partitions[0].error_code)

    async def _ask(self, request: Any, codes: Any) -> Any:
        return await self._coordinator.ask_until(
            request, _SECONDS, codes, lambda code: _ATTEMPTS.get(ErrorCode(code), NextAttempt.NONE)
        )
