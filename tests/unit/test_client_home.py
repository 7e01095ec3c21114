"""A client belongs to one process and one event loop: in another one it says so at once."""

import asyncio
import inspect
import subprocess
import sys
from typing import Any

import pytest
from barnabas import Admin, Consumer, Producer, TopicPartition
from barnabas.admin import ConfigResource
from barnabas.cluster.client import Client
from barnabas_common.errors import ClientError, InvalidArgumentError

from tests.support.scripted_brokers import ScriptedBrokers

TP = TopicPartition("flights", 0)
ARGUMENTS: dict[str, Any] = {
    "topic": "flights",
    "topics": ["flights"],
    "value": b"v",
    "batch": b"v",
    "count": 2,
    "partition": TP,
    "partitions": [TP],
    "timestamps": {TP: 0},
    "broker_id": 1,
    "election_type": "preferred",
    "reassignments": {TP: [1]},
    "resource": ConfigResource.topic("flights"),
    "args": [],
    "group": "g",
    "group_id": "g",
    "group_ids": ["g"],
    "offsets": {TP: 0},
    "commit": True,
    "prepared": ("copy", 1, 0),
    "transactional_id": "copy",
    "transactional_ids": ["copy"],
    "producer_id": 1,
    "producer_epoch": 0,
    "coordinator_epoch": 0,
    "error": ClientError("of the application"),
}


def coroutines(cls: type[Client]) -> list[str]:
    """The public coroutines, those of the protocols of `async with` and `async for` included."""
    return [
        name
        for name, function in inspect.getmembers(cls, inspect.iscoroutinefunction)
        if not name.startswith("_") or name in ("__aenter__", "__anext__")
    ]


def call(client: Client, name: str) -> Any:
    method = getattr(client, name)
    needed = [
        parameter
        for parameter in inspect.signature(method).parameters.values()
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
    ]
    named = [one.name for one in needed if one.kind is one.KEYWORD_ONLY]
    return method(
        *(ARGUMENTS[one.name] for one in needed if one.name not in named),
        **{name: ARGUMENTS[name] for name in named},
    )


def started(cls: type[Client]) -> Client:
    """A client whose event loop has ended."""

    async def start() -> Client:
        brokers = ScriptedBrokers()
        await brokers.__aenter__()
        client = cls(bootstrap_servers=brokers.bootstrap, runtime=brokers.runtime)  # type: ignore[call-arg, arg-type]
        if isinstance(client, Producer):
            await client.start()
            await client.send("flights", b"undelivered")
        elif isinstance(client, Consumer):
            client.assign([TP])
        return await client.start()

    return asyncio.run(start())


@pytest.mark.filterwarnings("ignore:a Producer was dropped")
@pytest.mark.parametrize("cls", [Producer, Consumer, Admin])
def test_every_coroutine_in_another_event_loop_says_so(cls: type[Client]) -> None:
    client = started(cls)

    async def outcome(name: str) -> str:
        try:
            async with asyncio.timeout(1.0):
                return f"returned {await call(client, name)!r}"
        except (Exception, asyncio.CancelledError) as error:
            return f"{type(error).__name__}: {error}"

    said = {name: asyncio.run(outcome(name)) for name in coroutines(cls)}
    expected = f"ClientError: this {cls.__name__} belongs to another event loop"
    assert {name: text for name, text in said.items() if not text.startswith(expected)} == {}
    assert len(said) > 5


@pytest.mark.parametrize("servers", [None, 9092, [9092], b"localhost:9092"])
def test_servers_that_are_no_addresses_are_refused(servers: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="bootstrap_servers are host:port"):
        Producer(servers)


def test_a_close_in_another_event_loop_drops_no_record() -> None:
    with asyncio.Runner() as home, asyncio.Runner() as other:
        brokers = ScriptedBrokers()
        home.run(brokers.__aenter__())
        producer = Producer(brokers.bootstrap, runtime=brokers.runtime)
        home.run(producer.send("flights", b"v", partition=0))
        with pytest.raises(ClientError, match="another event loop"):
            other.run(producer.close())
        assert producer.undelivered == 1
        home.run(producer.close())
        assert [record.value for record in brokers.log().records()] == [b"v"]


def test_the_end_of_the_event_loop_gives_up_what_was_not_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    producer = started(Producer)
    assert isinstance(producer, Producer)
    assert [str(error) for error in producer.take_unobserved_errors()] == [
        "the producer's tasks were cancelled before the record was delivered"
    ]
    assert "gave up 1 records for flights-0" in caplog.text


def test_a_client_that_was_closed_or_never_started_may_be_closed_anywhere() -> None:
    async def opened() -> Producer:
        async with ScriptedBrokers() as brokers:
            producer = Producer(brokers.bootstrap, runtime=brokers.runtime)
            await producer.start()
            await producer.close()
            return producer

    asyncio.run(asyncio.run(opened()).close())
    asyncio.run(Producer().close())


FORKED = """
import asyncio, os
from barnabas import Producer
from barnabas_common.errors import BarnabasError, ClientError
from barnabas_common.runtime import Address, Service
from barnabas_common.transport.grpc_network import GrpcNetwork

async def parent():
    channel = GrpcNetwork().connect(Address("127.0.0.1", 1), Service.ADMIN)
    try:
        await channel.open(0.2)
    except BarnabasError:
        pass
    return channel

channel = asyncio.run(parent())
if os.fork() == 0:
    try:
        asyncio.run(Producer("127.0.0.1:1").start())
    except BarnabasError as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
os.wait()
"""


def test_a_client_in_a_forked_process_names_the_fork_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.stdout.startswith("ClientError this process was forked from process"), done
