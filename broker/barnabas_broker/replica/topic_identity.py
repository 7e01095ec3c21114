"""Whether a request that names a partition means the topic whose log is here (KIP-516).

A topic that is deleted and created again has the same name and other records. A request may arrive
after that, for example from a connection that was half open, and a leader epoch does not show it:
the epochs of the new topic start at 0 again.
"""


def same_topic(local: str | None, requested: str) -> bool:
    """Whether the ids are equal, or one of them is unknown."""
    return not local or not requested or local == requested
