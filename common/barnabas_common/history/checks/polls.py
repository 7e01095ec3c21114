"""A consumer reads on from where it was, and leaves nothing out."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas_common.history.checks.finding import Anomaly, Finding
from barnabas_common.history.checks.seen import Seen
from barnabas_common.history.operations import Assign, Operation, Poll, Revoke


class Gap(NamedTuple):
    """Offsets that a consumer left out: those between `after` and `before`.

    It is an anomaly only if there is a record, which may become known later.
    """

    anomaly: Anomaly
    partition: str
    after: int
    before: int
    read_committed: bool
    proof: tuple[str, ...]


@dataclass
class Polls:
    """Where each consumer is. An assignment, or a loss of partitions, is a new start."""

    backwards: list[Finding] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    _at: dict[str, dict[str, tuple[int, str]]] = field(default_factory=dict)

    def take(self, operation: Operation) -> None:
        match operation:
            case Poll():
                self._poll(operation)
            case Assign() | Revoke():
                at = self._at.setdefault(operation.process, {})
                for partition in operation.partitions:
                    at.pop(partition, None)

    def _poll(self, poll: Poll) -> None:
        at = self._at.setdefault(poll.process, {})
        name = poll.name
        for partition, records in poll.records.items():
            last, by = at.get(partition, (None, name))
            proof: tuple[str, ...] = (by, name)
            skipped, back = Anomaly.POLL_SKIP, Anomaly.NONMONOTONIC_POLL
            for offset, value in records:
                if last is not None and offset <= last:
                    what = f"{partition}@{offset} {value!r} was returned after {last}"
                    self.backwards.append(Finding(back, what, proof))
                elif last is not None and offset > last + 1:
                    committed = poll.read_committed
                    self.gaps.append(Gap(skipped, partition, last, offset, committed, proof))
                last, proof = offset, (name,)
                skipped, back = Anomaly.INT_POLL_SKIP, Anomaly.INT_NONMONOTONIC_POLL
            if last is not None:
                at[partition] = (last, name)


def skipped_records(seen: Seen, polls: Polls) -> Iterator[Finding]:
    """Yield the gaps in which there is a record that the consumer should have got."""
    there: dict[str, list[int]] = {}
    for gap in polls.gaps:
        log = seen.partitions[gap.partition]
        if gap.partition not in there:
            there[gap.partition] = sorted(log.read)
        offsets = there[gap.partition]
        first = bisect_right(offsets, max(gap.after, log.begin - 1))
        for offset in offsets[first : bisect_left(offsets, gap.before)]:
            read = log.read[offset]
            if not gap.read_committed or seen.is_visible(log, read.value):
                what = f"{gap.partition}@{offset} {read.value!r}: {gap.after}, then {gap.before}"
                yield Finding(gap.anomaly, what, (*gap.proof, read.by))
                break
