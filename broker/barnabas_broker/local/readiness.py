"""When a cluster serves: every broker says so itself.

Each broker is asked directly for its metadata, so that one answering for another does not count.
"""

import asyncio
from collections.abc import Callable, Collection

from barnabas.errors import TransportError
from barnabas.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.runtime import Address, Network, Service
from barnabas.sync.loop_thread import LoopThread

from barnabas_broker.local.errors import ClusterError
from barnabas_broker.local.layout import ClusterLayout
from barnabas_broker.local.ports import HOST

ASK_TIMEOUT = 3.0
_POLL_SECONDS = 0.05
# Partitions may have to wait for a broker's recovery; some may never get a leader, and that must
# not keep a cluster from being looked at.
LEADERS_TIMEOUT = 10.0


def wait_until_serving(
    layout: ClusterLayout,
    broker_ids: Collection[int],
    timeout: float,
    check_running: Callable[[], None],
) -> None:
    """Wait until each of the brokers knows all of them, and a controller among them.

    When they are the whole cluster, also a while for every partition to have a leader.
    `check_running` is called now and then and may raise. Raises ClusterError after `timeout`.
    """
    # gRPC wants its event loops to live long: this one does, and a caller's own is not touched.
    LoopThread.shared().call(_wait(layout, sorted(broker_ids), timeout, check_running))


async def ask(address: str) -> MetadataResponse:
    """What the broker at this very address knows of the cluster; raises TransportError."""
    from barnabas.runtime.grpc_network import GrpcNetwork

    network = GrpcNetwork()
    return await _ask(network, Address.parse(address))


def reason_not_serving(
    answers: dict[int, MetadataResponse | None], broker_ids: Collection[int]
) -> str | None:
    """Why the cluster does not serve yet, from each broker's answer; None when it does."""
    expected = set(broker_ids)
    for broker_id in sorted(expected):
        answer = answers.get(broker_id)
        if answer is None:
            return f"broker {broker_id} does not answer"
        unknown = expected - {broker.broker_id for broker in answer.brokers}
        if unknown:
            return f"broker {broker_id} does not know broker {min(unknown)} yet"
        if answer.controller_id not in expected:
            return f"broker {broker_id} knows of no controller yet"
    return None


def leaderless(answers: dict[int, MetadataResponse | None]) -> bool:
    """Whether some broker sees a partition without a leader."""
    return any(
        partition.leader_id < 0
        for answer in answers.values()
        if answer is not None
        for topic in answer.topics
        for partition in topic.partitions
    )


async def _wait(
    layout: ClusterLayout,
    broker_ids: list[int],
    timeout: float,
    check_running: Callable[[], None],
) -> None:
    from barnabas.runtime.grpc_network import GrpcNetwork

    network = GrpcNetwork()
    now = asyncio.get_running_loop().time
    began = now()
    whole = broker_ids == layout.broker_ids
    while True:
        check_running()
        answers = {
            broker_id: await _try_ask(network, Address(HOST, layout.ports(broker_id)[0]))
            for broker_id in broker_ids
        }
        reason = reason_not_serving(answers, broker_ids)
        if reason is None and not (
            whole and leaderless(answers) and now() - began < LEADERS_TIMEOUT
        ):
            return
        if reason is not None and now() - began >= timeout:
            raise ClusterError(f"the cluster does not serve after {timeout:g} s: {reason}")
        await asyncio.sleep(_POLL_SECONDS)


async def _try_ask(network: Network, address: Address) -> MetadataResponse | None:
    try:
        return await _ask(network, address)
    except TransportError:
        return None


async def _ask(network: Network, address: Address) -> MetadataResponse:
    channel = network.connect(address, Service.ADMIN)
    try:
        response: MetadataResponse = await channel.call(
            MetadataRequest(all_topics=True), ASK_TIMEOUT
        )
        return response
    finally:
        await channel.close()
