"""What runs inside a broker's container, because ZooKeeper listens only there.

    python3 -m barnabas_tools.chaos.faults.inside expire        ends the broker's session
    python3 -m barnabas_tools.chaos.faults.inside delete PATH   deletes a znode
    python3 -m barnabas_tools.chaos.faults.inside stat PATH     prints its czxid and its owner

The ensemble and the data directory are those of the broker's environment. Prints one JSON object.
"""

import json
import os
import sys
from pathlib import Path

from barnabas_broker.config import parse_properties
from barnabas_common.runtime.event_loop import run_program
from barnabas_controller.zookeeper.kazoo_session import connect_kazoo
from barnabas_controller.zookeeper.session import (
    NoNode,
    Session,
    SessionExpired,
    ZooKeeperError,
    ZooKeeperUnreachable,
)

_SESSION_FILE = "zookeeper.session"
_TIMEOUT_MS = 6_000


async def _expire() -> dict[str, object]:
    """End the session of this container's broker, as if it had expired."""
    directory = os.environ["BARNABAS_LOG_DIRS"].split(",")[0]
    kept = parse_properties((Path(directory) / _SESSION_FILE).read_text())
    session_id, password = int(kept["id"], 16), bytes.fromhex(kept["password"])
    session = await _connect((session_id, password))
    await session.close()
    return {"session": f"{session_id:#x}"}


async def _delete(path: str) -> dict[str, object]:
    session = await _connect()
    try:
        _, stat = await session.get(path)
        await session.delete(path)
    finally:
        await session.close()
    return {"path": path, "czxid": stat.czxid}


async def _stat(path: str) -> dict[str, object]:
    """Print 0 for the czxid of a znode that is not there."""
    session = await _connect()
    try:
        _, stat = await session.get(path)
    except NoNode:
        return {"path": path, "czxid": 0, "owner": "0x0"}
    finally:
        await session.close()
    return {"path": path, "czxid": stat.czxid, "owner": f"{stat.ephemeral_owner:#x}"}


async def _connect(attach: tuple[int, bytes] | None = None) -> Session:
    connect = connect_kazoo(os.environ["BARNABAS_ZOOKEEPER_CONNECT"])
    return await connect(_TIMEOUT_MS, _TIMEOUT_MS, attach)


def main(arguments: list[str]) -> int:
    commands = {"expire": _expire, "delete": _delete, "stat": _stat}
    try:
        found = run_program(commands[arguments[0]](*arguments[1:]))  # type: ignore[operator]
    except (OSError, SessionExpired, ZooKeeperError, ZooKeeperUnreachable) as error:
        print(str(error) or type(error).__name__, file=sys.stderr)
        return 1
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
