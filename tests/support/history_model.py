"""Valid histories: a reference log, and clients that use it correctly, step by random step.

Sends and commits may fail or stay without an answer, whether or not they took effect; producers are
killed; records are written twice unless the producer is idempotent; groups rebalance. What the
clients are told is always true of the log, so the checker must find nothing.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas_common.history.operations import (
    Assign,
    Commit,
    Committed,
    End,
    FinalRead,
    Operation,
    Poll,
    Revoke,
    Send,
    Stage,
)

PARTITIONS = ("orders-0", "orders-1")
MARKER = ""


@dataclass
class Log:
    """One partition: values, the transaction of each, and which transactions are decided."""

    values: list[tuple[str, str]] = field(default_factory=list)

    def visible(self, outcome: dict[str, bool | None], committed: bool) -> list[tuple[int, str]]:
        """Return what a reader gets; `outcome` has True for committed, None for open."""
        found = []
        for offset, (value, transaction) in enumerate(self.values):
            if committed and transaction and outcome[transaction] is None:
                break
            if value != MARKER and not (committed and transaction and not outcome[transaction]):
                found.append((offset, value))
        return found


@dataclass
class Pending:
    """A send that has not been answered; `applied` is its offset in the log."""

    send: Send
    applied: int | None = None


class Producing:
    """A producer process: a queue for each partition, so that its order is kept."""

    def __init__(self, model: "Model", name: str) -> None:
        self.model, self.name = model, name
        self.incarnation, self.sent = 1, 0
        self.queues: dict[str, deque[Pending]] = {p: deque() for p in PARTITIONS}

    def step(self) -> None:
        chance = self.model.chance
        act = chance.choice((self.invoke, self.invoke, self.apply, self.apply, self.answer))
        act = self.kill if chance.random() < 0.03 else act
        act(self.queues[chance.choice(PARTITIONS)])

    def invoke(self, queue: deque[Pending]) -> None:
        self.sent += 1
        partition = next(p for p in PARTITIONS if self.queues[p] is queue)
        queue.append(Pending(self.model.add(self._send(partition))))

    def _send(self, partition: str) -> Send:
        value = f"{self.name}/{self.incarnation}-{self.sent}"
        return self.model.made(
            Send, self, self.sent, Stage.INVOKE, partition=partition, value=value
        )

    def apply(self, queue: deque[Pending]) -> None:
        waiting = next((each for each in queue if each.applied is None), None)
        if waiting is None or self.model.chance.random() < 0.1:
            return
        log = self.model.logs[waiting.send.partition]
        twice = not self.model.idempotent and self.model.chance.random() < 0.1
        for _ in range(1 + twice):
            waiting.applied = len(log.values)
            log.values.append((waiting.send.value, ""))

    def answer(self, queue: deque[Pending]) -> None:
        if not queue:
            return
        pending = queue.popleft()
        send, offset = pending.send, pending.applied
        stage = Stage.INFO if self.model.chance.random() < 0.2 else Stage.OK
        if offset is None:
            stage = self.model.chance.choice((Stage.INFO, Stage.FAIL))
        told = {"offset": offset} if stage is Stage.OK else {}
        self.model.complete(send, stage, **told)

    def kill(self, _: deque[Pending]) -> None:
        for queue in self.queues.values():
            for _ in range(self.model.chance.randrange(3)):
                self.apply(queue)
            queue.clear()
        self.incarnation += 1


class Transacting:
    """A transactional producer that also copies: it reads, writes and commits offsets as one."""

    def __init__(self, model: "Model", name: str) -> None:
        self.model, self.name = model, name
        self.incarnation, self.number, self.count = 1, 0, 0
        self.group = f"group-of-{name}"
        self.position = dict.fromkeys(PARTITIONS, 0)
        self.read: dict[str, int] = {}
        self.transaction = ""
        model.add(model.made(Assign, self, 0, Stage.OK, partitions=list(PARTITIONS)))

    def step(self) -> None:
        chance, model = self.model.chance, self.model
        if not self.transaction:
            self.count += 1
            self.transaction = f"{self.name}/{self.incarnation}:{self.count}"
            model.outcome[self.transaction] = None
            return
        roll = chance.random()
        if roll < 0.5:
            self.send(chance.choice(PARTITIONS))
        elif roll < 0.7:
            self.poll(chance.choice(PARTITIONS))
        elif roll < 0.95:
            self.end()
        else:
            self.killed()

    def _next(self) -> int:
        self.number += 1
        return self.number

    def send(self, partition: str) -> None:
        model, number, name = self.model, self._next(), self.transaction
        value = f"{name}-{number}"
        fields = {"partition": partition, "value": value, "transaction": name}
        send = model.add(model.made(Send, self, number, Stage.INVOKE, **fields))
        model.logs[partition].values.append((value, name))
        model.complete(send, Stage.OK, offset=len(model.logs[partition].values) - 1)

    def poll(self, partition: str) -> None:
        model = self.model
        got = model.from_position(partition, self.position[partition], committed=True)
        if got:
            self.position[partition] = self.read[partition] = got[-1][0] + 1
            fields: dict[str, Any] = {"records": {partition: got}, "group": self.group}
            fields |= {"read_committed": True, "transaction": self.transaction}
            model.add(model.made(Poll, self, self._next(), Stage.OK, **fields))

    def end(self) -> None:
        model, chance, name = self.model, self.model.chance, self.transaction
        if self.read:
            fields = {"group": self.group, "offsets": dict(self.read), "transaction": name}
            commit = model.add(model.made(Commit, self, self._next(), Stage.INVOKE, **fields))
            model.complete(commit, Stage.OK)
        wish = chance.random() < 0.7
        fields = {"transaction": name, "commit": wish}
        end = model.add(model.made(End, self, self._next(), Stage.INVOKE, **fields))
        known, done = chance.random() < 0.8, chance.random() < 0.8
        model.decide(name, wish and done)
        stage = Stage.INFO if not known else Stage.OK if done or not wish else Stage.FAIL
        model.complete(end, stage)
        self._begin_again(forget=not (wish and done))

    def killed(self) -> None:
        self.model.decide(self.transaction, False)
        self.incarnation += 1
        self._begin_again(forget=True)

    def _begin_again(self, forget: bool) -> None:
        model = self.model
        if forget:
            for partition in PARTITIONS:
                self.position[partition] = model.committed.get((self.group, partition), 0)
            model.add(model.made(Assign, self, 0, Stage.OK, partitions=list(PARTITIONS)))
        else:
            model.committed |= {(self.group, p): offset for p, offset in self.read.items()}
        self.read, self.transaction = {}, ""


class Member:
    """A consumer: alone with all partitions, or a member of a group with those that it owns."""

    def __init__(self, model: "Model", name: str, group: str = "") -> None:
        self.model, self.name, self.group = model, name, group
        self.incarnation, self.number = 1, 0
        self.position: dict[str, int] = {}
        self.read_committed = bool(model.transacting) or model.chance.random() < 0.5
        if not group:
            self.own(list(PARTITIONS))

    def own(self, partitions: list[str]) -> None:
        start = {p: self.model.committed.get((self.group, p), 0) for p in partitions}
        self.position |= start
        fields = {"partitions": partitions, "group": self.group}
        self.model.add(self.model.made(Assign, self, 0, Stage.OK, **fields))

    def give_up(self, partition: str) -> None:
        self.position.pop(partition)
        fields = {"partitions": [partition], "group": self.group}
        self.model.add(self.model.made(Revoke, self, 0, Stage.OK, **fields))

    def step(self) -> None:
        chance = self.model.chance
        if not self.group and chance.random() < 0.1:
            self.position[PARTITIONS[0]] = 0
            self.model.add(self.model.made(Assign, self, 0, Stage.OK, partitions=[PARTITIONS[0]]))
        elif self.group and chance.random() < 0.3:
            self.commit()
        else:
            self.poll()

    def poll(self) -> None:
        model = self.model
        got = {
            p: model.from_position(p, at, self.read_committed) for p, at in self.position.items()
        }
        got = {p: records for p, records in got.items() if records}
        if got:
            self.number += 1
            self.position |= {p: records[-1][0] + 1 for p, records in got.items()}
            fields: dict[str, Any] = {"records": got, "group": self.group}
            fields["read_committed"] = self.read_committed
            model.add(model.made(Poll, self, self.number, Stage.OK, **fields))

    def commit(self) -> None:
        model, chance = self.model, self.model.chance
        if not self.position:
            return
        self.number += 1
        fields = {"group": self.group, "offsets": dict(self.position)}
        commit = model.add(model.made(Commit, self, self.number, Stage.INVOKE, **fields))
        stage = chance.choice((Stage.OK, Stage.OK, Stage.INFO, Stage.FAIL))
        if stage is Stage.OK or (stage is Stage.INFO and chance.random() < 0.5):
            model.committed |= {(self.group, p): at for p, at in self.position.items()}
        if chance.random() < 0.9 or stage is not Stage.INFO:
            model.complete(commit, stage)


class Model:
    """`transacting` switches transactions on; then everyone reads committed records only."""

    def __init__(self, chance: random.Random, idempotent: bool, transacting: bool) -> None:
        self.chance, self.idempotent = chance, idempotent
        self.operations: list[Operation] = []
        self.logs = {partition: Log() for partition in PARTITIONS}
        self.outcome: dict[str, bool | None] = {}
        self.committed: dict[tuple[str, str], int] = {}
        self.transacting = (
            [Transacting(self, f"copier-{n}") for n in range(2)] if transacting else []
        )
        self.producing = [Producing(self, f"producer-{n}") for n in range(2)]
        self.readers = [Member(self, f"reader-{n}") for n in range(2)]
        self.members = [Member(self, f"member-{n}", "group") for n in range(2)]
        self.members[0].own(list(PARTITIONS))
        self.asked = 0

    def made(self, kind: Any, who: Any, number: int, stage: Stage, **fields: Any) -> Any:
        head = {"client": who.name, "incarnation": who.incarnation, "number": number}
        return kind(time=len(self.operations), stage=stage, **head, **fields)

    def add(self, operation: Any) -> Any:
        self.operations.append(operation)
        return operation

    def complete(self, operation: Operation, stage: Stage, **told: Any) -> None:
        self.add(replace(operation, time=len(self.operations), stage=stage, **told))

    def from_position(self, partition: str, at: int, committed: bool) -> list[tuple[int, str]]:
        there = self.logs[partition].visible(self.outcome, committed)
        return [each for each in there if each[0] >= at][: self.chance.randrange(1, 6)]

    def decide(self, transaction: str, committed: bool) -> None:
        self.outcome[transaction] = committed
        for log in self.logs.values():
            if any(of == transaction for _, of in log.values):
                log.values.append((MARKER, transaction))

    def rebalance(self) -> None:
        owner, other = self.chance.sample(self.members, 2)
        for partition in list(owner.position)[: self.chance.randrange(1, 3)]:
            owner.give_up(partition)
            other.own([partition])

    def ask(self) -> None:
        self.asked += 1
        fields: dict[str, Any] = {"client": "judge", "number": self.asked, "group": "group"}
        begun = Committed(time=len(self.operations), stage=Stage.INVOKE, **fields)
        self.add(begun)
        offsets = {p: at for (group, p), at in self.committed.items() if group == "group"}
        self.complete(begun, Stage.OK, offsets=offsets)

    def run(self, steps: int) -> list[Operation]:
        """Take random steps, then read everything; returns the history."""
        acts: list[Callable[[], None]] = [
            each.step
            for each in (*self.producing, *self.producing, *self.transacting, *self.transacting)
        ]
        acts += [each.step for each in (*self.readers, *self.members)]
        for _ in range(steps):
            self.chance.choice(acts)()
            if self.chance.random() < 0.03:
                self.rebalance()
            if self.chance.random() < 0.03:
                self.ask()
        self.finish()
        return self.operations

    def finish(self) -> None:
        for each in self.transacting:
            if each.transaction:
                each.killed()
        self.ask()
        records = {p: log.visible(self.outcome, True) for p, log in self.logs.items()}
        bounds = {p: (0, len(log.values)) for p, log in self.logs.items()}
        fields: dict[str, Any] = {"client": "judge", "records": records, "bounds": bounds}
        self.add(FinalRead(time=len(self.operations), read_committed=True, **fields))


def history(
    seed: int, *, steps: int = 150, idempotent: bool = True, transactions: bool = True
) -> list[Operation]:
    """Return a valid history."""
    return Model(random.Random(seed), idempotent, transactions).run(steps)
