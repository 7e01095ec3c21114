"""The history of a run, in the form that real clients write too."""

import asyncio
from collections.abc import Iterable

from barnabas import ConsumerRecord
from barnabas_common.history.operations import Operation, Records
from barnabas_common.history.recorder import Recorder

from barnabas_simulator.labels import label_of


def recorder(operations: list[Operation], incarnation: str) -> Recorder:
    """Record what an incarnation does, named as its node is: `producer-0`, then `producer-0/2`."""
    client, _, number = incarnation.partition("/")
    return Recorder(operations.append, virtual_ns, client, int(number or 1))


def virtual_ns() -> int:
    return int(asyncio.get_running_loop().time() * 1e9)


def text_of(label: bytes) -> str:
    return label.decode(errors="backslashreplace")


def as_records(polled: Iterable[ConsumerRecord]) -> Records:
    found: Records = {}
    for record in polled:
        of_partition = found.setdefault(str(record.topic_partition), [])
        of_partition.append((record.offset, text_of(label_of(record))))
    return found
