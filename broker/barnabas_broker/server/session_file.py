"""The file `zookeeper.session` of a data directory: the broker's ZooKeeper session.

The next start of the broker closes that session, so that it need not wait until it expires.
"""

import contextlib
from collections.abc import Callable, Sequence

from barnabas_broker.config import parse_properties
from barnabas_broker.disk.disk import Disk

NAME = "zookeeper.session"


class SessionFile:
    """`log_dirs` returns the directories that have not failed; the first one gets the file."""

    def __init__(self, disk: Disk, log_dirs: Callable[[], Sequence[str]]) -> None:
        self._disk = disk
        self._log_dirs = log_dirs

    def read(self) -> tuple[int, bytes] | None:
        """The id and the password of the previous session; None without a usable file."""
        for path in self._log_dirs():
            with contextlib.suppress(FileNotFoundError, KeyError, ValueError):
                text = self._disk.read_file(f"{path}/{NAME}").decode(errors="replace")
                properties = parse_properties(text)
                return int(properties["id"], 16), bytes.fromhex(properties["password"])
        return None

    def write(self, session_id: int, password: bytes) -> None:
        """Write the file, readable by its owner only: the password opens the session.

        Raises OSError.
        """
        text = f"id={session_id:x}\npassword={password.hex()}\n"
        for path in self._log_dirs()[:1]:
            self._disk.write_file(f"{path}/{NAME}", text.encode(), private=True)
