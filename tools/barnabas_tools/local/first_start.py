"""What is left of a first start that failed: the logs of its members, which say why.

A second start is a first one too. It must not find ZooKeeper's data, or brokers' identities and
settings, of a cluster that perhaps had another number of brokers.
"""

import shutil
from collections.abc import Iterable
from contextlib import suppress

from barnabas_tools.local.member import Member


def without_files(members: Iterable[Member]) -> list[Member]:
    """The members with nothing in their folders but a log of an earlier attempt."""
    return [member for member in members if _is_without_files(member)]


def _is_without_files(member: Member) -> bool:
    if not member.directory.is_dir():
        return not member.directory.exists()
    return set(member.directory.iterdir()) <= {member.log_file}


def remove_files(members: Iterable[Member]) -> None:
    """Remove what the members' folders hold, without their logs."""
    for member in members:
        for path in member.directory.iterdir() if member.directory.is_dir() else ():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path != member.log_file:
                path.unlink(missing_ok=True)
        with suppress(OSError):
            member.directory.rmdir()
