"""The check that fences requests with another leader epoch (KIP-101, KIP-320)."""

from barnabas_common.errors import FencedLeaderEpochError, UnknownLeaderEpochError
from barnabas_common.messages.sentinels import NO_EPOCH


def check_leader_epoch(requested: int, local: int) -> None:
    """Compare the leader epoch of a request with the local one; -1 is not checked.

    Raises:
        FencedLeaderEpochError: the request is behind; its sender must refresh its metadata.
        UnknownLeaderEpochError: this broker is behind; the sender should try again.
    """
    if requested in (NO_EPOCH, local):
        return
    if requested < local:
        raise FencedLeaderEpochError(f"leader epoch {requested} is over, it is {local} now")
    raise UnknownLeaderEpochError(f"leader epoch {requested} is not known here yet, only {local}")
