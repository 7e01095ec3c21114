"""The file `zookeeper.session` of a data directory: the broker's ZooKeeper session.

The next start of the broker closes that session, so that it need not wait until it expires.
"""

import logging
from collections.abc import Callable, Sequence

from barnabas_broker.config import parse_properties
from barnabas_broker.disk.disk import Disk

logger = logging.getLogger(__name__)

NAME = "zookeeper.session"


class SessionFile:
    """`log_dirs` returns the directories that have not failed; the first sound one gets the file.

    A directory that had failed and is used again may still name an earlier session. It is not known
    which of two sessions is the later one, so all are closed: an earlier one has expired.
    """

    def __init__(self, disk: Disk, log_dirs: Callable[[], Sequence[str]]) -> None:
        self._disk = disk
        self._log_dirs = log_dirs

    def read(self) -> list[tuple[int, bytes]]:
        """The ids and passwords of the sessions that the directories name, each session once."""
        found: dict[tuple[int, bytes], None] = {}
        for path in self._log_dirs():
            try:
                text = self._disk.read_file(f"{path}/{NAME}").decode(errors="replace")
                properties = parse_properties(text)
                found[int(properties["id"], 16), bytes.fromhex(properties["password"])] = None
            except (FileNotFoundError, KeyError, ValueError):
                continue
            except OSError as error:
                logger.warning("the previous ZooKeeper session cannot be read: %s", error)
        return list(found)

    def write(self, session_id: int, password: bytes) -> None:
        """Write the file, readable by its owner only: the password opens the session.

        Raises OSError if no directory takes it.
        """
        text = f"id={session_id:x}\npassword={password.hex()}\n"
        written, failure = False, None
        for path in self._log_dirs():
            try:
                if written:
                    self._disk.remove(f"{path}/{NAME}")
                else:
                    self._disk.write_file(f"{path}/{NAME}", text.encode(), private=True)
                    written = True
            except OSError as error:
                logger.warning("%s is not up to date in %s: %s", NAME, path, error)
                failure = error
        if failure is not None and not written:
            raise failure
