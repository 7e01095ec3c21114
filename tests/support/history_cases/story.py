"""What a case of a history is, and how it is told."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas_common.history.checks.finding import Anomaly
from barnabas_common.history.operations import (
    Commit,
    Committed,
    End,
    FinalRead,
    Operation,
    Poll,
    Send,
    Stage,
)

P, Q = "orders-0", "orders-1"


class Story:
    """A history, told entry by entry; each takes place after the one before."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._number = 0

    def add(self, kind: Any, client: str, **fields: Any) -> Any:
        self._number += 1
        made = kind(time=len(self.operations), client=client, number=self._number, **fields)
        self.operations.append(made)
        return made

    def answer(self, operation: Operation, stage: Stage = Stage.OK, **told: Any) -> None:
        self.operations.append(replace(operation, time=len(self.operations), stage=stage, **told))

    def begin(self, kind: Any, client: str, **fields: Any) -> Any:
        return self.add(kind, client, stage=Stage.INVOKE, **fields)

    def send(self, value: str, offset: int | None, partition: str = P, **fields: Any) -> str:
        """Send a record: acknowledged at an offset, or never answered. Returns its name."""
        client = fields.pop("client", "producer")
        sent = self.begin(Send, client, partition=partition, value=value, **fields)
        if offset is not None:
            self.answer(sent, offset=offset)
        return str(sent.name)

    def sent(self, *values: str, partition: str = P) -> None:
        """Send these, acknowledged at 0, 1, …"""
        for offset, value in enumerate(values):
            self.send(value, offset, partition)

    def poll(self, *records: tuple[int, str], partition: str = P, **fields: Any) -> str:
        client = fields.pop("client", "reader")
        return str(self.add(Poll, client, records={partition: list(records)}, **fields).name)

    def final(self, *records: tuple[int, str], end: int, partition: str = P, begin: int = 0) -> str:
        bounds = {partition: (begin, end)}
        read = {partition: list(records)}
        made = self.add(FinalRead, "judge", records=read, bounds=bounds, read_committed=True)
        return str(made.name)

    def end(self, transaction: str, commit: bool, stage: Stage = Stage.OK) -> str:
        end = self.begin(End, "producer", transaction=transaction, commit=commit)
        if stage is not Stage.INVOKE:
            self.answer(end, stage)
        return str(end.name)

    def commit(self, offset: int, stage: Stage = Stage.OK, **fields: Any) -> str:
        commit = self.begin(Commit, "member", group="g", offsets={P: offset}, **fields)
        if stage is not Stage.INVOKE:
            self.answer(commit, stage)
        return str(commit.name)

    def committed(self, offset: int | None) -> str:
        asked = self.begin(Committed, "judge", group="g")
        self.answer(asked, offsets={} if offset is None else {P: offset})
        return str(asked.name)


@dataclass(frozen=True)
class Case:
    """`proof`: what the first example of each class must name, in any order."""

    operations: list[Operation]
    proof: dict[Anomaly, set[str]] = field(default_factory=dict)


CASES: dict[str, Callable[[], Case]] = {}


def case(tell: Callable[[Story], dict[Anomaly, set[str]]]) -> Callable[[], Case]:
    def made() -> Case:
        story = Story()
        proof = tell(story)
        return Case(story.operations, proof)

    CASES[tell.__name__] = made
    return made
