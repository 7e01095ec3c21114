"""Judges a run: was every acknowledged record delivered, by value, at its offset and in order?

Plain functions on plain data, used by every fault test and themselves tested on planted faults
(`tests/unit/test_delivery_checker.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from barnabas_common.topic_partition import TopicPartition


@dataclass
class History:
    """What a producer sent to one partition: values in order, and the acknowledged offsets, -1 for
    those that the leader did not know."""

    sent: list[bytes] = field(default_factory=list)
    acked: dict[bytes, int] = field(default_factory=dict)


@dataclass
class Verdict:
    """Every list is empty in a good run; without idempotence, a retry may have `repeated` some."""

    lost: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    reordered: list[str] = field(default_factory=list)
    never_sent: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    acked: int = 0

    @property
    def duplicated(self) -> int:
        """How many records are further copies of another."""
        return len(self.repeated)

    @property
    def findings(self) -> list[str]:
        return self.lost + self.moved + self.reordered + self.never_sent + self.repeated

    def assert_good(self, once: bool = True) -> None:
        """Fail with the first findings of each kind, or if nothing was acknowledged."""
        self.assert_nothing_wrong(once)
        assert self.acked > 0, "nothing was acknowledged: the run proves nothing"

    def assert_nothing_wrong(self, once: bool = True) -> None:
        """Fail with the first findings of each kind; repeated records are one if `once`."""
        kinds = ("lost", "moved", "reordered", "never_sent", *(("repeated",) if once else ()))
        problems = {name: found[:5] for name in kinds if (found := getattr(self, name))}
        assert not problems, f"of {self.acked} acknowledged records: {problems}"


MayBeGone = Callable[[TopicPartition, int, bytes], bool]
"""Whether compaction may have removed the record that was acknowledged with this offset."""


def judge(
    histories: dict[TopicPartition, History],
    consumed: dict[TopicPartition, list[tuple[int, bytes]]],
    may_be_gone: MayBeGone = lambda *_: False,
    appended: Mapping[TopicPartition, list[tuple[int, bytes]]] | None = None,
) -> Verdict:
    """Compare what was acknowledged with what was read back from the beginning.

    `appended` is everything that was appended, if compaction has removed some of it: a record that
    a retry repeats supersedes itself, so the first of the two may be gone, and the order with it.
    """
    verdict = Verdict()
    for partition, history in histories.items():
        found = consumed.get(partition, [])
        _judge_partition(partition, history, found, verdict, partial(may_be_gone, partition))
        every = found if appended is None else appended.get(partition, [])
        _judge_order(partition, history, every, verdict)
        _judge_copies(partition, history, every, verdict)
    return verdict


def _judge_partition(
    partition: TopicPartition,
    history: History,
    records: list[tuple[int, bytes]],
    verdict: Verdict,
    may_be_gone: Callable[[int, bytes], bool],
) -> None:
    at_offset = dict(records)
    values = set(at_offset.values())
    verdict.acked += len(history.acked)
    for value, offset in history.acked.items():
        if offset not in at_offset and may_be_gone(offset, value):
            continue
        if value not in values:
            verdict.lost.append(f"{partition}@{offset} {value!r}")
        elif offset >= 0 and at_offset.get(offset) != value:
            found = at_offset.get(offset)
            verdict.moved.append(f"{partition}@{offset} acked {value!r}, found {found!r}")
    sent = set(history.sent)
    verdict.never_sent += [
        f"{partition}@{offset} {value!r}" for offset, value in records if value not in sent
    ]
    offsets = [offset for offset, _ in records]
    if offsets != sorted(set(offsets)):
        verdict.reordered.append(f"{partition}: offsets do not strictly increase")


def _judge_order(
    partition: TopicPartition,
    history: History,
    records: list[tuple[int, bytes]],
    verdict: Verdict,
) -> None:
    """Check that first occurrences follow the order of sending; retries may repeat some."""
    position = {value: index for index, value in enumerate(history.sent)}
    highest = -1
    seen: set[bytes] = set()
    for offset, value in records:
        if value in seen or value not in position:
            continue
        seen.add(value)
        if position[value] < highest:
            verdict.reordered.append(f"{partition}@{offset} {value!r}")
        highest = max(highest, position[value])


def _judge_copies(
    partition: TopicPartition,
    history: History,
    records: list[tuple[int, bytes]],
    verdict: Verdict,
) -> None:
    sent, first = set(history.sent), dict[bytes, int]()
    for offset, value in records:
        if value in sent and first.setdefault(value, offset) != offset:
            verdict.repeated.append(f"{partition}@{offset} {value!r}, first at {first[value]}")
