"""A transactional producer against scripted brokers: what becomes visible, what an error means."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from barnabas import Producer
from barnabas.producer.transaction.states import State
from barnabas_common.errors import (
    BarnabasError,
    ClientError,
    ClosedError,
    DeliveryTimeoutError,
    InvalidArgumentError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidTransactionTimeoutError,
    KafkaError,
    MessageTooLargeError,
    OutOfOrderSequenceNumberError,
    ProducerFencedError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionFailedError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProduceRequest
from barnabas_common.messages.producer_ids import InitProducerIdRequest
from barnabas_common.messages.transactions import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
)
from barnabas_common.record.batch import batches
from barnabas_common.record.builder import BatchBuilder
from barnabas_simulator.loop import run

from tests.support.scripted_brokers import refuse
from tests.support.scripted_transactions import TransactionBrokers

E = ErrorCode
Scenario = Callable[[TransactionBrokers], Awaitable[None]]


def story(scenario: Scenario) -> None:
    async def tell() -> None:
        async with TransactionBrokers() as brokers:
            await scenario(brokers)

    run(tell(), seed=1, max_time=300.0)


def producer_of(brokers: TransactionBrokers, name: str = "p", **options: Any) -> Producer:
    return Producer(
        brokers.bootstrap,
        runtime=brokers.runtime_of(name),
        **{"transactional_id": "copy", "client_id": name, **options},
    )


async def send(producer: Producer, *values: bytes) -> list[Any]:
    """One record to each partition in turn."""
    return [
        await producer.send("flights", value, partition=number % 3)
        for number, value in enumerate(values)
    ]


def epochs(brokers: TransactionBrokers, partition: int = 0) -> list[tuple[int, int]]:
    """Epoch and first sequence of every batch of a partition."""
    found = [header for _, header in batches(bytes(brokers.log(partition).data))]
    assert all(header.is_transactional for header in found)
    return [(header.producer_epoch, header.base_sequence) for header in found]


def test_what_is_committed_becomes_visible_at_once() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers, transaction_timeout_ms=9_000) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            handles = await send(producer, b"a", b"b", b"c")
            await producer.flush()
            assert brokers.committed() == [] and len(brokers.undecided()) == 3
            await producer.commit_transaction()
            assert brokers.committed() == [b"a", b"b", b"c"]
            assert all(handle.done() for handle in handles)
        assert brokers.transactions["copy"].timeout_ms == 9_000
        assert {request.transactional_id for _, request in brokers.produced} == {"copy"}

    story(scenario)


def test_every_transaction_has_an_epoch_and_sequences_from_0() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            for number in range(3):
                await producer.begin_transaction()
                await send(producer, b"%d" % number)
                if number == 1:
                    await producer.flush()
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
        assert epochs(brokers) == [(0, 0), (1, 0), (2, 0)]
        assert brokers.committed() == [b"0", b"2"] and brokers.aborted() == [b"1"]

    story(scenario)


def test_partitions_are_added_before_their_records_and_together() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            held = brokers.hold(AddPartitionsToTxnRequest, lambda _: True)
            await producer.send("flights", b"0", partition=0)
            await held.reached.wait()
            for number in (1, 2, 1):
                await producer.send("flights", b"%d" % number, partition=number)
            await asyncio.sleep(1.0)
            assert brokers.produced == []
            held.release.set()
            await producer.commit_transaction()
            asked = brokers.requests(AddPartitionsToTxnRequest)
            named = [[p.partition for p in r.transactions[0].partitions] for r in asked]
            assert named == [[0], [1, 2]]
            assert asked[0].transactions[0].transaction_version == 2

    story(scenario)


def test_a_transaction_without_records_asks_no_coordinator() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            for _ in range(2):
                async with producer.transaction():
                    pass
                await producer.begin_transaction()
                await producer.abort_transaction()
        assert [type(request) for request in brokers.asked] == [InitProducerIdRequest]

    story(scenario)


def test_an_abort_drops_what_is_queued_and_waits_for_what_is_in_flight() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers, linger_ms=60_000) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            release = asyncio.Event()

            async def hold(broker_id: int, request: Any) -> Any:
                await release.wait()

            brokers.faults.append(hold)
            (sent,) = await send(producer, b"sent")
            flushing = asyncio.create_task(producer.flush())
            while not brokers.produced:
                await asyncio.sleep(0.01)
            queued = await producer.send("flights", b"queued", partition=1)
            aborting = asyncio.create_task(producer.abort_transaction())
            await asyncio.sleep(1.0)
            assert not aborting.done() and not sent.done()
            with pytest.raises(TransactionAbortedError):
                queued.result()
            release.set()
            await aborting
            await flushing
            assert sent.result().offset == 0
        assert brokers.aborted() == [b"sent"] and brokers.committed() == []

    story(scenario)


def test_a_block_commits_at_its_end_and_aborts_after_an_exception() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await send(producer, b"a", b"b")
            with pytest.raises(ValueError, match="mine"):
                async with producer.transaction():
                    await send(producer, b"c")
                    await producer.flush()
                    raise ValueError("mine")
            async with producer.transaction() as same:
                await send(same, b"d")
        assert brokers.committed() == [b"a", b"d", b"b"] and brokers.aborted() == [b"c"]

    story(scenario)


def test_the_second_producer_fences_the_first_which_is_closed() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        first, second = producer_of(brokers, "first"), producer_of(brokers, "second")
        await first.init_transactions()
        with pytest.raises(ProducerFencedError) as caught:
            async with first.transaction():
                await send(first, b"zombie")
                await first.flush()
                await second.init_transactions()
                async with second.transaction():
                    await send(second, b"heir")
        assert caught.value.fatal and not caught.value.retriable
        with pytest.raises(ClosedError):
            await first.begin_transaction()
        await second.close()
        assert brokers.committed() == [b"heir"] and brokers.aborted() == [b"zombie"]

    story(scenario)


def test_after_a_fatal_error_a_producer_can_only_be_closed() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            (handle,) = await send(producer, b"v")
            await handle
            async with producer_of(brokers, "heir") as heir:
                await heir.init_transactions()
            with pytest.raises(ProducerFencedError):
                await producer.commit_transaction()
            asked = len(brokers.asked)
            for again in (
                producer.init_transactions, producer.begin_transaction, producer.commit_transaction,
                producer.abort_transaction, lambda: send(producer, b"more"),
                lambda: producer.send_offsets_to_transaction({("flights", 0): 1}, "g"),
            ):  # fmt: skip
                with pytest.raises(ProducerFencedError):
                    await again()
            assert len(brokers.asked) == asked

    story(scenario)


def test_an_error_of_a_record_makes_the_commit_fail_until_the_abort() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            brokers.faults.append(refuse(E.INVALID_RECORD))
            await send(producer, b"bad")
            with pytest.raises(KafkaError, match="INVALID_RECORD") as caught:
                await producer.commit_transaction()
            assert not caught.value.fatal and not caught.value.retriable
            with pytest.raises(KafkaError, match="INVALID_RECORD"):
                await send(producer, b"more")
            with pytest.raises(KafkaError, match="INVALID_RECORD"):
                await producer.commit_transaction()
            await producer.abort_transaction()
            async with producer.transaction():
                await send(producer, b"good")
        assert brokers.committed() == [b"good"]
        assert brokers.requests(EndTxnRequest)[0].committed is False

    story(scenario)


def test_a_record_that_is_refused_at_once_is_missing_in_the_transaction() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await send(producer, b"a")
            with pytest.raises(InvalidArgumentError):
                await producer.send("flights", "no bytes")  # type: ignore[arg-type]
            with pytest.raises(MessageTooLargeError):
                await producer.send("flights", bytes(2_000_000))
            with pytest.raises(MessageTooLargeError):
                await producer.commit_transaction()
            await producer.abort_transaction()
        assert brokers.committed() == []

    story(scenario)


def test_records_that_expire_make_the_transaction_abort() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        options = {"delivery_timeout_ms": 2_000, "request_timeout_ms": 500}
        async with producer_of(brokers, **options) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            (handle,) = await send(producer, b"first")
            await handle

            async def silent(broker_id: int, request: Any) -> Any:
                brokers.faults.append(silent)
                await asyncio.Event().wait()

            brokers.faults.append(silent)
            await send(producer, b"lost", b"lost too")
            with pytest.raises(DeliveryTimeoutError):
                await producer.commit_transaction()
            brokers.faults.clear()
            await producer.abort_transaction()
            async with producer.transaction():
                await send(producer, b"a", b"b")
        assert brokers.committed() == [b"a", b"b"]

    story(scenario)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, OutOfOrderSequenceNumberError),
        (E.UNKNOWN_PRODUCER_ID, KafkaError),
        (E.TRANSACTION_ABORTABLE, TransactionAbortableError),
        (E.INVALID_PRODUCER_EPOCH, InvalidProducerEpochError),
        (E.INVALID_TXN_STATE, KafkaError),
    ],
)
def test_a_leader_that_refuses_a_batch_makes_the_transaction_abort(
    code: ErrorCode, kind: type[BarnabasError]
) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async def refused(broker_id: int, request: ProduceRequest) -> Any:
            answer = await refuse(code)(broker_id, request)
            for part in answer.partitions:
                part.log_start_offset = 0
            return answer

        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            brokers.faults.append(refused)
            await send(producer, b"x")
            with pytest.raises(kind) as caught:
                await producer.commit_transaction()
            assert not caught.value.fatal
            await producer.abort_transaction()
            async with producer.transaction():
                await send(producer, b"y")
        assert brokers.committed() == [b"y"]
        assert epochs(brokers) == [(1, 0)], "the abort raised the epoch"

    story(scenario)


def test_a_transaction_that_timed_out_fences_its_producer() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await send(producer, b"a")
            await producer.flush()
            brokers.time_out("copy")
            with pytest.raises(InvalidProducerEpochError):
                await (await send(producer, b"b"))[0]
            with pytest.raises(ProducerFencedError, match="open for too long"):
                await producer.abort_transaction()
        assert brokers.committed() == [] and brokers.aborted() == [b"a"]

    story(scenario)


@pytest.mark.parametrize("kind", [InitProducerIdRequest, AddPartitionsToTxnRequest, EndTxnRequest])
@pytest.mark.parametrize(
    "codes",
    [
        [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE],
        [E.COORDINATOR_LOAD_IN_PROGRESS, E.CONCURRENT_TRANSACTIONS],
    ],
)
def test_retriable_errors_of_the_coordinator_are_retried(kind: type, codes: list[int]) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.refusals[kind] += codes
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await send(producer, b"a", b"b")
        assert brokers.committed() == [b"a", b"b"]
        assert len(brokers.requests(kind)) >= 3

    story(scenario)


@pytest.mark.parametrize("kind", [InitProducerIdRequest, AddPartitionsToTxnRequest, EndTxnRequest])
def test_a_lost_answer_is_asked_for_again(kind: type) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.silences[kind] = 2
        async with producer_of(brokers, request_timeout_ms=500) as producer:
            await producer.init_transactions()
            for value in (b"a", b"b"):
                async with producer.transaction():
                    await send(producer, value)
        assert brokers.committed() == [b"a", b"b"]

    story(scenario)


def test_the_coordinator_moves_and_is_found_again() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers, request_timeout_ms=500) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await send(producer, b"a")
            await producer.flush()
            brokers.transaction_coordinator = 3
            await producer.commit_transaction()
            brokers.transaction_coordinator = 1
            await producer.begin_transaction()
            await send(producer, b"b")
            brokers.kill(1)
            committing = asyncio.create_task(producer.commit_transaction())
            await asyncio.sleep(5.0)
            brokers.elect(0, 2)
            brokers.transaction_coordinator = 2
            await committing
        assert brokers.committed(0) == [b"a", b"b"]

    story(scenario)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (InitProducerIdRequest, E.UNKNOWN_SERVER_ERROR),
        (AddPartitionsToTxnRequest, E.INVALID_TXN_STATE),
        (EndTxnRequest, E.INVALID_TXN_STATE),
        (EndTxnRequest, E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_answer_without_a_way_on_is_fatal(kind: type, code: ErrorCode) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.refusals[kind] += [code]
        async with producer_of(brokers) as producer:
            with pytest.raises(TransactionFailedError, match=code.name) as caught:
                await producer.init_transactions()
                async with producer.transaction():
                    await send(producer, b"a")
            assert caught.value.fatal
        assert brokers.committed() == []

    story(scenario)


def test_a_timeout_above_the_brokers_limit_is_named() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.refusals[InitProducerIdRequest] += [E.INVALID_TRANSACTION_TIMEOUT]
        async with producer_of(brokers, transaction_timeout_ms=1_000_000) as producer:
            with pytest.raises(InvalidTransactionTimeoutError, match="1000000.*max.timeout.ms"):
                await producer.init_transactions()

    story(scenario)


def test_a_topic_that_may_not_be_written_makes_the_transaction_abort() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.refused_topics.add("flights")
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            handles = await send(producer, b"a", b"b")
            with pytest.raises(TopicAuthorizationFailedError):
                await producer.commit_transaction()
            with pytest.raises(TopicAuthorizationFailedError):
                handles[0].result()
            await producer.abort_transaction()
        assert brokers.produced == []

    story(scenario)


def test_a_coordinator_that_forgot_the_producer_gives_it_another_id() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await send(producer, b"a")
            brokers.transactions.clear()  # it has expired
            await producer.begin_transaction()
            await send(producer, b"b")
            with pytest.raises(InvalidProducerIdMappingError) as caught:
                await producer.commit_transaction()
            assert not caught.value.fatal
            await producer.abort_transaction()
            async with producer.transaction():
                await send(producer, b"c")
        assert brokers.committed() == [b"a", b"c"]

    story(scenario)


def test_a_call_that_times_out_is_repeated_and_nothing_else_is_possible() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers, max_block_ms=1_000) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await send(producer, b"a")
            held = brokers.hold(EndTxnRequest, lambda _: True)
            with pytest.raises(RequestTimedOutError, match="call it again") as caught:
                await producer.commit_transaction()
            assert caught.value.retriable
            for other in (producer.abort_transaction, producer.begin_transaction):
                with pytest.raises(ClientError, match="commit_transaction is not known"):
                    await other()
            held.release.set()
            await asyncio.sleep(5.0)
            await producer.commit_transaction()
            assert len(brokers.requests(EndTxnRequest)) == 1
            async with producer.transaction():
                await send(producer, b"b")
        assert brokers.committed() == [b"a", b"b"]

    story(scenario)


def test_a_commit_that_its_caller_gave_up_goes_on() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await send(producer, b"a")
            held = brokers.hold(EndTxnRequest, lambda _: True)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2.0):
                    await producer.commit_transaction()
            held.release.set()
        assert brokers.committed() == [b"a"], "close waited for it"

    story(scenario)


@pytest.mark.parametrize("failed", [False, True])
def test_close_aborts_an_open_transaction(failed: bool) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        producer = producer_of(brokers)
        await producer.init_transactions()
        await producer.begin_transaction()
        await send(producer, b"a")
        await producer.flush()
        if failed:
            brokers.faults.append(refuse(E.INVALID_RECORD))
            await send(producer, b"b")
            await producer.flush()
        await producer.close()
        assert brokers.aborted() == [b"a"] and not brokers.transactions["copy"].open

    story(scenario)


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


def test_batches_built_elsewhere_are_part_of_the_transaction() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        builder = BatchBuilder("gzip")
        for number in range(3):
            builder.append(0, None, b"%d" % number)
        built = builder.build()
        async with producer_of(brokers, compression_type="gzip") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send("flights", b"first", partition=0)
                await producer.send_batch("flights", 0, built * 2)
            copied = bytes(brokers.log().data)
        assert brokers.committed(0) == [b"first", *[b"0", b"1", b"2"] * 2]
        assert epochs(brokers) == [(0, 0), (0, 1), (0, 4)]
        async with Producer(brokers.bootstrap, runtime=brokers.runtime_of("plain")) as plain:
            await (await plain.send_batch("flights", 1, copied))
        copies = [header for _, header in batches(bytes(brokers.log(1).data))]
        assert len(copies) == 3 and not any(header.is_transactional for header in copies)

    story(scenario)


def test_a_batch_that_is_too_large_is_split_within_the_transaction() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.log().max_batch = 400
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                for number in range(20):
                    await producer.send("flights", b"%030d" % number, partition=0)
        assert brokers.committed(0) == [b"%030d" % number for number in range(20)]
        assert len(epochs(brokers)) > 1

    story(scenario)


def test_the_states_follow_the_table() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.start()
            manager = producer.transactions
            assert manager is not None and manager.state is State.UNINITIALIZED
            await producer.init_transactions()
            assert manager.state is State.READY
            await producer.begin_transaction()
            assert manager.state is State.IN_TRANSACTION
            await producer.commit_transaction()
            assert manager.state is State.READY

    story(scenario)


def test_an_abort_does_not_end_what_the_coordinator_has_not_begun() -> None:
    """While it completes the transaction before, it would take the producer for a fenced one."""

    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await send(producer, b"a")
            brokers.refusals[AddPartitionsToTxnRequest] += [E.CONCURRENT_TRANSACTIONS] * 1_000
            await producer.begin_transaction()
            await send(producer, b"b")
            await asyncio.sleep(0.2)
            async with asyncio.timeout(5.0):
                await producer.abort_transaction()
            assert len(brokers.requests(EndTxnRequest)) == 1
            brokers.refusals[AddPartitionsToTxnRequest].clear()
            async with producer.transaction():
                await send(producer, b"c")
        assert brokers.committed() == [b"a", b"c"]

    story(scenario)


def test_an_abort_waits_until_it_knows_whether_the_transaction_has_begun() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers, request_timeout_ms=500) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            brokers.silences[AddPartitionsToTxnRequest] = 2
            await send(producer, b"a")
            await asyncio.sleep(0.2)
            await producer.abort_transaction()
            assert len(brokers.requests(AddPartitionsToTxnRequest)) == 3
            assert [r.committed for r in brokers.requests(EndTxnRequest)] == [False]
        assert not brokers.transactions["copy"].open

    story(scenario)
