"""ElectLeaders: a matter of the controller's; answered when the brokers have heard of it."""

from barnabas.error_code import ErrorCode
from barnabas.messages.elections import PREFERRED, ElectLeadersRequest, ElectLeadersResponse
from barnabas.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_elect_leaders(
    parts: BrokerParts, request: ElectLeadersRequest, peer: Peer
) -> ElectLeadersResponse:
    controller = parts.controller()
    if controller is None:
        return ElectLeadersResponse(ErrorCode.NOT_CONTROLLER)
    response = await controller.elect_leaders(request)
    elected = {(p.topic, p.partition) for p in response.partitions if not p.error_code}

    def heard_of() -> bool:
        """This broker is told like all others."""
        cache = parts.metadata_cache
        return all(
            state.leader == state.replicas[0]
            if request.election_type == PREFERRED
            else state.leader >= 0
            for topic in dict.fromkeys(topic for topic, _ in elected if cache.contains(topic))
            for state in cache.partitions(topic)
            if (topic, state.partition) in elected
        )

    await parts.metadata_cache.wait_for(heard_of, request.timeout_ms / 1000)
    return response
