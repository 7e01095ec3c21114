"""Calls and options that a transactional producer refuses, against scripted brokers."""

from typing import Any

import pytest
from barnabas import Producer
from barnabas_common.errors import ClientError, InvalidArgumentError, InvalidTransactionTimeoutError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.producer_ids import InitProducerIdRequest
from barnabas_common.record.builder import BatchBuilder

from tests.support.scripted_transactions import TransactionBrokers
from tests.support.transactional_producer import producer_of, send, story

E = ErrorCode


def test_misuse_is_told_plainly_and_changes_nothing() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            for call in (
                producer.begin_transaction, producer.commit_transaction, producer.abort_transaction,
                lambda: send(producer, b"v"),
                lambda: producer.send_offsets_to_transaction({("flights", 0): 1}, "g"),
            ):  # fmt: skip
                with pytest.raises(ClientError, match=r"init_transactions\(\) first"):
                    await call()
            await producer.init_transactions()
            with pytest.raises(ClientError, match="initialized already"):
                await producer.init_transactions()
            builder = BatchBuilder()
            builder.append(0, None, b"v")
            for call in (
                lambda: send(producer, b"v"), producer.commit_transaction,
                lambda: producer.send_batch("flights", 0, builder.build()),
                lambda: producer.send_offsets_to_transaction({("flights", 0): 1}, "g"),
            ):  # fmt: skip
                with pytest.raises(ClientError, match=r"begin_transaction\(\) first"):
                    await call()
            await producer.begin_transaction()
            with pytest.raises(ClientError, match="commit or abort it first"):
                await producer.begin_transaction()
            with pytest.raises(InvalidArgumentError, match="group id"):
                await producer.send_offsets_to_transaction({("flights", 0): 1}, "")
            with pytest.raises(InvalidArgumentError, match="group_metadata"):
                await producer.send_offsets_to_transaction({}, 7)  # type: ignore[arg-type]
            await send(producer, b"v")
            await producer.commit_transaction()
        async with Producer(brokers.bootstrap, runtime=brokers.runtime_of("plain")) as plain:
            with pytest.raises(ClientError, match="needs a producer with a transactional_id"):
                await plain.init_transactions()
            await plain.send_and_wait("flights", b"plain", partition=1)
        assert brokers.committed() == [b"v", b"plain"]

    story(scenario)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"enable_idempotence": False}, "needs enable_idempotence=True"),
        ({"acks": 1}, 'needs acks="all", not 1'),
        ({"retries": 0}, "needs retries above 0"),
        ({"max_in_flight": 6}, "needs max_in_flight of at most 5"),
        ({"transactional_id": ""}, "must not be empty"),
        ({"transactional_id": 7}, "must be a str"),
        ({"transaction_timeout_ms": 0}, "transaction_timeout_ms must be at least 1"),
    ],
)
def test_options_that_transactions_do_not_go_with(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        Producer(**{"transactional_id": "copy", **options})


def test_a_timeout_above_the_brokers_limit_is_named() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.refusals[InitProducerIdRequest] += [E.INVALID_TRANSACTION_TIMEOUT]
        async with producer_of(brokers, transaction_timeout_ms=1_000_000) as producer:
            with pytest.raises(InvalidTransactionTimeoutError, match="1000000.*max.timeout.ms"):
                await producer.init_transactions()

    story(scenario)
