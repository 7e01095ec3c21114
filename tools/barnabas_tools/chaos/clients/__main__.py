"""One client as a process of its own, which may be killed: its history outlives it.

    python -m barnabas_tools.chaos.clients producer --folder F --client p1 --topic t --set acks=1
    python -m barnabas_tools.chaos.clients member   --folder F --client m1 --topic t --group g
    python -m barnabas_tools.chaos.clients judge    --folder F --client judge --topic t

It works until SIGTERM or SIGINT and then ends what it has begun. The judge is the final read: it
ends by itself, with exit code 1 if not everything could be read.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

from barnabas import Admin
from barnabas.consumer.config import ConsumerOptions, IsolationLevel
from barnabas.producer.config import ProducerOptions
from barnabas_common.errors import BarnabasError
from barnabas_common.history.files import HistoryWriter, history_files, read_files
from barnabas_common.history.lines import MalformedHistoryError
from barnabas_common.history.operations import Commit, End, Send, Stage
from barnabas_common.history.recorder import Recorder
from barnabas_common.runtime.event_loop import program_runner
from barnabas_common.topic_partition import TopicPartition

from barnabas_tools.chaos.clients.final_read import ask_for_commits, read_finally
from barnabas_tools.chaos.clients.observing import observe
from barnabas_tools.chaos.clients.producing import Producing
from barnabas_tools.chaos.clients.reading import Member, Reading
from barnabas_tools.chaos.clients.transacting import Transacting

Work = Callable[[argparse.Namespace, Recorder, list[TopicPartition]], Awaitable[int]]


def main() -> int:
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / f"{options.client}.{options.incarnation}.jsonl"
    try:
        with HistoryWriter(path) as writer, program_runner() as loop:
            made = Recorder(writer.write, time.monotonic_ns, options.client, options.incarnation)
            return loop.run(_work(options, made))
    except FileExistsError:
        return _failed(f"{path} exists: this incarnation has run before")
    except (BarnabasError, MalformedHistoryError, ValueError, OSError) as error:
        return _failed(f"{type(error).__name__}: {error}")


def _failed(why: str) -> int:
    print(f"error: {why}", file=sys.stderr)
    return 2


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m barnabas_tools.chaos.clients")
    parser.add_argument("role", choices=sorted(_ROLES))
    parser.add_argument("--folder", type=Path, required=True, help="of the history")
    parser.add_argument("--client", required=True, help="a name that no other client has")
    parser.add_argument("--incarnation", type=int, default=1)
    parser.add_argument("--bootstrap", default="localhost:9092")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", default="group")
    parser.add_argument("--rate", type=float, default=500.0, help="records a second")
    parser.add_argument("--within", type=float, default=60.0, help="seconds of the final read")
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE")
    return parser.parse_args()


async def _work(options: argparse.Namespace, recorder: Recorder) -> int:
    async with Admin(options.bootstrap) as admin:
        found = (await admin.describe_topics([options.topic]))[0]
    partitions = [TopicPartition(options.topic, p.partition) for p in found.partitions]
    return await _ROLES[options.role](options, recorder, partitions)


def settings(given: list[str], known: Mapping[str, object]) -> dict[str, Any]:
    """Parse `OPTION=VALUE`. Raises `ValueError` for an option that this client does not have."""
    found: dict[str, Any] = {}
    for each in given:
        name, is_set, value = each.partition("=")
        if not is_set or name not in known:
            raise ValueError(f"--set {each}: not one of {', '.join(sorted(known))}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _until_stopped() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _consumer_options(options: argparse.Namespace) -> ConsumerOptions:
    return cast(ConsumerOptions, settings(options.set, ConsumerOptions.__annotations__))


async def _produce(
    options: argparse.Namespace, recorder: Recorder, partitions: list[TopicPartition]
) -> int:
    given = cast(ProducerOptions, settings(options.set, ProducerOptions.__annotations__))
    work = Producing(recorder, options.bootstrap, partitions, given, options.rate)
    await work.run(_until_stopped())
    return 0


async def _transact(
    options: argparse.Namespace, recorder: Recorder, partitions: list[TopicPartition]
) -> int:
    given = cast(ProducerOptions, settings(options.set, ProducerOptions.__annotations__))
    work = Transacting(recorder, options.bootstrap, partitions, given, options.rate)
    await work.run(_until_stopped())
    return 0


async def _read(
    options: argparse.Namespace, recorder: Recorder, partitions: list[TopicPartition]
) -> int:
    work = Reading(recorder, options.bootstrap, partitions, _consumer_options(options))
    await work.run(_until_stopped())
    return 0


async def _be_member(
    options: argparse.Namespace, recorder: Recorder, partitions: list[TopicPartition]
) -> int:
    given = _consumer_options(options)
    work = Member(recorder, options.bootstrap, [options.topic], options.group, given)
    await work.run(_until_stopped())
    return 0


async def _observe(
    options: argparse.Namespace, recorder: Recorder, partitions: list[TopicPartition]
) -> int:
    await observe(recorder, options.bootstrap, [options.topic], _until_stopped())
    return 0


async def _judge(
    options: argparse.Namespace, recorder: Recorder, partitions: list[TopicPartition]
) -> int:
    """Read up to what the histories in the folder say was acknowledged; if there are transactions,
    also as a reader of committed records does."""
    highest: dict[str, int] = {}
    groups: dict[str, None] = {}
    transactional = False
    for operation in read_files(history_files(options.folder)):
        match operation:
            case Send(stage=Stage.OK, partition=partition, offset=offset):
                highest[partition] = max(highest.get(partition, -1), offset)
            case Commit(group=group):
                groups[group] = None
            case End():
                transactional = True
    acknowledged = {tp: highest[str(tp)] for tp in partitions if str(tp) in highest}
    bootstrap, within = options.bootstrap, options.within
    given = _consumer_options(options)
    everything = True
    both: tuple[IsolationLevel, ...] = ("read_uncommitted", "read_committed")
    for level in both if transactional else both[:1]:
        at: ConsumerOptions = {**given, "isolation_level": level}
        everything &= await read_finally(recorder, bootstrap, partitions, acknowledged, at, within)
    await ask_for_commits(recorder, bootstrap, list(groups), within)
    return 0 if everything else 1


_ROLES: dict[str, Work] = {
    "producer": _produce,
    "transactor": _transact,
    "reader": _read,
    "member": _be_member,
    "observer": _observe,
    "judge": _judge,
}

if __name__ == "__main__":
    sys.exit(main())
