"""Arguments of the wrong shape: each is refused by name, and nothing is sent."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from barnabas import Admin, ConfigResource, Consumer, NewTopic, Producer
from barnabas.cluster.options import check_int, checked_brokers
from barnabas.group.offsets import checked
from barnabas_common.errors import ClosedError, InvalidArgumentError
from barnabas_common.messages.groups import DeleteGroupsRequest
from barnabas_common.messages.producer_ids import InitProducerIdRequest
from barnabas_simulator.loop import run

from tests.support.scripted_transactions import TransactionBrokers


@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        ([("t", 0)], "offsets are"),
        ("t", "offsets are"),
        ({"t": 1}, "a partition is"),
        ({("t", 0): 1.5}, "offset of t-0 must be an int"),
        ({("t", 0): "1"}, "offset of t-0 must be an int"),
        ({("t", 0): None}, "offset of t-0 must be an int"),
        ({("t", 0): ()}, "offset of t-0 must be an int"),
        ({("t", "0"): 1}, "must be an int"),
    ],
)
def test_offsets_of_the_wrong_shape(offsets: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        checked(offsets)


@pytest.mark.parametrize("client", [Consumer, Producer, Admin])
def test_a_number_that_no_request_can_carry(client: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"request_timeout_ms .* in 1\.\.2147483647"):
        client(request_timeout_ms=2**31)
    client(retry_backoff_max_ms=2**31)


def test_a_time_that_no_request_can_carry_is_not_called_too_low() -> None:
    with pytest.raises(InvalidArgumentError, match=r"in 0\.\.9223372036854775807, not 9{20}"):
        check_int("the timestamp", int("9" * 20), 0)
    with pytest.raises(InvalidArgumentError, match="must be at least 0, not -1"):
        check_int("the timestamp", -1, 0)


def test_the_controller_judges_which_brokers_there_are() -> None:
    """Its refusal has Kafka's name; only what no request can carry is refused here."""
    assert checked_brokers("the replicas", (1, -1)) == [1, -1]
    with pytest.raises(InvalidArgumentError, match="a broker id must be in"):
        checked_brokers("the replicas", [2**31])


DICT: Any = {"retention.ms": "5"}
ANY: Any = "any"
TOPIC = ConfigResource.topic("flights")
Admins = Callable[[Any], Awaitable[Any]]
OF_ADMIN: dict[str, Admins] = {
    "one group is not several": lambda admin: admin.delete_groups("ab"),
    "one group to describe": lambda admin: admin.describe_groups("ab"),
    "one state": lambda admin: admin.list_groups("Empty"),
    "one transactional id": lambda admin: admin.fence_producers("ab"),
    "an empty transactional id": lambda admin: admin.fence_producers([""]),
    "no transactional id": lambda admin: admin.describe_transactions(None),
    "one state of transactions": lambda admin: admin.list_transactions("Ongoing"),
    "a topic is no partition": lambda admin: admin.describe_producers(["ab"]),
    "offsets of a topic": lambda admin: admin.delete_group_offsets("g", ["ab"]),
    "timestamps of a topic": lambda admin: admin.list_offsets({"flights": -1}),
    "replicas of one topic": lambda admin: admin.describe_replicas("flights"),
    "events of one topic": lambda admin: admin.describe_events("flights"),
    "live events of one topic": lambda admin: admin.events("flights"),
    "a partition as text": lambda admin: admin.explain("flights", "0"),
    "names of new topics": lambda admin: admin.create_topics(["flights"]),
    "a dict in a new topic": lambda admin: admin.create_topics([NewTopic("x", configs=DICT)]),
    "a dict of replicas": lambda admin: admin.create_topics([NewTopic("x", assignments=DICT)]),
    "one new topic": lambda admin: admin.create_topics("flights"),
    "no brokers of a new topic": lambda admin: admin.create_topic("x", assignments={0: 1}),
    "a list of assignments": lambda admin: admin.create_topic("x", assignments=[[1]]),
    "no topic grows": lambda admin: admin.create_partitions(None, 7),
    "too many partitions": lambda admin: admin.create_partitions("x", 2**31),
    "election in a topic": lambda admin: admin.elect_leaders("preferred", "flights"),
    "election in one partition": lambda admin: admin.elect_leaders("preferred", ("flights", 0)),
    "reassignment of a topic": lambda admin: admin.alter_partition_reassignments({"x": [1]}),
    "reassignment to a number": lambda admin: admin.alter_partition_reassignments({("x", 0): 1}),
    "reassignments in a list": lambda admin: admin.alter_partition_reassignments([("x", 0)]),
    "reassignments of a topic": lambda admin: admin.list_partition_reassignments("x"),
    "settings of no broker": lambda admin: admin.describe_broker_configs(None),
    "no seconds": lambda admin: admin.explain_group("g", seconds=float("nan")),
    "a group as bytes": lambda admin: admin.list_group_offsets(b"g"),
    "a group to explain as bytes": lambda admin: admin.explain_group(b"g"),
    "offsets of a group as bytes": lambda admin: admin.alter_group_offsets(b"g", {("f", 0): 1}),
    "offsets of no group": lambda admin: admin.delete_group_offsets(None, [("f", 0)]),
    "an unknown storage": lambda admin: admin.list_groups(storage="disk"),
    "no storage": lambda admin: admin.delete_groups(["g"], storage=None),
    "a topic as bytes": lambda admin: admin.describe_configs(b"flights"),
    "validation as text": lambda admin: admin.create_topic("x", validate_only="false"),
    "partitions as text": lambda admin: admin.create_topic("x", "3"),
    "replication of no number": lambda admin: admin.create_topic("x", 3, None),
    "a name of a setting": lambda admin: admin.create_topic("x", configs={1: "2"}),
    "no resource": lambda admin: admin.incremental_alter_configs("flights", {"a": "b"}),
    "a broker that is no number": lambda admin: admin.incremental_alter_configs(
        ConfigResource.broker(ANY), {"a": "b"}
    ),
    "changes in a list": lambda admin: admin.incremental_alter_configs(TOPIC, ["a"]),
    "a change to a number": lambda admin: admin.incremental_alter_configs(TOPIC, {"a": 1}),
    "to append nothing": lambda admin: admin.incremental_alter_configs(TOPIC, append={"a": None}),
    "the outcome as text": lambda admin: admin.complete_transaction(("t", 1, 0), commit="abort"),
    "half a transaction": lambda admin: admin.complete_transaction(("t", 1), commit=True),
    "no time of a partition": lambda admin: admin.list_offsets({("flights", 0): None}),
    "one partition without a time": lambda admin: admin.list_offsets(("flights", 0)),
    "one producer id": lambda admin: admin.list_transactions(producer_ids=7),
    "a producer as text": lambda admin: admin.abort_transaction(("flights", 0), "7", 0),
    "no type of an election": lambda admin: admin.elect_leaders(None),
}
OF_CONSUMER: dict[str, Admins] = {
    "topics are not assigned": lambda consumer: consumer.assign(["flights"]),
    "one partition is not several": lambda consumer: consumer.assign(("flights", 0)),
    "committed of a topic": lambda consumer: consumer.committed(["flights"]),
    "seek in a topic": lambda consumer: consumer.seek("flights", 0),
    "pause of a topic": lambda consumer: consumer.pause("flights"),
    "ends of a topic": lambda consumer: consumer.end_offsets(["flights"]),
    "times of a topic": lambda consumer: consumer.offsets_for_times({"flights": 1}),
    "one topic is not several": lambda consumer: consumer.list_topics("flights"),
    "no time": lambda consumer: consumer.poll(timeout_ms=float("nan")),
    "one partition to look up": lambda consumer: consumer.offsets_for_times(("flights", 0)),
    "ends of no partition": lambda consumer: consumer.end_offsets(None),
    "starts of one partition": lambda consumer: consumer.beginning_offsets(("flights", 0)),
    "no topics": lambda consumer: consumer.subscribe(None),
    "a listener that does not listen": lambda consumer: consumer.subscribe("flights", print),
    "nobody to tell of a commit": lambda consumer: consumer.commit_async({}, on_commit="me"),
    "the last commit as text": lambda consumer: consumer.close(commit="no"),
}


@pytest.mark.parametrize("case", [*OF_ADMIN, *OF_CONSUMER])
def test_arguments_of_the_wrong_shape(case: str) -> None:
    async def scenario() -> None:
        async with TransactionBrokers() as brokers:
            client: Any
            if case in OF_ADMIN:
                client, call = Admin(brokers.bootstrap, runtime=brokers.runtime), OF_ADMIN[case]
            else:
                client = Consumer(
                    bootstrap_servers=brokers.bootstrap, runtime=brokers.runtime, group_id="g"
                )
                call = OF_CONSUMER[case]
            async with client:
                with pytest.raises(InvalidArgumentError):
                    async with asyncio.timeout(5):
                        await call(client)
            sent = [
                *brokers.requests(DeleteGroupsRequest),
                *brokers.requests(InitProducerIdRequest),
            ]
            assert sent == []

    run(scenario(), seed=1, max_time=60.0)


async def test_a_producer_is_not_closed_with_a_time_that_is_none() -> None:
    """It was closed, and its undelivered records were given up, before the time was refused."""
    wrong: Any = "5"
    async with (
        TransactionBrokers() as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime) as producer,
    ):
        with pytest.raises(InvalidArgumentError, match="timeout_ms"):
            await producer.close(wrong)
        assert await producer.partitions_for("flights") > 0


CHANGES: dict[str, Callable[[Any], Any]] = {
    "assign": lambda consumer: consumer.assign([("flights", 1)]),
    "seek": lambda consumer: consumer.seek(("flights", 0), 0),
    "pause": lambda consumer: consumer.pause(),
    "resume": lambda consumer: consumer.resume(),
    "subscribe": lambda consumer: consumer.subscribe(["flights"]),
    "unsubscribe": lambda consumer: consumer.unsubscribe(),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_closed_consumer_says_so(change: str) -> None:
    """These did nothing, without a word; a poll, and Kafka, refuse."""
    async with TransactionBrokers() as brokers:
        async with Consumer(
            bootstrap_servers=brokers.bootstrap, runtime=brokers.runtime, group_id="g"
        ) as consumer:
            consumer.assign([("flights", 0)])
        with pytest.raises(ClosedError, match="closed"):
            outcome = CHANGES[change](consumer)
            if outcome is not None:
                await outcome


def test_errors_can_be_named_after_the_package_alone_was_imported() -> None:
    """`except barnabas.errors.KafkaError` raised an AttributeError in place of the error."""
    program = (
        "import barnabas\ntry: 1/0\nexcept (barnabas.errors.KafkaError, ArithmeticError): pass"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
