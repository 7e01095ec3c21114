"""I18 and I19: who owns a partition of a group, and what becomes of a commit; L8 and L9: at rest.

A generation counts from the moment its record is committed in `__consumer_offsets`. The order of
two records there is the order of what they stand for: a commit that follows the record of a later
generation was accepted too late.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from barnabas_broker.coordinator.group.records import OffsetValue
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.groups.model import Committed, GroupState, Owners
from barnabas_simulator.invariants.rule import rule

NOT_COMMITTED = -1


class Sender(NamedTuple):
    """Who has sent a commit, as a member of which generation."""

    member: str
    generation: int


@rule("I18 GroupSafety")
def one_owner(
    group: str, generation: int, known: Owners, given: Iterable[tuple[str, TopicPartition]]
) -> str | None:
    """A partition has one owner in a generation, in the log and in what members are answered.
    (KIP-429: a partition that moves is not given to anyone before its owner has given it up.)"""
    owners = dict(known)
    for member, tp in given:
        owner = owners.setdefault(tp, member)
        if owner != member:
            return f"{tp} belongs to {owner} and to {member} in generation {generation} of {group}"
    return None


@rule("I18 GroupSafety")
def generations_rise(group: str, before: int, after: int) -> str | None:
    """A generation is numbered higher than the one before; only a static member that returns has
    its generation written again."""
    if after >= before:
        return None
    return f"generation {after} of {group} follows generation {before} in the log"


@rule("I18 GroupSafety")
def commit_is_current(
    group: str,
    tp: TopicPartition,
    value: OffsetValue,
    senders: Collection[Sender],
    newest: int,
    owners: Mapping[int, Owners],
) -> str | None:
    """A commit in the log was sent by a member of the newest generation before it, or of a later
    one. In that generation no other member owned the partition."""
    if not senders:
        return f"no member has sent the commit {value} of {tp} for {group}"
    latest = max(sender.generation for sender in senders)
    if latest < newest:
        return (
            f"a commit of generation {latest} of {group} was accepted after generation {newest}:"
            f" {value} of {tp}, by {_names(senders)}"
        )
    if all(_owner(owners, sender, tp) != sender.member for sender in senders):
        sender = next(iter(senders))
        return (
            f"{sender.member} has committed {value} of {tp} in generation {sender.generation} of"
            f" {group}, in which {_owner(owners, sender, tp)} owns it"
        )
    return None


def _owner(owners: Mapping[int, Owners], sender: Sender, tp: TopicPartition) -> str:
    return owners.get(sender.generation, {}).get(tp, sender.member)


def _names(senders: Iterable[Sender]) -> str:
    return ", ".join(sorted({sender.member for sender in senders}))


@rule("I19 OffsetsCommitted")
def within_the_log(group: str, tp: TopicPartition, value: OffsetValue, end: int) -> str | None:
    """No offset is committed beyond what a consumer may have read."""
    if value.offset <= end:
        return None
    return f"{group} has committed {value.offset} of {tp}, which was readable up to {end}"


@rule("I19 OffsetsCommitted")
def nothing_skipped(group: str, tp: TopicPartition, value: OffsetValue, done: int) -> str | None:
    """Every record below a committed offset was worked on by a member of the group."""
    if value.offset <= done:
        return None
    return f"{group} has committed {value.offset} of {tp}, and no member has worked on {done}"


@rule("I19 OffsetsCommitted")
def acknowledged_is_written(
    group: str, tp: TopicPartition, offset: int, metadata: str, found: Collection[int]
) -> str | None:
    """The record of an acknowledged commit is committed; `found` is where."""
    if found:
        return None
    return f"a commit of {group} was acknowledged and is not in the log: {offset} {metadata!r} {tp}"


@rule("I19 OffsetsCommitted")
def assignment_is_written(group: str, generation: int, newest: int) -> str | None:
    """An assignment is answered once the record of its generation is committed."""
    if generation <= newest:
        return None
    return f"{group}: an assignment of generation {generation} was answered, {newest} is in the log"


@rule("I19 OffsetsCommitted")
def not_older_than_acknowledged(
    group: str, tp: TopicPartition, shown: int, at: int, acknowledged: int
) -> str | None:
    """What a coordinator knows of a partition is no older than the latest acknowledged commit.
    `at` and `acknowledged` are the offsets of the two records."""
    if at >= acknowledged:
        return None
    return (
        f"the coordinator of {group} has {shown} for {tp}, of the record at {at}; the one at"
        f" {acknowledged} was acknowledged before"
    )


@rule("I19 OffsetsCommitted")
def memory_is_of_the_log(
    group: str, tp: TopicPartition, known: Committed, written: tuple[TopicPartition, OffsetValue]
) -> str | None:
    """What a coordinator knows of a partition is what the record says from which it knows it."""
    if written == (tp, known.value):
        return None
    return f"the coordinator of {group} has {known} for {tp}, the log has {written}"


@rule("I19 OffsetsCommitted")
def counted_is_decided(
    group: str, tp: TopicPartition, value: OffsetValue, waits: bool
) -> str | None:
    """What a transaction has committed counts once its marker is in the log, if that commits."""
    if not waits:
        return None
    return f"the coordinator of {group} has {value} for {tp}: its transaction is not committed"


@rule("I19 OffsetsCommitted")
def reload_equals_log(
    group: str, loaded: GroupState | None, written: GroupState | None
) -> str | None:
    """A coordinator that has read its partition knows each group as the log has it."""
    if loaded == written:
        return None
    return f"{group} was loaded as {loaded}, the log says {written}"


@rule("L8 GroupsAreStable")
def group_is_stable(
    group: str, state: str, members: Collection[str], living: Collection[str]
) -> str | None:
    """A group whose members live is Stable, with them and no others."""
    if state == "Stable" and sorted(members) == sorted(living):
        return None
    return f"{group} is {state} with {sorted(members)}; alive are {sorted(living)}"


@rule("L9 GroupsCatchUp")
def group_has_caught_up(
    group: str, tp: TopicPartition, committed: int, high_watermark: int
) -> str | None:
    """A group with living members commits the end of each of its partitions."""
    lag = high_watermark - max(committed, 0)
    if lag <= 0:
        return None
    return f"{group} has committed {committed} of {tp}, which ends at {high_watermark}: lag {lag}"
