"""The methods of the admin client about transactions (KIP-664)."""

import asyncio
from collections.abc import Iterable, Sequence

from barnabas_common.errors import InvalidArgumentError
from barnabas_common.messages.transactions import (
    ActiveProducer,
    ListTransactionsRequest,
    TransactionPartition,
    WritableTxnMarker,
)
from barnabas_common.prepared_transaction import PreparedTransaction
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from barnabas.admin.transactions import requests
from barnabas.admin.transactions.descriptions import (
    OpenTransaction,
    TransactionDescription,
    TransactionListing,
)
from barnabas.admin.transactions.explaining import view_of_transaction
from barnabas.admin.transactions.hanging import DEFAULT_MAX_TIMEOUT_MS
from barnabas.cluster import Cluster
from barnabas.cluster.client import Client
from barnabas.cluster.cluster import ClusterConfig
from barnabas.cluster.options import (
    check_bool,
    check_int,
    check_str,
    checked_names,
    checked_partition,
    checked_partitions,
)
from barnabas.explain import Sentence
from barnabas.explain.transactions import explain_transaction


class AdminOfTransactions(Client):
    """A base class of `Admin`; `patience` is the limit for each call, in s."""

    def __init__(self, config: ClusterConfig, runtime: Runtime | None, patience: float) -> None:
        super().__init__(config, runtime)
        self._patience = patience

    async def _ready(self) -> Cluster:
        await self._ensure_started()
        return self._cluster

    async def list_transactions(
        self,
        states: Sequence[str] = (),
        producer_ids: Iterable[int] = (),
        *,
        min_duration_ms: int = -1,
    ) -> list[TransactionListing]:
        """All transactional ids, or those in these states (Kafka's names), with these producer ids,
        or whose transaction is open for longer."""
        named = checked_names("states", states)
        check_int("min_duration_ms", min_duration_ms, -1)
        request = ListTransactionsRequest(named, _checked_ids(producer_ids), min_duration_ms)
        cluster = await self._ready()
        return await requests.list_transactions(cluster, request, self._patience)

    async def describe_transactions(
        self, transactional_ids: Iterable[str]
    ) -> dict[str, TransactionDescription]:
        """State, producer, timeout and partitions; raises `TransactionalIdNotFoundError`."""
        cluster = await self._ready()
        wanted = list(dict.fromkeys(checked_names("transactional ids", transactional_ids)))
        described = await asyncio.gather(
            *(requests.describe_transaction(cluster, t, self._patience) for t in wanted)
        )
        return dict(zip(wanted, described, strict=True))

    async def describe_producers(
        self, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> dict[TopicPartition, list[ActiveProducer]]:
        """The producers that each partition's leader remembers, with their open transactions."""
        wanted = checked_partitions(partitions)
        cluster = await self._ready()
        return await requests.describe_producers(cluster, wanted, self._patience)

    async def find_hanging_transactions(
        self,
        partitions: Iterable[TopicPartition | tuple[str, int]],
        *,
        max_transaction_timeout_ms: int = DEFAULT_MAX_TIMEOUT_MS,
    ) -> list[OpenTransaction]:
        """The transactions that are open in the logs of these partitions and that no coordinator
        will end. One whose newest batch is younger than the timeout is left out (KIP-664)."""
        wanted = checked_partitions(partitions)
        check_int("max_transaction_timeout_ms", max_transaction_timeout_ms, -1)
        return await requests.find_hanging(
            await self._ready(), wanted, max_transaction_timeout_ms, self._patience
        )

    async def abort_transaction(
        self,
        partition: TopicPartition | tuple[str, int],
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int = 0,
    ) -> None:
        """End a hanging transaction in one partition by an abort marker; its records are hidden
        from read_committed readers.

        Only for one of `find_hanging_transactions`: a coordinator that commits the transaction
        would be contradicted. Raises `InvalidProducerEpochError` or
        `TransactionCoordinatorFencedError` if the log has a newer epoch, and `InvalidTxnStateError`
        if it has no such producer, or lower epochs than these.
        """
        tp = checked_partition(partition)
        check_int("producer_id", producer_id, 0)
        check_int("producer_epoch", producer_epoch, 0, 2**15 - 1)
        check_int("coordinator_epoch", coordinator_epoch, -1, 2**31 - 1)
        named = [TransactionPartition(*tp)]
        marker = WritableTxnMarker(producer_id, producer_epoch, False, named, coordinator_epoch)
        cluster = await self._ready()
        await requests.abort_transaction(cluster, tp, marker, self._patience)

    async def fence_producers(self, transactional_ids: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Fence the producers of these ids, and abort their open transactions.

        Returns the producer id and epoch that each has now.
        """
        names = dict.fromkeys(checked_names("transactional ids", transactional_ids))
        if "" in names:
            raise InvalidArgumentError("a transactional id must not be empty")
        cluster = await self._ready()
        return {
            name: await requests.fence_producer(cluster, name, self._patience) for name in names
        }

    async def complete_transaction(
        self, prepared: PreparedTransaction | tuple[str, int, int], *, commit: bool
    ) -> None:
        """Commit or abort a transaction that its producer has prepared (KIP-939).

        It may be repeated, with the same outcome, until the transactional id is used again. Raises
        `InvalidTxnStateError` if the other outcome was decided, `ProducerFencedError` if a later
        producer has aborted it, and `InvalidProducerIdMappingError` for an id that is forgotten.
        """
        named = _checked_prepared(prepared)
        check_bool("commit", commit)
        await requests.complete_transaction(await self._ready(), named, commit, self._patience)

    async def explain_transaction(self, transactional_id: str) -> list[Sentence]:
        """Its state, who was fenced and why, and what its coordinator still has to do.

        Raises `TransactionalIdNotFoundError`.
        """
        check_str("transactional_id", transactional_id)
        view = await view_of_transaction(await self._ready(), transactional_id, self._patience)
        return explain_transaction(view)


def _checked_ids(values: object) -> list[int]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidArgumentError(f"producer_ids are several: [{values!r}], not {values!r}")
    found = list(values)
    for value in found:
        check_int("a producer id", value, 0)
    return found


def _checked_prepared(value: object) -> PreparedTransaction:
    if not isinstance(value, tuple | list) or len(value) != 3:
        raise InvalidArgumentError(
            "a prepared transaction is (transactional id, producer id, producer epoch),"
            f" not {value!r}"
        )
    found = PreparedTransaction(*value)
    check_str("the transactional id", found.transactional_id)
    check_int("the producer id", found.producer_id, 0)
    check_int("the producer epoch", found.producer_epoch, 0, 2**15 - 1)
    return found
