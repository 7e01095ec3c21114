"""ElectLeaders: the controller holds the elections; answered once this broker has the outcome."""

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.elections import PREFERRED, ElectLeadersRequest, ElectLeadersResponse
from barnabas_common.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_elect_leaders(
    parts: BrokerParts, request: ElectLeadersRequest, peer: Peer
) -> ElectLeadersResponse:
    controller = parts.controller()
    if controller is None:
        return ElectLeadersResponse(ErrorCode.NOT_CONTROLLER)
    response: ElectLeadersResponse = await controller.handle(request)
    elected = {(p.topic, p.partition) for p in response.partitions if not p.error_code}

    def is_known() -> bool:
        cache = parts.metadata_cache
        return all(
            state.leader == state.replicas[0]
            if request.election_type == PREFERRED
            else state.leader >= 0
            for topic in dict.fromkeys(topic for topic, _ in elected if cache.contains(topic))
            for state in cache.partitions(topic)
            if (topic, state.partition) in elected
        )

    await parts.metadata_cache.wait_for(is_known, request.timeout_ms / 1000)
    return response
