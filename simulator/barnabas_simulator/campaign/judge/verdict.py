"""The final check of a run: compares what was acknowledged or seen with what is read at the end."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from barnabas_common.history.checker import check
from barnabas_common.history.operations import Commit, End, Operation, Send, Stage
from barnabas_common.history.promise import Promise
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients.transactions.recording import TakeOver
from barnabas_simulator.delivery import History, judge
from barnabas_simulator.labels import may_be_gone, newest_by_key, original_of

Records = Mapping[TopicPartition, list[tuple[int, bytes]]]

ENDS = COMMITTED, ABORTED = "transaction committed", "transaction aborted"


def assert_delivered(
    histories: Mapping[str, dict[TopicPartition, History]],
    seen: Mapping[TopicPartition, dict[int, bytes]],
    records: Records,
    committed: Mapping[TopicPartition, Mapping[int, bytes]] | None = None,
    once: bool = True,
    excused: Mapping[TopicPartition, Collection[tuple[int, bytes]]] | None = None,
) -> None:
    """Raise AssertionError with the first findings.

    Each producer's records must be present by value, at their offsets and in order; every record
    must have been sent; and what a consumer has read must still be present. A producer that was
    killed has a history for each incarnation, because a new one does not wait for the records of
    the previous. At least one record of each producer must have been acknowledged.

    `committed`: all records that were, if the topic is compacted. Those that a later one of their
    key has superseded may be gone, and tombstones. `once`: the producers were idempotent, so no
    record may be there twice. `excused`: the offsets and labels that the checker has found to be
    lost by what the promise does not cover.
    """
    gone = excused or {}
    histories = {name: _without(by, gone) for name, by in histories.items()}
    appended = {
        partition: sorted({*found, *(committed or {}).get(partition, {}).items()})
        for partition, found in records.items()
    }
    newest = {partition: newest_by_key(every) for partition, every in appended.items()}

    def may_have_gone(partition: TopicPartition, offset: int, label: bytes) -> bool:
        return committed is not None and may_be_gone(offset, label, newest[partition])

    acked = Counter[str]()
    for name, by_partition in histories.items():
        own = name.encode() + b"/"
        verdict = judge(
            by_partition,
            {p: [(o, v) for o, v in found if v.startswith(own)] for p, found in records.items()},
            may_have_gone,
            None if committed is None else appended,
        )
        verdict.assert_nothing_wrong(once)
        acked[name.partition(".")[0]] += verdict.acked
    mute = [producer for producer, count in acked.items() if not count]
    assert acked and not mute, f"nothing of {mute or 'any producer'} was acknowledged"
    for partition, found in records.items():
        senders = {value.partition(b"/")[0].decode() for _, value in found}
        foreign = senders - set(histories)
        assert not foreign, f"{partition}: records of unknown senders: {sorted(foreign)}"
        there = dict(found)
        lost = {
            (offset, label)
            for offset, label in seen[partition].items()
            - there.items()
            - set(gone.get(partition, ()))
            if offset in there or not may_have_gone(partition, offset, label)
        }
        assert not lost, f"{partition}: a consumer had read what is lost now: {sorted(lost)[:5]}"


def _without(
    by_partition: Mapping[TopicPartition, History],
    gone: Mapping[TopicPartition, Collection[tuple[int, bytes]]],
) -> dict[TopicPartition, History]:
    """What was acknowledged at an offset where its loss is not excused."""
    return {
        partition: History(
            history.sent,
            {
                label: offset
                for label, offset in history.acked.items()
                if (offset, label) not in gone.get(partition, ())
            },
        )
        for partition, history in by_partition.items()
    }


def assert_promise_kept(operations: Iterable[Operation], promise: Promise) -> None:
    """Raise AssertionError if the history shows what its configuration rules out."""
    judged = check(operations, promise)
    shown = [str(finding) for finding in judged.examples()[:5]]
    assert not judged.broken, f"the history shows {judged.broken}: {shown}"
    assert not judged.unread, f"not read to the end: {judged.unread}"


def ends_of(operations: Iterable[Operation]) -> Counter[str]:
    """Count the transactions that were committed, and those that were aborted."""
    ended = Counter[str]()
    for operation in operations:
        if isinstance(operation, End) and operation.stage in (Stage.OK, Stage.FAIL):
            is_committed = operation.commit and operation.stage is Stage.OK
            ended[COMMITTED if is_committed else ABORTED] += 1
    return ended


def assert_fenced(operations: Iterable[Operation], takeovers: Sequence[TakeOver]) -> None:
    """Raise AssertionError if a transactional client has written, or committed, anything that it
    asked for after another process had been given a later epoch (I17)."""
    late: set[str] = set()
    for operation in operations:
        if not isinstance(operation, Send | Commit | End):
            continue
        if operation.stage is Stage.INVOKE and _is_fenced(operation, takeovers):
            late.add(operation.name)
        is_abort = isinstance(operation, End) and not operation.commit
        if operation.stage is Stage.OK and not is_abort:
            assert operation.name not in late, f"I17: {operation} of a client that is fenced"


def _is_fenced(operation: Operation, takeovers: Sequence[TakeOver]) -> bool:
    """A process may ask in the same instant in which it is told its epoch."""
    of_client = [one for one in takeovers if one.process.partition("/")[0] == operation.client]
    own = [
        one.epoch
        for one in of_client
        if one.process == operation.process and one.time <= operation.time
    ]
    others = [
        one.epoch
        for one in of_client
        if one.process != operation.process and one.time < operation.time
    ]
    return bool(own) and max(others, default=-1) > own[-1]


def assert_copied(records: Records, source: str, target: str) -> None:
    """Raise AssertionError unless the copies are what was read as committed, each record once and
    in the order of its partition; without a target nothing was copied."""
    originals = {
        p.partition: [v for _, v in found] for p, found in records.items() if p[0] == source
    }
    assert any(originals.values()), "no transaction was committed"
    copies = {p.partition: [v for _, v in found] for p, found in records.items() if p[0] == target}
    for number, wanted in originals.items() if target else ():
        wrong = wrong_copies(wanted, [original_of(value) for value in copies[number]])
        assert not wrong, f"{target}-{number}: {wrong}"


def wrong_copies(originals: Sequence[bytes], copies: Sequence[bytes]) -> list[str]:
    """What is lost, duplicated, of unknown origin, or in another order than the originals."""
    counts = Counter(copies)
    first = dict.fromkeys(copies)
    known = set(originals)
    wrong = {
        "lost": [value for value in originals if not counts[value]],
        "duplicated": [value for value, count in counts.items() if count > 1],
        "of unknown origin": [value for value in first if value not in known],
    }
    found = [f"{what}: {values[:5]}" for what, values in wrong.items() if values]
    places = {value: place for place, value in enumerate(originals)}
    in_order = [places[value] for value in first if value in known]
    return found if found or in_order == sorted(in_order) else ["not in the order of the originals"]
