"""What the topic of decisions holds of each job, and what follows from it (pure).

    key                          value
    ["claim", job, run, slot]    {"batch": N, "task": T, "prefix": P}  an attempt begins to write
                                 {..., "retired": true}            no attempt may use it again
    ["decision", job]            {"batch": N, "run": R, "commit": true, "transactions": [...]}

Each is the latest of its key: the topic is compacted. A slot is a transactional id that attempts of
a run use one after the other; two attempts of the same batch never share one, or the later would
abort what the earlier has prepared. The attempt that claims a slot first has it for the batch. It
serves the next batch only if its transaction was committed: the attempt that has it otherwise may
be paused before its InitProducerId, and would abort what the next batch has prepared.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from barnabas import PreparedTransaction

from pyspark_barnabas.writing.identity import Attempt, Batch
from pyspark_barnabas.writing.options import WriteOptions

Encoded = tuple[bytes, bytes | None]
T = TypeVar("T")


class Slot(NamedTuple):
    """Number `number` of a task partition, in one run."""

    run: str
    partition: int
    number: int


class Claim(NamedTuple):
    """`prefix`: of the transactional id; a query may have another one after a restart."""

    batch_id: int
    task: int
    prefix: str
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
        claim = self.claims.get(slot)
        wanted = (attempt.batch.batch_id, attempt.task, False)
        return claim is not None and (claim.batch_id, claim.task, claim.retired) == wanted

    def unclaimed(
        self, batch: Batch, transactions: Iterable[PreparedTransaction]
    ) -> list[PreparedTransaction]:
        """Those without a claim, which every attempt has made durable before it began to write."""
        claimed = {
            transactional_id(claim.prefix, batch.job, slot)
            for slot, claim in self.claims.items()
            if claim.batch_id == batch.batch_id and not claim.retired
        }
        return [each for each in transactions if each.transactional_id not in claimed]

    def open_until(self, batch: Batch, commit: bool) -> list[Slot]:
        """The slots whose transactions the end of this batch ends, those of its decision too.

        A commit ends what other runs have written of the batch, and before it; what is later may be
        a newer driver's. An abort ends what its own run has written: another run may commit.
        """
        return [
            slot
            for slot, (batch_id, _, _, retired) in self.claims.items()
            if (
                batch_id == batch.batch_id and not retired
                if slot.run == batch.run
                else commit and batch_id <= batch.batch_id
            )
        ]


# ---- as records


def transactional_id(prefix: str, job: str, slot: Slot) -> str:
    return f"{prefix}-{job}-{slot.run}-{slot.partition}-{slot.number}"


def claim_record(attempt: Attempt, slot: Slot, prefix: str) -> Encoded:
    value = {"batch": attempt.batch.batch_id, "task": attempt.task, "prefix": prefix}
    return _claim_key(attempt.batch.job, slot), _json(value)


def retired_claim(job: str, slot: Slot, claim: Claim) -> Encoded:
    value = claim._replace(retired=True)._asdict()
    value["batch"] = value.pop("batch_id")
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
    """Take the next record; raises ValueError for one that is none of the sink."""
    try:
        kind, job, *rest = json.loads(key or b"")
        if kind == "decision" and isinstance(job, str) and not rest:
            decision = _decision(job, json.loads(value or b""))
            states.setdefault(job, JobState()).decision = decision
        elif kind == "claim" and isinstance(job, str):
            slot = _slot(*rest)
            claim = None if value is None else _claim(json.loads(value))
            _take(states.setdefault(job, JobState()), slot, claim)
        else:
            raise ValueError(f"unknown kind {kind!r}")
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(repr(error)) from error


def _decision(job: str, value: dict[str, Any]) -> Decision:
    transactions = []
    for name, producer_id, epoch in value["transactions"]:
        named = (_typed(name, str), _typed(producer_id, int), _typed(epoch, int))
        transactions.append(PreparedTransaction(*named))
    batch = Batch(job, _typed(value["batch"], int), _typed(value["run"], str))
    return Decision(batch, _typed(value["commit"], bool), tuple(transactions))


def _slot(run: Any, name: str) -> Slot:
    partition, number = map(int, name.split("-"))
    return Slot(_typed(run, str), partition, number)


def _claim(value: dict[str, Any]) -> Claim:
    return Claim(
        _typed(value["batch"], int),
        _typed(value["task"], int),
        # A topic of decisions may be older than the field.
        _typed(value.get("prefix", WriteOptions.prefix), str),
        _typed(value.get("retired", False), bool),
    )


def _typed(value: Any, kind: type[T]) -> T:
    """The value; raises ValueError for another type, such as true for a number."""
    if type(value) is not kind:
        raise ValueError(f"{value!r} is not of type {kind.__name__}")
    return value


def _take(state: JobState, slot: Slot, claim: Claim | None) -> None:
    if claim is None:
        state.claims.pop(slot, None)
        return
    known = state.claims.get(slot)
    # A claim that is written late takes nothing from a later batch.
    if known is None or claim.retired or (known.batch_id < claim.batch_id and not known.retired):
        state.claims[slot] = claim
