"""Offsets that groups commit: never ahead of the work, never back, and nothing left out."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from barnabas_common.history.checks.finding import Anomaly, Finding
from barnabas_common.history.checks.runs import Runs
from barnabas_common.history.checks.seen import Seen
from barnabas_common.history.operations import Commit, Committed, Operation, Poll, Stage

_NEVER = 2**63


@dataclass(slots=True)
class Stored:
    """A commit of one partition. `done`: when it was acknowledged, late if it never was."""

    offset: int
    name: str
    invoked: int
    transaction: str
    done: int = _NEVER
    failed: bool = False


@dataclass(slots=True)
class Asked:
    """What a coordinator said is committed, None for nothing."""

    offset: int | None
    name: str
    invoked: int
    answered: int


@dataclass(slots=True)
class GroupPartition:
    """`next`: behind everything that a member has polled. `polled`: all that members have."""

    next: int = 0
    polled: Runs = field(default_factory=Runs)
    commits: list[Stored] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)


Key = tuple[str, str]
"""Group and partition."""


@dataclass
class Groups:
    """What every group polled, committed, and was told to have committed."""

    found: dict[Key, GroupPartition] = field(default_factory=dict)
    ahead: list[Finding] = field(default_factory=list)
    _open: dict[tuple[str, int], list[Stored]] = field(default_factory=dict)
    _asking: dict[tuple[str, int], int] = field(default_factory=dict)

    def take(self, operation: Operation) -> None:
        match operation:
            case Poll() if operation.group:
                self._poll(operation)
            case Commit():
                self._commit(operation)
            case Committed():
                self._committed(operation)

    def at(self, group: str, partition: str) -> GroupPartition:
        return self.found.setdefault((group, partition), GroupPartition())

    def _poll(self, poll: Poll) -> None:
        for partition, records in poll.records.items():
            found = self.at(poll.group, partition)
            for offset, _ in records:
                found.polled.add(offset)
            if records:
                found.next = max(found.next, records[-1][0] + 1)

    def _commit(self, commit: Commit) -> None:
        key = (commit.process, commit.number)
        if commit.stage is Stage.INVOKE:
            self._open[key] = [self._begin(commit, p, o) for p, o in commit.offsets.items()]
            return
        for stored in self._open.pop(key, []):
            if commit.stage is Stage.OK:
                stored.done = commit.time
            stored.failed = commit.stage is Stage.FAIL

    def _begin(self, commit: Commit, partition: str, offset: int) -> Stored:
        found = self.at(commit.group, partition)
        stored = Stored(offset, commit.name, commit.time, commit.transaction)
        if offset > found.next:
            what = f"{commit.group} {partition}: {offset} committed, polled below {found.next}"
            self.ahead.append(Finding(Anomaly.COMMIT_AHEAD, what, (commit.name,)))
            found.next = offset  # one finding for each step ahead
        found.commits.append(stored)
        return stored

    def _committed(self, answer: Committed) -> None:
        key = (answer.process, answer.number)
        if answer.stage is Stage.INVOKE:
            self._asking[key] = answer.time
            return
        invoked = self._asking.pop(key)
        if answer.stage is not Stage.OK:
            return
        for (group, partition), found in self.found.items():
            if group == answer.group:
                offset = answer.offsets.get(partition)
                found.asked.append(Asked(offset, answer.name, invoked, answer.time))


def lost_commits(seen: Seen, groups: Groups) -> Iterator[Finding]:
    """Yield answers with an offset that no commit explains.

    It may be that of a commit that was sent before the answer, unless a later one was acknowledged
    before the question. A commit without an answer may be stored at any time.
    """
    for (group, partition), found in groups.found.items():
        commits = [_with_transaction(seen, stored) for stored in found.commits]
        commits = [stored for stored in commits if not stored.failed]
        for asked in found.asked:
            before = [stored for stored in commits if stored.done < asked.invoked]
            newest = max((stored.invoked for stored in before), default=None)
            may_stand = {
                stored.offset
                for stored in commits
                if stored.invoked < asked.answered and (newest is None or stored.done >= newest)
            }
            if asked.offset in may_stand or (asked.offset is None and newest is None):
                continue
            proof = tuple(stored.name for stored in before[-1:])
            what = f"{group} {partition}: {asked.offset} is committed, not of {sorted(may_stand)}"
            yield Finding(Anomaly.LOST_COMMIT, what, (*proof, asked.name))


def _with_transaction(seen: Seen, stored: Stored) -> Stored:
    """Return when a commit stood: if it is a part of a transaction, when that had committed."""
    if not stored.transaction:
        return stored
    transaction = seen.transactions.get(stored.transaction)
    if transaction is None or transaction.ended is None or transaction.aborted:
        return Stored(stored.offset, stored.name, stored.invoked, "", failed=True)
    done = transaction.done if transaction.committed else _NEVER
    return Stored(stored.offset, stored.name, transaction.ended, "", done)


def missed_by_groups(seen: Seen, groups: Groups) -> Iterator[Finding]:
    """Yield the records below the last committed offset that no member has polled.

    A group is taken to have begun at the beginning of the partition.
    """
    for (group, partition), found in groups.found.items():
        end, by = _last_committed(found)
        log = seen.partitions.get(partition)
        if log is None:
            continue
        for offset, read in log.read.items():
            if not log.begin <= offset < end or offset in found.polled:
                continue
            if seen.is_visible(log, read.value):
                what = f"{group} {partition}@{offset} {read.value!r}; {end} is committed"
                yield Finding(Anomaly.MISSED_BY_GROUP, what, (by, read.by))


def _last_committed(found: GroupPartition) -> tuple[int, str]:
    if found.asked and found.asked[-1].offset is not None:
        return found.asked[-1].offset, found.asked[-1].name
    done = [(stored.done, stored) for stored in found.commits if stored.done != _NEVER]
    if not done:
        return 0, ""
    last = max(done, key=lambda each: each[0])[1]
    return last.offset, last.name
