"""What a history says about each partition and transaction, folded in one pass.

It holds a few references for each record, so that a million fit into memory.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas_common.history.checks.runs import Runs
from barnabas_common.history.lines import MalformedHistoryError
from barnabas_common.history.operations import (
    UNKNOWN,
    End,
    FinalRead,
    Operation,
    Poll,
    Send,
    Stage,
)


class Read(NamedTuple):
    """A value that was read at an offset, and the first operation that read it there."""

    value: str
    by: str


class CommittedRead(NamedTuple):
    """The first operation of a reader of committed records that returned a value, and its time."""

    time: int
    by: str


@dataclass(slots=True)
class Sent:
    """One record that was sent. `stage` INVOKE: there was no answer."""

    process: str
    number: int
    transaction: str
    stage: Stage = Stage.INVOKE
    offset: int = UNKNOWN

    @property
    def name(self) -> str:
        return f"{self.process}#{self.number}"


@dataclass(slots=True)
class PartitionLog:
    """`sent` has the values in the order of sending. `at`: the lowest offset of a value read.

    `conflicts`: offsets at which another value was read before; `repeats`: values that were read
    at another offset before, and where. `begin` and `end`: of the final read, once it has reached
    its end; `replaced`: its values at offsets at which another one was first read.
    """

    sent: dict[str, Sent] = field(default_factory=dict)
    read: dict[int, Read] = field(default_factory=dict)
    at: dict[str, int] = field(default_factory=dict)
    committed_reads: dict[str, CommittedRead] = field(default_factory=dict)
    conflicts: list[tuple[int, Read]] = field(default_factory=list)
    repeats: list[tuple[int, int, Read]] = field(default_factory=list)
    highest_read: int = UNKNOWN
    highest_committed: int = UNKNOWN
    final: Runs = field(default_factory=Runs)
    replaced: dict[int, str] = field(default_factory=dict)
    begin: int = 0
    end: int | None = None

    def take(self, offset: int, value: str, by: str) -> None:
        """Note a record that was read."""
        before = self.read.get(offset)
        if before is None:
            read = Read(value, by)
            self.read[offset] = read
            self.highest_read = max(self.highest_read, offset)
            first = self.at.get(value)
            if first is None:
                self.at[value] = offset
            elif first != offset:
                self.repeats.append((first, offset, read))
                self.at[value] = min(first, offset)
        elif before.value != value:
            self.conflicts.append((offset, Read(value, by)))
            self.at.setdefault(value, offset)

    def has_vanished(self, offset: int) -> bool:
        """Whether the final read came to its end without the record first read at this offset."""
        return self.lacks(offset, self.read[offset].value)

    def lacks(self, offset: int, value: str) -> bool:
        """Whether the final read came to its end, and does not have this value here, which was
        read at this offset before."""
        if self.end is None or offset < self.begin:
            return False
        return offset not in self.final or value != self.replaced.get(
            offset, self.read[offset].value
        )


@dataclass(slots=True)
class Transaction:
    """`ended`: when its end was asked for, None if it never was; `done`: when the answer came.
    `stage`: of that request.

    `reads` has the highest record of each partition of each of its polls.
    """

    sends: list[tuple[str, str]] = field(default_factory=list)
    reads: list[tuple[str, int, str]] = field(default_factory=list)
    own_reads: list[tuple[str, str, str]] = field(default_factory=list)
    commit: bool = False
    ended: int | None = None
    end_name: str = ""
    done: int = 0
    stage: Stage = Stage.INVOKE

    @property
    def committed(self) -> bool:
        return self.commit and self.stage is Stage.OK

    @property
    def aborted(self) -> bool:
        """Whether it certainly was: as asked for, or because a commit certainly failed."""
        return self.ended is not None and (not self.commit or self.stage is Stage.FAIL)


@dataclass
class Seen:
    """Everything that was sent and read."""

    partitions: dict[str, PartitionLog] = field(default_factory=dict)
    transactions: dict[str, Transaction] = field(default_factory=dict)
    acknowledged: int = 0
    consumed: Counter[str] = field(default_factory=Counter)

    def log(self, partition: str) -> PartitionLog:
        found = self.partitions.get(partition)
        if found is None:
            found = self.partitions[partition] = PartitionLog()
        return found

    def transaction(self, name: str) -> Transaction:
        return self.transactions.setdefault(name, Transaction())

    def is_visible(self, log: PartitionLog, value: str) -> bool:
        """Whether readers of committed records certainly get a value that lies in the log."""
        sent = log.sent.get(value)
        if sent is None or not sent.transaction:
            return True
        return self.transactions[sent.transaction].committed or value in log.committed_reads

    def take(self, operation: Operation) -> None:
        match operation:
            case Send():
                self._send(operation)
            case Poll():
                self._poll(operation)
            case FinalRead():
                self._final_read(operation)
            case End():
                self._end(operation)

    def _send(self, send: Send) -> None:
        log = self.log(send.partition)
        if send.stage is Stage.INVOKE:
            if send.value in log.sent:
                raise MalformedHistoryError(f"{send.name} sends a value again: {send.value!r}")
            log.sent[send.value] = Sent(send.process, send.number, send.transaction)
            if send.transaction:
                self.transaction(send.transaction).sends.append((send.partition, send.value))
            return
        sent = log.sent.get(send.value)
        if sent is not None:
            sent.stage, sent.offset = send.stage, send.offset
        self.acknowledged += send.stage is Stage.OK

    def _poll(self, poll: Poll) -> None:
        by = poll.name
        self._records(poll, by)
        for partition, records in poll.records.items():
            self.consumed[poll.process] += len(records)
            if poll.transaction and records:
                transaction = self.transaction(poll.transaction)
                transaction.reads.append((partition, *max(records)))
                own = {value for at, value in transaction.sends if at == partition}
                transaction.own_reads += [
                    (partition, value, by) for _, value in records if value in own
                ]

    def _final_read(self, read: FinalRead) -> None:
        self._records(read, read.name)
        for partition, records in read.records.items():
            log = self.log(partition)
            for offset, value in records:
                log.final.add(offset)
                if log.read[offset].value != value:
                    log.replaced[offset] = value
        for partition, (begin, end) in read.bounds.items():
            log = self.log(partition)
            log.begin, log.end = begin, end

    def _records(self, read: Poll | FinalRead, by: str) -> None:
        for partition, records in read.records.items():
            log = self.log(partition)
            for offset, value in records:
                log.take(offset, value, by)
            if read.read_committed and records:
                first = CommittedRead(read.time, by)
                for _, value in records:
                    log.committed_reads.setdefault(value, first)
                log.highest_committed = max(log.highest_committed, max(records)[0])

    def _end(self, end: End) -> None:
        transaction = self.transaction(end.transaction)
        transaction.stage, transaction.done = end.stage, end.time
        if end.stage is Stage.INVOKE:
            transaction.commit = end.commit
            transaction.ended, transaction.end_name = end.time, end.name
