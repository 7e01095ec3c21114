"""JoinGroup: the only request of members that needs to know where they are."""

from barnabas_common.messages.groups import JoinGroupRequest, JoinGroupResponse
from barnabas_common.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_join_group(
    parts: BrokerParts, request: JoinGroupRequest, peer: Peer
) -> JoinGroupResponse:
    return await parts.groups.join_group(request, client_host(peer.address))


def client_host(address: str) -> str:
    """The host of `ipv4:127.0.0.1:4711`, written as Java does: `/127.0.0.1`."""
    host = address.removeprefix("ipv4:").removeprefix("ipv6:")
    name, separator, port = host.rpartition(":")
    return "/" + (name if separator and port.isdigit() else host).strip("[]")
