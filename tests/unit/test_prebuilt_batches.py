"""`Producer.send_batch`: batches that were built elsewhere."""

import pytest
from barnabas import Producer
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.record.builder import BatchBuilder

from tests.support.scripted_brokers import ScriptedBrokers


async def test_prebuilt_batches_are_sent_as_they_are() -> None:
    async with ScriptedBrokers() as brokers:
        builder = BatchBuilder()
        for i in range(3):
            builder.append(5, None, b"%d" % i)
        batch = builder.build()
        async with Producer(brokers.bootstrap, runtime=brokers.runtime) as producer:
            first = await producer.send_batch("flights", 0, batch)
            second = await producer.send_batch("flights", 0, batch + batch)
            assert [(await first).offset, (await second).offset] == [0, 3]
            assert (await producer.send_and_wait("flights", b"next")).offset == 9


@pytest.mark.parametrize("view", [bytearray, memoryview])
async def test_prebuilt_batches_are_the_callers_again_once_they_are_taken(
    view: type[bytearray | memoryview],
) -> None:
    def built(value: bytes) -> bytes:
        builder = BatchBuilder()
        builder.append(5, None, value)
        return builder.build()

    async with ScriptedBrokers() as brokers:
        brokers.log().leader = -1
        buffer = bytearray(built(b"a") + built(b"b"))
        async with Producer(brokers.bootstrap, runtime=brokers.runtime) as producer:
            first = await producer.send_batch("flights", 0, view(buffer))
            buffer[:] = built(b"c") + built(b"d")
            second = await producer.send_batch("flights", 0, view(buffer))
            brokers.elect(0, leader=1)
            assert [(await first).offset, (await second).offset] == [0, 2]
            assert bytes(buffer) == built(b"c") + built(b"d")
        assert [r.value for r in brokers.log().records()] == [b"a", b"b", b"c", b"d"]


async def test_prebuilt_batches_wait_for_a_topic_that_the_asked_broker_does_not_know_just_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As records do: a broker that has just started knows no topic yet."""
    async with ScriptedBrokers() as brokers:
        builder = BatchBuilder()
        builder.append(5, None, b"v")
        async with Producer(brokers.bootstrap, runtime=brokers.runtime) as producer:
            await (await producer.send_batch("flights", 0, builder.build()))
            with monkeypatch.context() as patch:
                patch.setattr(brokers, "topic", "another")
                await producer._cluster.refresh(MetadataRequest(["flights"]))
                assert "flights" not in producer._cluster.metadata.topics
                handle = await producer.send_batch("flights", 0, builder.build())
            assert (await handle).offset == 1
