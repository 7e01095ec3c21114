"""Why there is a controller: the cost of the alternatives at ZooKeeper, counted on a real server.

    python bench/zookeeper_recipes.py [--json FILE]

Two things are measured. The first is the handover of a role whose owner dies, with one znode that
all contenders watch, and with numbered znodes, where each contender watches the one before its own.
The second is how brokers learn of new leaders: all brokers watch the state of every partition, or
one controller notifies them.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from barnabas_controller.zookeeper.kazoo_session import connect_kazoo
from barnabas_controller.zookeeper.session import (
    NodeExists,
    Session,
    SetData,
    WatchEvent,
)
from barnabas_tools.local.zookeeper_server import EmbeddedZooKeeper
from rich.console import Console
from rich.table import Table
from support.machine import write_figures

CONTENDERS = (3, 10, 30, 100)
BROKERS = (3, 10)
PARTITIONS = (100, 1000)
SESSION_MS = 20_000


@dataclass(frozen=True)
class Handover:
    """The end of one owner: watches that fired, requests that followed, ms until the next owner."""

    recipe: str
    contenders: int
    events: int
    requests: int
    ms: float


@dataclass(frozen=True)
class Spreading:
    """New leaders for all partitions: what ZooKeeper did, and ms until every broker knew."""

    way: str
    brokers: int
    partitions: int
    watches: int
    events: int
    reads: int
    ms: float


@asynccontextmanager
async def sessions(address: str, count: int) -> AsyncIterator[list[Session]]:
    """Open this many ZooKeeper sessions, and close them at the end of the block."""
    opened = await asyncio.gather(
        *(connect_kazoo(address)(SESSION_MS, SESSION_MS) for _ in range(count))
    )
    try:
        yield opened
    finally:
        await asyncio.gather(*(session.close() for session in opened))


async def herd(address: str, contenders: int) -> Handover:
    """One ephemeral znode; all others watch it, and all try to create it when it is deleted."""
    async with sessions(address, contenders) as everybody:
        events, requests = 0, 0
        elected = asyncio.Event()
        settled = asyncio.Event()
        settling = contenders - 1

        async def contend(session: Session) -> None:
            nonlocal requests, settling
            requests += 1
            try:
                await session.create("/herd", ephemeral=True)
                elected.set()
            except NodeExists:
                requests += 1
                await session.exists("/herd", lambda event: None)
            settling -= 1
            if settling == 0:
                settled.set()

        tasks: list[asyncio.Task[None]] = []

        def vanished(session: Session) -> None:
            nonlocal events
            events += 1
            tasks.append(asyncio.create_task(contend(session)))

        owner, *others = everybody
        await owner.create("/herd", ephemeral=True)
        for other in others:
            await other.exists("/herd", lambda event, other=other: vanished(other))  # type: ignore[misc]
        began = time.perf_counter()
        await owner.delete("/herd")
        await elected.wait()
        ms = 1000 * (time.perf_counter() - began)
        await settled.wait()
        return Handover("one znode, all watch it", contenders, events, requests, ms)


async def queue(address: str, contenders: int) -> Handover:
    """Numbered ephemeral znodes; each contender watches only the one before its own."""
    async with sessions(address, contenders) as everybody:
        await everybody[0].create("/queue")
        mine = [await s.create("/queue/n-", ephemeral=True, sequential=True) for s in everybody]
        events, requests = 0, 0
        elected = asyncio.Event()
        tasks: list[asyncio.Task[None]] = []

        async def look(number: int) -> None:
            nonlocal requests
            requests += 1
            first = (await everybody[number].children("/queue"))[0]
            if mine[number].endswith(first):
                elected.set()

        def vanished(number: int) -> None:
            nonlocal events
            if elected.is_set():  # cleaning up
                return
            events += 1
            tasks.append(asyncio.create_task(look(number)))

        for number in range(1, contenders):
            await everybody[number].exists(
                mine[number - 1],
                lambda event, number=number: vanished(number),  # type: ignore[misc]
            )
        began = time.perf_counter()
        await everybody[0].delete(mine[0])
        await elected.wait()
        ms = 1000 * (time.perf_counter() - began)
        seen = Handover("numbered, watch the one before", contenders, events, requests, ms)
        for session, path in zip(everybody[1:], mine[1:], strict=True):
            await session.delete(path)
        await everybody[0].delete("/queue")
        return seen


async def everybody_watches(address: str, brokers: int, partitions: int) -> Spreading:
    """Each broker watches the state of each partition, and reads it again when it changes."""
    async with sessions(address, brokers) as watchers, sessions(address, 1) as (writer,):
        paths = await _make_states(writer, partitions)
        events, reads = 0, 0
        known = asyncio.Event()
        tasks: list[asyncio.Task[None]] = []

        async def read(watcher: Session, path: str) -> None:
            nonlocal reads
            await watcher.get(path, lambda event: None)
            reads += 1
            if reads == brokers * partitions:
                known.set()

        def changed(watcher: Session, event: WatchEvent) -> None:
            nonlocal events
            events += 1
            tasks.append(asyncio.create_task(read(watcher, event.path)))

        for watcher in watchers:
            await asyncio.gather(
                *(watcher.get(path, lambda e, w=watcher: changed(w, e)) for path in paths)  # type: ignore[misc]
            )
        began = time.perf_counter()
        await _write_states(writer, paths)
        await known.wait()
        ms = 1000 * (time.perf_counter() - began)
        await _remove_states(writer, paths)
        way = "every broker watches every partition"
        return Spreading(way, brokers, partitions, brokers * partitions, events, reads, ms)


async def one_tells(address: str, brokers: int, partitions: int) -> Spreading:
    """The controller writes the states; its one request to each broker is not timed."""
    async with sessions(address, 1) as (writer,):
        paths = await _make_states(writer, partitions)
        began = time.perf_counter()
        await _write_states(writer, paths)
        ms = 1000 * (time.perf_counter() - began)
        await _remove_states(writer, paths)
        return Spreading("the controller writes and tells", brokers, partitions, 0, 0, 0, ms)


async def _make_states(writer: Session, partitions: int) -> list[str]:
    await writer.create("/states")
    paths = [f"/states/{number}" for number in range(partitions)]
    await asyncio.gather(*(writer.create(path, b"{}") for path in paths))
    return paths


async def _write_states(writer: Session, paths: Sequence[str]) -> None:
    state = b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":1,"isr":[2,3]}'
    for first in range(0, len(paths), 100):
        await writer.multi([SetData(path, state) for path in paths[first : first + 100]])


async def _remove_states(writer: Session, paths: Sequence[str]) -> None:
    await asyncio.gather(*(writer.delete(path) for path in paths))
    await writer.delete("/states")


async def measure(address: str) -> tuple[list[Handover], list[Spreading]]:
    handovers = [
        await recipe(address, contenders) for recipe in (herd, queue) for contenders in CONTENDERS
    ]
    spreadings = [
        await way(address, brokers, partitions)
        for way in (everybody_watches, one_tells)
        for brokers in BROKERS
        for partitions in PARTITIONS
    ]
    return handovers, spreadings


def show(title: str, rows: Sequence[Handover] | Sequence[Spreading]) -> None:
    columns = list(asdict(rows[0]))
    table = Table(*columns, title=title)
    for row in rows:
        values = asdict(row).values()
        table.add_row(*(f"{v:.1f}" if isinstance(v, float) else str(v) for v in values))
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedZooKeeper(Path(folder))
        server.start()
        try:
            handovers, spreadings = asyncio.run(measure(server.connect_string))
        finally:
            server.stop()
    show("the owner dies: who is next?", handovers)
    show("new leaders for all partitions: how do brokers learn of them?", spreadings)
    write_figures(
        options.json,
        handovers=[asdict(row) for row in handovers],
        spreadings=[asdict(row) for row in spreadings],
    )


if __name__ == "__main__":
    main()
