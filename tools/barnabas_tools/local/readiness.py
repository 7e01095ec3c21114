"""Whether a cluster serves.

Each broker is asked directly, so that no broker answers for another.
"""

import asyncio
from collections.abc import Callable, Collection

from barnabas.sync.loop_thread import LoopThread
from barnabas_common.errors import TransportError
from barnabas_common.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_common.runtime import Address, Network, Service

from barnabas_tools.local.errors import ClusterError
from barnabas_tools.local.layout import ClusterLayout
from barnabas_tools.local.ports import HOST

ASK_TIMEOUT = 3.0
_POLL_SECONDS = 0.05
# How long to wait for leaders, because a broker may still recover its logs. The wait is limited,
# because some partitions may never get a leader, and the cluster must be usable nevertheless.
LEADERS_TIMEOUT = 10.0


def wait_until_serving(
    layout: ClusterLayout,
    broker_ids: Collection[int],
    timeout: float,
    check_running: Callable[[], None],
) -> None:
    """Wait until each of the brokers knows all of them, and a controller among them.

    If they are the whole cluster, also wait for a while until every partition has a leader.
    `check_running` is called repeatedly and may raise. Raises ClusterError after `timeout`.
    """
    # gRPC needs long-lived event loops; the shared one is, and the caller's is not used.
    LoopThread.shared().call(_wait(layout, sorted(broker_ids), timeout, check_running))


async def ask(address: str) -> MetadataResponse:
    """Return what the broker at this address knows of the cluster; raises TransportError."""
    from barnabas_common.transport.grpc_network import GrpcNetwork

    network = GrpcNetwork()
    return await _ask(network, Address.parse(address))


def reason_not_serving(
    answers: dict[int, MetadataResponse | None], broker_ids: Collection[int]
) -> str | None:
    """Return why the cluster does not serve yet, from each broker's answer; None if it does."""
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
    """Whether any broker knows a partition without a leader."""
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
    from barnabas_common.transport.grpc_network import GrpcNetwork

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
