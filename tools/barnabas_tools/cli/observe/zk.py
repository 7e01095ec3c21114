"""`barnabas zk`: show what the cluster stores in ZooKeeper."""

import json
from pathlib import Path
from typing import Annotated

import typer
from barnabas_common.printable import printable
from barnabas_controller.zookeeper.session import (
    NoNode,
    Session,
    Stat,
    ZooKeeperError,
)

from barnabas_tools.cli.output import print_json
from barnabas_tools.cli.settings import CommandFailed, run_async, settings_of

app = typer.Typer(no_args_is_help=True, help="Show what the cluster stores in ZooKeeper.")

SESSION_TIMEOUT_MS = 10_000
CONNECTION_TIMEOUT_MS = 5_000

ZooKeeperOption = Annotated[
    str | None,
    typer.Option(
        "--zookeeper", metavar="HOST:PORT", help="The ensemble; default: that of the local cluster."
    ),
]
DirectoryOption = Annotated[
    Path, typer.Option("--dir", help="The local cluster to use without --zookeeper.")
]
DEFAULT_DIRECTORY = Path(".barnabas")


@app.callback()
def zk() -> None:
    """Show what the cluster stores in ZooKeeper."""


@app.command()
def tree(
    context: typer.Context,
    path: Annotated[str, typer.Argument(help="The znode to start at.")] = "/",
    zookeeper: ZooKeeperOption = None,
    directory: DirectoryOption = DEFAULT_DIRECTORY,
) -> None:
    """Print every znode from PATH with its data; ephemeral znodes are marked with *."""
    path = _checked(path)
    nodes = run_async(_read_tree(_connect_string(zookeeper, directory), path))
    for node_path, data, stat in nodes:
        if settings_of(context).json:
            print_json(_node_row(node_path, data, stat))
        else:
            depth = 0 if node_path == "/" else node_path.count("/")
            name = node_path.rpartition("/")[2] or "/"
            mark = "*" if stat.ephemeral_owner else ""
            shown = _text(data).replace("\n", " ")
            print(printable(f"{'  ' * depth}{name}{mark}  {shown}".rstrip()))


@app.command()
def get(
    context: typer.Context,
    path: Annotated[str, typer.Argument(help="The znode.")],
    zookeeper: ZooKeeperOption = None,
    directory: DirectoryOption = DEFAULT_DIRECTORY,
) -> None:
    """Print the data and the stat of one znode."""
    path = _checked(path)
    data, stat = run_async(_read_node(_connect_string(zookeeper, directory), path))
    row = _node_row(path, data, stat)
    if settings_of(context).json:
        print_json(row)
        return
    print(printable(_text(data), keep="\n\t"))
    for name, value in row.items():
        if name not in ("path", "data"):
            print(f"{name} = {value}")


def _connect_string(zookeeper: str | None, directory: Path) -> str:
    if zookeeper:
        return zookeeper
    from barnabas_tools.local.cluster import LocalCluster
    from barnabas_tools.local.errors import ClusterError

    try:
        cluster = LocalCluster.find(directory)
    except ClusterError as error:
        raise CommandFailed(f"{error} (or name an ensemble with --zookeeper)") from None
    return cluster.zookeeper_connect


def _checked(path: str) -> str:
    names = path[1:].split("/") if path != "/" else []
    legal = not {"", ".", ".."} & set(names) and path.isprintable()
    if not path.startswith("/") or not legal:
        raise typer.BadParameter(f"not a znode's path: {path!r}", param_hint="PATH")
    return path


async def _open(connect_string: str) -> Session:
    from barnabas_controller.zookeeper.kazoo_session import connect_kazoo

    try:
        return await connect_kazoo(connect_string)(SESSION_TIMEOUT_MS, CONNECTION_TIMEOUT_MS)
    except ZooKeeperError as error:
        raise CommandFailed(str(error)) from None


async def _read_node(connect_string: str, path: str) -> tuple[bytes, Stat]:
    session = await _open(connect_string)
    try:
        return await session.get(path)
    except NoNode:
        raise CommandFailed(f"there is no znode {path}") from None
    except ZooKeeperError as error:
        raise CommandFailed(f"ZooKeeper: {error}") from None
    finally:
        await session.close()


async def _read_tree(connect_string: str, path: str) -> list[tuple[str, bytes, Stat]]:
    session = await _open(connect_string)
    found: list[tuple[str, bytes, Stat]] = []
    try:
        if await session.exists(path) is None:
            raise CommandFailed(f"there is no znode {path}")
        await _walk(session, path, found)
    except ZooKeeperError as error:
        raise CommandFailed(f"ZooKeeper: {error}") from None
    finally:
        await session.close()
    return found


async def _walk(session: Session, path: str, found: list[tuple[str, bytes, Stat]]) -> None:
    try:
        data, stat = await session.get(path)
        children = await session.children(path)
    except NoNode:
        return  # deleted since its parent was read
    found.append((path, data, stat))
    for name in children:
        await _walk(session, f"{path.rstrip('/')}/{name}", found)


def _node_row(path: str, data: bytes, stat: Stat) -> dict[str, object]:
    return {
        "path": path,
        "data": _text(data),
        "czxid": stat.czxid,
        "mzxid": stat.mzxid,
        "version": stat.version,
        "ephemeral_owner": f"{stat.ephemeral_owner:#x}",
        "created_ms": stat.created_ms,
        "modified_ms": stat.modified_ms,
        "children": stat.children,
    }


def _text(data: bytes) -> str:
    """Decode data as text, or else as a JSON string with escapes."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return json.dumps(data.decode("latin-1"))
