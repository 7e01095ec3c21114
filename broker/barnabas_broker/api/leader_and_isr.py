"""LeaderAndIsr: the controller makes this broker leader or follower."""

from barnabas.messages.control import LeaderAndIsrRequest, LeaderAndIsrResponse
from barnabas.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_leader_and_isr(
    parts: BrokerParts, request: LeaderAndIsrRequest, peer: Peer
) -> LeaderAndIsrResponse:
    await parts.registered.wait()
    return await parts.replica_manager.become_leader_or_follower(request)
