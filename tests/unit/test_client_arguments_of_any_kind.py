"""Every public method with arguments of wrong kinds raises errors of Barnabas, none of Python.

A call may also succeed, or wait: some of the values are right for some methods.
"""

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import barnabas.sync
import pytest
from barnabas import Admin, ConfigResource, Consumer, NewTopic, Producer, exactly_once
from barnabas_common.errors import BarnabasError, InvalidArgumentError
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.log_world import produced
from tests.support.scripted_transactions import TransactionBrokers

TP = TopicPartition("flights", 0)
RIGHT: dict[str, dict[str, Any]] = {
    "Admin.abort_transaction": {"partition": TP, "producer_id": 1, "producer_epoch": 0},
    "Admin.alter_group_offsets": {"group_id": "g", "offsets": {TP: 1}},
    "Admin.alter_partition_reassignments": {"reassignments": {TP: [1]}},
    "Admin.complete_transaction": {"prepared": ("t", 1, 0), "commit": True},
    "Admin.create_partitions": {"topic": "flights", "count": 4},
    "Admin.create_topic": {"topic": "t"},
    "Admin.create_topics": {"topics": [NewTopic("t")]},
    "Admin.delete_group_offsets": {"group_id": "g", "partitions": [TP]},
    "Admin.delete_groups": {"group_ids": ["g"]},
    "Admin.delete_topics": {"topics": ["t"]},
    "Admin.describe_broker_configs": {"broker_id": 1},
    "Admin.describe_configs": {"topic": "flights"},
    "Admin.describe_groups": {"group_ids": ["g"]},
    "Admin.describe_producers": {"partitions": [TP]},
    "Admin.describe_topic": {"topic": "flights"},
    "Admin.describe_transactions": {"transactional_ids": ["t"]},
    "Admin.elect_leaders": {"election_type": "preferred"},
    "Admin.end_offsets": {"topic": "flights"},
    "Admin.explain": {"topic": "flights", "partition": 0},
    "Admin.explain_group": {"group_id": "g", "seconds": 0.1},
    "Admin.explain_transaction": {"transactional_id": "t"},
    "Admin.fence_producers": {"transactional_ids": ["t"]},
    "Admin.find_hanging_transactions": {"partitions": [TP]},
    "Admin.incremental_alter_configs": {
        "resource": ConfigResource.topic("flights"),
        "changes": {"retention.ms": "1"},
    },
    "Admin.list_group_offsets": {"group_id": "g"},
    "Admin.list_offsets": {"timestamps": {TP: -1}},
    "Consumer.assign": {"partitions": [TP]},
    "Consumer.beginning_offsets": {"partitions": [TP]},
    "Consumer.end_offsets": {"partitions": [TP]},
    "Consumer.high_watermark": {"partition": TP},
    "Consumer.lag": {"partition": TP},
    "Consumer.offsets_for_times": {"timestamps": {TP: 1}},
    "Consumer.partitions_for": {"topic": "flights"},
    "Consumer.poll": {"timeout_ms": 10},
    "Consumer.poll_arrow": {"timeout_ms": 10},
    "Consumer.position": {"partition": TP},
    "Consumer.seek": {"partition": TP, "offset": 0},
    "Consumer.subscribe": {"topics": ["flights"]},
    "Producer.partitions_for": {"topic": "flights"},
    "Producer.send": {"topic": "flights", "value": b"v"},
    "Producer.send_and_wait": {"topic": "flights", "value": b"v"},
    "Producer.send_batch": {"topic": "flights", "partition": 0, "batch": produced(b"v")},
    "Producer.send_offsets_to_transaction": {"offsets": {TP: 1}, "group": "g"},
}
"""Arguments that are right, for the methods that need some."""
WRONG: list[Any] = [
    *(None, -1, 1.5, 2**70, "x", "", b"x", "\ud800", object()),
    *([], [None], ["x"], [b"x"], [1], TP, ["flights", 0], [("flights", "0")]),
    *({"x": 1}, {1: "x"}, {TP: None}, {TP: "x"}, {TP: 1}, {TP: ["1"]}, {"a": None}, {0: 1}),
]
NOT_FOR_USERS = {"fill_pending", "undo", "backoff_seconds"}


def methods() -> Iterator[tuple[type, str]]:
    for client in (Admin, Consumer, Producer):
        for name, method in inspect.getmembers(client, callable):
            if not name.startswith("_") and name not in NOT_FOR_USERS and parameters_of(method):
                yield client, name


def parameters_of(method: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(method).parameters.values())[1:]


def client_of(kind: type, name: str, brokers: TransactionBrokers) -> Any:
    options: dict[str, Any] = {"default_api_timeout_ms": 2_000}
    if kind is Producer:
        options = {"max_block_ms": 2_000}
        if "transaction" in name:
            options["transactional_id"] = "t"
    elif kind is Consumer:
        options["group_id"] = "g"
    return kind(bootstrap_servers=brokers.bootstrap, runtime=brokers.runtime, **options)


async def call(kind: type, name: str, parameter: inspect.Parameter, wrong: Any) -> None:
    async with TransactionBrokers() as brokers, client_of(kind, name, brokers) as client:
        if kind is Consumer and name not in ("assign", "subscribe"):
            client.assign([TP])
        if name == "send_offsets_to_transaction":
            await client.init_transactions()
            await client.begin_transaction()
        arguments = RIGHT.get(f"{kind.__name__}.{name}", {}) | {parameter.name: wrong}
        with suppress(BarnabasError, TimeoutError):
            async with asyncio.timeout(20):
                if parameter.kind is parameter.VAR_POSITIONAL:
                    outcome = getattr(client, name)(wrong)
                else:
                    outcome = getattr(client, name)(**arguments)
                if inspect.isawaitable(outcome):
                    await outcome


@pytest.mark.parametrize(("kind", "name"), list(methods()))
def test_no_raw_error_of_python_gets_out(kind: type, name: str) -> None:
    raw = {}
    for parameter in parameters_of(getattr(kind, name)):
        for wrong in WRONG:
            try:
                run(call(kind, name, parameter, wrong), seed=1, max_time=300.0)
            except Exception as error:
                raw[f"{parameter.name}={wrong!r}"] = error
    assert not raw


EXACTLY_ONCE: list[tuple[Any, ...]] = [
    (None, None, None),
    ("consumer", "producer", list),
    (Producer, Consumer, list),
]


@pytest.mark.parametrize("arguments", EXACTLY_ONCE)
async def test_exactly_once_names_what_it_needs(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match="exactly_once needs a Consumer|must be a func"):
        await exactly_once(*arguments)
    with pytest.raises(InvalidArgumentError, match="exactly_once needs a Consumer"):
        barnabas.sync.exactly_once(*arguments)


@pytest.mark.parametrize("results", [None, 7, b"value", "topic", ["topic"], [None], [()]])
async def test_what_transform_returns_is_named_if_it_is_no_record(results: Any) -> None:
    async with (
        TransactionBrokers() as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime, transactional_id="t") as producer,
        Consumer(
            "flights",
            bootstrap_servers=brokers.bootstrap,
            runtime=brokers.runtime,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        ) as consumer,
    ):
        brokers.log().append(produced(b"v"))
        with pytest.raises(InvalidArgumentError, match="transform returns several ProducerRecord"):
            async with asyncio.timeout(10):
                await exactly_once(consumer, producer, lambda _: results)
