"""What the topic of decisions holds of each job, and what follows from it (pure).

    key                          value
    ["claim", job, run, slot]    {"batch": N, "task": T}           an attempt begins to write
                                 {..., "retired": true}            no attempt may use it again
    ["decision", job]            {"batch": N, "run": R, "commit": true, "transactions": [...]}

Each is the latest of its key: the topic is compacted. A slot is a transactional id that attempts of
a run use one after the other; two attempts of the same batch never share one, or the later would
abort what the earlier has prepared. The attempt that claims a slot first has it for the batch. It
serves the next batch only if its transaction was committed: the attempt that has it otherwise may
be paused before its InitProducerId, and would abort what the next batch has prepared.
"""

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas import PreparedTransaction

from pyspark_barnabas.writing.identity import Attempt, Batch

Encoded = tuple[bytes, bytes | None]


class Slot(NamedTuple):
    """Number `number` of a task partition, in one run."""

    run: str
    partition: int
    number: int


class Claim(NamedTuple):
    batch_id: int
    task: int
    retired: bool = False


@dataclass(frozen=True)
class Decision:
    """`transactions` are all committed, or, if not `commit`, whatever the run has written is
    aborted."""

    batch: Batch
    commit: bool
    transactions: tuple[PreparedTransaction, ...] = ()


@dataclass
class JobState:
    """What is known of one job."""

    decision: Decision | None = None
    claims: dict[Slot, Claim] = field(default_factory=dict)

    def is_done(self, batch: Batch) -> bool:
        """Whether a commit of this batch, or of a later one, is decided."""
        last = self.decision
        if last is None:
            return False
        later = last.batch.batch_id > batch.batch_id
        return later or (last.commit and last.batch.batch_id == batch.batch_id)

    def is_given_up(self, batch: Batch) -> bool:
        """Whether this run of the batch is aborted."""
        last = self.decision
        return last is not None and not last.commit and last.batch == batch

    def free_slot(self, attempt: Attempt) -> Slot:
        """The first that no attempt of the same batch, or of a later one, has claimed."""
        number = 0
        while True:
            slot = Slot(attempt.batch.run, attempt.partition, number)
            claim = self.claims.get(slot)
            if claim is None or (not claim.retired and claim.batch_id < attempt.batch.batch_id):
                return slot
            number += 1

    def owns(self, attempt: Attempt, slot: Slot) -> bool:
        return self.claims.get(slot) == Claim(attempt.batch.batch_id, attempt.task)

    def open_until(self, batch: Batch, commit: bool) -> list[Slot]:
        """The slots whose transactions the end of this batch ends, those of its decision too.

        A commit ends what other runs have written of the batch, and before it; what is later may be
        a newer driver's. An abort ends what its own run has written: another run may commit.
        """
        return [
            slot
            for slot, (batch_id, _, retired) in self.claims.items()
            if (
                batch_id == batch.batch_id and not retired
                if slot.run == batch.run
                else commit and batch_id <= batch.batch_id
            )
        ]


# ---- as records


def transactional_id(prefix: str, job: str, slot: Slot) -> str:
    return f"{prefix}-{job}-{slot.run}-{slot.partition}-{slot.number}"


def claim_record(attempt: Attempt, slot: Slot) -> Encoded:
    value = {"batch": attempt.batch.batch_id, "task": attempt.task}
    return _claim_key(attempt.batch.job, slot), _json(value)


def retired_claim(job: str, slot: Slot, claim: Claim) -> Encoded:
    value = {"batch": claim.batch_id, "task": claim.task, "retired": True}
    return _claim_key(job, slot), _json(value)


def forgotten_claim(job: str, slot: Slot) -> Encoded:
    return _claim_key(job, slot), None


def decision_record(decision: Decision) -> Encoded:
    batch = decision.batch
    value = {
        "batch": batch.batch_id,
        "run": batch.run,
        "commit": decision.commit,
        "transactions": [list(prepared) for prepared in decision.transactions],
    }
    return _json(["decision", batch.job]), _json(value)


def _claim_key(job: str, slot: Slot) -> bytes:
    return _json(["claim", job, slot.run, f"{slot.partition}-{slot.number}"])


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


# ---- from records


def apply(states: dict[str, JobState], key: bytes | None, value: bytes | None) -> None:
    """Take the next record; raises ValueError, LookupError or TypeError for one that is none."""
    kind, job, *rest = json.loads(key or b"")
    if kind == "decision":
        states.setdefault(job, JobState()).decision = _decision(job, json.loads(value or b""))
    elif kind == "claim":
        state = states.setdefault(job, JobState())
        _claim(state, rest[0], rest[1], None if value is None else json.loads(value))
    else:
        raise ValueError(f"unknown kind {kind!r}")


def _decision(job: str, value: dict[str, Any]) -> Decision:
    transactions = tuple(PreparedTransaction(*each) for each in value["transactions"])
    return Decision(Batch(job, value["batch"], value["run"]), value["commit"], transactions)


def _claim(state: JobState, run: str, name: str, value: dict[str, Any] | None) -> None:
    partition, number = map(int, name.split("-"))
    slot = Slot(run, partition, number)
    if value is None:
        state.claims.pop(slot, None)
        return
    known = state.claims.get(slot)
    claim = Claim(value["batch"], value["task"], value.get("retired", False))
    # A claim that is written late takes nothing from a later batch.
    if known is None or claim.retired or (known.batch_id < claim.batch_id and not known.retired):
        state.claims[slot] = claim
