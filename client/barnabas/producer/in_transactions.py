"""What a producer with a transactional id can do: its transactions.

    async with Producer("localhost:9092", transactional_id="copy") as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send("flights", b"value")
            await producer.send("delays", b"value")

`Producer` adds the sending.
"""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Self

from barnabas_common.errors import BarnabasError, ClientError, InvalidArgumentError
from barnabas_common.prepared_transaction import PreparedTransaction
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster.client import Client
from barnabas.cluster.options import check_bool, check_int, check_str
from barnabas.group.offsets import ConsumerGroupMetadata, OffsetAndMetadata, checked
from barnabas.producer.config import ProducerConfig
from barnabas.producer.transaction.manager import TransactionManager
from barnabas.producer.transaction.states import State

logger = logging.getLogger(__name__)


class InTransactions(Client):
    """`transactions` is there once a producer with a transactional id was started.

    Each method raises `ClientError` for a call that is a mistake: nothing has happened then. The
    class of any other error says what to do: if it is `retriable`, call the method again; if it is
    `fatal`, close the producer; otherwise abort the transaction.
    """

    def __init__(
        self,
        config: ProducerConfig,
        bootstrap_servers: str | Sequence[str],
        runtime: Runtime | None,
    ) -> None:
        super().__init__(config.cluster(bootstrap_servers), runtime)
        self._config = config
        self.transactions: TransactionManager | None = None

    @property
    def initialized(self) -> bool:
        """Whether `init_transactions` has succeeded, or has failed for good."""
        transactions = self.transactions
        return transactions is not None and (
            transactions.is_open
            or transactions.state not in (State.UNINITIALIZED, State.INITIALIZING)
        )

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and is neither prepared, committed nor aborted."""
        return self.transactions is not None and self.transactions.is_open

    async def init_transactions(self, keep_prepared: bool = False) -> None:
        """Take over the transactional id, once, before the first transaction.

        An earlier producer with the same transactional id is fenced, and its open transaction is
        aborted. With `keep_prepared` a transaction of a producer with `enable_two_phase_commit` is
        not: `prepared_transaction` has it then, and it must be committed or aborted first. That
        needs `enable_two_phase_commit` too: the producer's transactions go on without a timeout.
        """
        check_bool("keep_prepared", keep_prepared)
        transactions = await self._started_transactions("init_transactions")
        if keep_prepared and not self._config.enable_two_phase_commit:
            raise ClientError(
                "init_transactions(keep_prepared=True) needs enable_two_phase_commit=True;"
                " Admin.complete_transaction ends what another producer has prepared"
            )
        await transactions.init_transactions(keep_prepared)

    @property
    def prepared_transaction(self) -> PreparedTransaction | None:
        """The transaction that was prepared, or taken over, and is not ended by this producer."""
        return None if self.transactions is None else self.transactions.prepared

    async def prepare_transaction(self) -> PreparedTransaction | None:
        """Send everything, and leave the outcome open (KIP-939).

        Once this has returned, no timeout and no `close` ends the transaction:
        `Admin.complete_transaction` does, or `commit_transaction` and `abort_transaction` of this
        producer. Until then `close` aborts it. None if nothing was written. Raises the error of a
        record that was not delivered. The producer needs `enable_two_phase_commit`.
        """
        transactions = await self._started_transactions("prepare_transaction")
        if not self._config.enable_two_phase_commit:
            raise ClientError("prepare_transaction needs enable_two_phase_commit=True")
        return await transactions.prepare()

    async def begin_transaction(self) -> None:
        """Open a transaction: records are part of it until it is committed or aborted."""
        (await self._started_transactions("begin_transaction")).begin()

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        group: ConsumerGroupMetadata | str,
    ) -> None:
        """Commit these offsets of the next records to read together with the transaction.

        `group`: of `consumer.group_metadata()`, or an id. With an id alone, offsets of a consumer
        that has lost its partitions are not refused. The consumer must not commit by itself.
        """
        transactions = await self._started_transactions("send_offsets_to_transaction")
        await transactions.send_offsets(checked(offsets), _checked_group(group))

    async def commit_transaction(self) -> None:
        """Send everything, then commit. Raises the error of a record that was not delivered."""
        await (await self._started_transactions("commit_transaction")).commit()

    async def abort_transaction(self) -> None:
        """Abort: records that were not sent yet are dropped, and readers skip the others."""
        await (await self._started_transactions("abort_transaction")).abort()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """`async with producer.transaction():` commits at the end, and aborts after an exception.

        After a fatal error, as when another producer has fenced this one, it closes the producer.
        It raises whatever has ended the transaction meanwhile, unless the block has done it.
        """
        await self.begin_transaction()
        assert self.transactions is not None
        try:
            yield self
            if self.transactions.was_left:
                await self.commit_transaction()
        except BaseException as error:
            await self.undo(error)
            raise

    def backoff_seconds(self, failures: int) -> float:
        """The pause of `retry_backoff_ms` after so many failures in a row."""
        return self._cluster.backoff.seconds(failures)

    async def undo(self, error: BaseException) -> None:
        """End the transaction, or the producer, after an error that is about to be raised."""
        self._check_home()
        assert self.transactions is not None
        if self.transactions.is_undecided and not self._closed:
            try:
                await self.abort_transaction()
            except BarnabasError as failure:
                error.add_note(f"the transaction could not be aborted: {failure}")
                if failure.fatal and isinstance(error, BarnabasError):
                    await self.close()
                    raise failure from error  # its class says more
        if self.transactions.state is State.FATAL_ERROR:
            await self.close()

    def _missing_in_transaction(self, error: BarnabasError, number: int | None) -> None:
        """Committed, the transaction of this number would lack what was refused."""
        if self.transactions is not None and self.transactions.number == number:
            self.transactions.batch_failed(error)

    async def _started_transactions(self, what: str) -> TransactionManager:
        await self._ensure_started()
        if self.transactions is None:
            raise ClientError(f"{what} needs a producer with a transactional_id")
        return self.transactions


def _checked_group(group: ConsumerGroupMetadata | str) -> ConsumerGroupMetadata:
    found = ConsumerGroupMetadata(group) if isinstance(group, str) else group
    if not isinstance(found, ConsumerGroupMetadata):
        raise InvalidArgumentError(
            f"the group must be consumer.group_metadata() or a group id, not {group!r}"
        )
    for name in ("group_id", "member_id", "group_instance_id"):
        check_str(name, getattr(found, name))
    if not found.group_id:
        raise InvalidArgumentError("the group id must not be empty")
    check_int("generation_id", found.generation_id, -1, 2**31 - 1)
    return found
