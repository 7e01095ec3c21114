"""The lock that lets only one command change a local cluster."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas_tools.local.errors import ClusterError


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file; ClusterError if another running command holds it."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterError(
                f"another command is changing the cluster in {path.parent}; wait for it"
            ) from None
        yield
