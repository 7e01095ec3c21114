"""The check that fences readers and writers with another idea of who leads (KIP-101, KIP-320)."""

from barnabas.errors import FencedLeaderEpochError, UnknownLeaderEpochError

NO_EPOCH = -1


def check_leader_epoch(requested: int, local: int) -> None:
    """Compare the epoch a request believes in with the local one; -1 is not checked.

    Raises:
        FencedLeaderEpochError: the request is behind; its sender must refresh its metadata.
        UnknownLeaderEpochError: this broker is behind; the sender should try again.
    """
    if requested in (NO_EPOCH, local):
        return
    if requested < local:
        raise FencedLeaderEpochError(f"leader epoch {requested} is over, it is {local} now")
    raise UnknownLeaderEpochError(f"leader epoch {requested} is not known here yet, only {local}")
