"""What a client's parked fetches hold is free again in time, whatever they ask for."""

import asyncio

from barnabas import Admin
from barnabas_broker.rpc.acceptor import MIB, Limits
from barnabas_common.errors import TransportError
from barnabas_common.messages.fetch import FetchForgotten, FetchPartition, FetchRequest
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
