"""The loop that fetches from one leader, when its connection breaks."""

import asyncio
from typing import Any

from barnabas_broker.replica.follower.replica_fetcher import ReplicaFetcher
from barnabas_common.messages.fetch import FetchResponse
from barnabas_common.runtime import Address, DropConnection, Peer, Service
from barnabas_simulator.loop import run

from tests.support.following import LEADER, Following

ADDRESS = Address("broker-1", 9092)


def test_after_a_broken_connection_a_new_session_begins_with_every_partition() -> None:
    """The leader may not have got the request that said where to go on."""
    requests: list[Any] = []

    async def scenario() -> None:
        following, enough = Following(), asyncio.Event()

        async def handle(request: Any, _: Peer) -> FetchResponse:
            requests.append(request)
            if len(requests) == 2:
                raise DropConnection("the leader's machine is gone")
            if len(requests) == 3:
                enough.set()
            await asyncio.sleep(0.01)
            return FetchResponse(session_id=7)

        node = following.network.node("broker-1")
        listener = await node.listen("REPLICATION", ADDRESS, {Service.REPLICA: handle})
        fetcher = ReplicaFetcher(LEADER, lambda _: ADDRESS, following.context)
        fetcher.add(following.partition)
        await enough.wait()
        await fetcher.close()
        await listener.close()

    run(scenario())
    assert [(r.session_id, r.session_epoch, len(r.partitions)) for r in requests[:3]] == [
        (0, 0, 1),
        (7, 1, 0),
        (0, 0, 1),
    ]
