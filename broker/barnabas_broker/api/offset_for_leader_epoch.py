"""OffsetForLeaderEpoch: where an epoch ended in the leader's log (KIP-101, KIP-279, KIP-320)."""

from barnabas.messages.offsets import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from barnabas.runtime import Peer

from barnabas_broker.api.parts import BrokerParts


async def handle_offset_for_leader_epoch(
    parts: BrokerParts, request: OffsetForLeaderEpochRequest, peer: Peer
) -> OffsetForLeaderEpochResponse:
    """Reads only; safe on every listener."""
    return parts.replica_manager.offsets_for_leader_epoch(request)
