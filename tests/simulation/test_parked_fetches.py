"""What a client's parked fetches hold is free again in time, whatever they ask for."""

import asyncio

import pytest
from barnabas import Admin, Producer
from barnabas_broker.rpc.acceptor import MIB, Limits
from barnabas_common.errors import TransportError
from barnabas_common.messages.fetch import (
    FetchForgotten,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.runtime import Address, Channel, Service
from barnabas_simulator.cluster import CLIENT_PORT, SimulatedCluster
from barnabas_simulator.loop import run


def test_large_fetches_that_want_to_wait_for_weeks_silence_a_broker_for_seconds_only() -> None:
    """Their sender has left. The broker read no request of any client until it was restarted."""

    async def test() -> None:
        cluster = SimulatedCluster(brokers=1)
        cluster.network.limits = Limits(broker_bytes=MIB)
        await cluster.start()
        network = cluster.client_runtime("client").network

        def connect(service: Service) -> Channel:
            return network.connect(Address("broker-1", CLIENT_PORT), service)

        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("quiet", 1, 1)
        padding = [FetchForgotten("x" * 1000, 0) for _ in range(2000)]
        request = FetchRequest(
            2**31 - 1, 1, MIB, partitions=[FetchPartition("quiet", 0, 0)], forgotten=padding
        )
        hostile = connect(Service.DATA)
        parked = asyncio.ensure_future(hostile.call(request, 3.0))
        await asyncio.wait([parked])
        await hostile.close()
        polite = connect(Service.ADMIN)
        await polite.call(MetadataRequest(["quiet"]), 60.0)
        await polite.close()
        assert isinstance(parked.exception(), TransportError)

    run(test())


@pytest.mark.parametrize("max_bytes", [2000, 1500])  # the second batch does not fit
@pytest.mark.parametrize("of", ["the answer", "the partition"])
def test_a_fetch_waits_for_no_more_than_an_answer_may_hold(max_bytes: int, of: str) -> None:
    """It waited for its whole time while whole batches did not fill the answer to the last byte."""
    position = FetchPartition("orders", 0, 0)
    request = FetchRequest(20_000, min_bytes=max_bytes, max_bytes=MIB, partitions=[position])
    if of == "the answer":
        request.min_bytes, request.max_bytes = MIB, max_bytes
    else:
        position.max_bytes = max_bytes

    async def test() -> None:
        cluster = SimulatedCluster(brokers=1)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("orders", 1, 1)
        async with Producer(cluster.bootstrap, runtime=cluster.client_runtime("p")) as producer:
            for _ in range(3):
                await (await producer.send("orders", b"x" * 1000))
        data = cluster.client_runtime("client").network.connect(
            Address("broker-1", CLIENT_PORT), Service.DATA
        )
        asked = asyncio.get_running_loop().time()
        response: FetchResponse = await data.call(request, 60.0)
        assert asyncio.get_running_loop().time() - asked < 1.0
        assert response.partitions[0].records
        await data.close()

    run(test())
