"""The history of a run, in the form that real clients write too."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from barnabas import ConsumerRecord, RebalanceListener
from barnabas_common.history.operations import Assign, Operation, Records, Revoke
from barnabas_common.history.recorder import Recorder
from barnabas_common.topic_partition import TopicPartition

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


class RecordingListener(RebalanceListener):
    """Records which partitions a member of a group has."""

    def __init__(self, history: Recorder, group: str) -> None:
        self._history = history
        self._group = group

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._history.note(Assign, partitions=[str(tp) for tp in partitions], group=self._group)

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> Any:
        self._gone(partitions, lost=False)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._gone(partitions, lost=True)

    def _gone(self, partitions: Sequence[TopicPartition], lost: bool) -> None:
        names = [str(tp) for tp in partitions]
        self._history.note(Revoke, partitions=names, group=self._group, lost=lost)
