"""Why a group is as it is, in sentences: why it rebalanced, who reads what, why it lags.

Plain data in, sentences out. The state is looked at twice, some seconds apart, because a lag that
grows cannot be told from one that shrinks at a single moment.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from barnabas_common.events import Event
from barnabas_common.events.event import EventKind
from barnabas_common.topic_partition import TopicPartition

from barnabas.group.awaiting import Awaiting, in_words

# Of the rebalances, only the newest matter to the reader.
_EVENTS_SHOWN = 12
_REBALANCE = (
    EventKind.GROUP_MEMBER_JOINED,
    EventKind.GROUP_MEMBER_LEFT,
    EventKind.GROUP_MEMBER_EXPIRED,
    EventKind.GROUP_REBALANCING,
    EventKind.GROUP_GENERATION,
    EventKind.GROUP_STABLE,
)
_ORDER = "first to static members by their instance ids, then to the others by their member ids"
_RULES = {
    "range": f"gives each member consecutive partitions of a topic, {_ORDER}",
    "roundrobin": f"deals out all partitions in turn, {_ORDER}",
    "sticky": "leaves partitions where they were, as far as the balance allows",
    "cooperative-sticky": "leaves partitions where they were, as far as the balance allows",
}


class About(StrEnum):
    """The question that a sentence answers."""

    REBALANCE = "rebalance"
    OWNER = "owner"
    LAG = "lag"
    DOUBT = "doubt"


@dataclass(frozen=True)
class GroupSentence:
    """`time_ms`: wall clock of the event it is about; 0 if it is about the present state."""

    about: About
    text: str
    time_ms: int = 0


@dataclass(frozen=True)
class Reader:
    """A member and what it reads."""

    member_id: str
    client_id: str
    partitions: Sequence[TopicPartition]


@dataclass(frozen=True)
class Progress:
    """Committed and log end offsets, by partition, at one moment."""

    committed: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]

    def lag(self, tp: TopicPartition) -> int | None:
        if tp not in self.committed or tp not in self.ends:
            return None
        return max(self.ends[tp] - self.committed[tp], 0)


@dataclass(frozen=True)
class GroupView:
    """`before` and `now` are `seconds` apart. `leaderless`: partitions without a leader.

    `awaiting`: whom its rebalance waits for, as of `now`.
    """

    group_id: str
    state: str
    assignor: str
    readers: Sequence[Reader]
    before: Progress
    now: Progress
    seconds: float
    events: Sequence[Event] = ()
    leaderless: Iterable[TopicPartition] = ()
    unreachable: Mapping[int, str] = field(default_factory=dict)
    awaiting: Awaiting = field(default_factory=lambda: Awaiting(""))


def explain_group(view: GroupView) -> list[GroupSentence]:
    """The sentences, question by question."""
    found = list(_rebalances(view))
    found += _owners(view)
    found += _lags(view)
    found += [
        GroupSentence(About.DOUBT, f"broker {broker} could not be asked for its events: {why}")
        for broker, why in view.unreachable.items()
    ]
    return found


def _rebalances(view: GroupView) -> Iterable[GroupSentence]:
    about = [
        event
        for event in view.events
        if event.kind in _REBALANCE and event.details.get("group") == view.group_id
    ]
    if not about:
        yield GroupSentence(About.REBALANCE, "no broker remembers a rebalance of this group")
    for event in about[-_EVENTS_SHOWN:]:
        who = event.details.get("member") or event.details.get("generation", "")
        what = event.kind.value.removeprefix("group-").replace("-", " ")
        yield GroupSentence(
            About.REBALANCE, f"{what} {who}".rstrip() + f": {event.cause}", event.time_ms
        )
    for words in in_words(view.awaiting):
        yield GroupSentence(About.REBALANCE, f"the coordinator {words}")


def _owners(view: GroupView) -> Iterable[GroupSentence]:
    if not view.readers:
        yield GroupSentence(About.OWNER, "the group has no members")
        return
    rule = _RULES.get(view.assignor, "is an assignor that is not known here")
    yield GroupSentence(About.OWNER, f"{view.assignor or 'no assignor yet'}: {rule}")
    for reader in view.readers:
        partitions = ", ".join(map(str, reader.partitions)) or "nothing"
        name = f"{reader.member_id} (client {reader.client_id or '-'})"
        yield GroupSentence(About.OWNER, f"{name} reads {partitions}")


def _lags(view: GroupView) -> Iterable[GroupSentence]:
    readers = {tp: reader for reader in view.readers for tp in reader.partitions}
    for tp in sorted({*view.now.committed, *readers}):
        lag = view.now.lag(tp)
        if tp in view.leaderless:
            text = "it has no leader, so no record of it can be read"
        elif tp not in view.now.ends:
            text = "there is no such partition any more"
        elif lag is None:
            text = "nothing is committed yet"
        elif lag == 0:
            continue
        else:
            text = f"{lag} records behind: {_why_behind(view, tp, tp in readers)}"
        yield GroupSentence(About.LAG, f"{tp}: {text}")


def _why_behind(view: GroupView, tp: TopicPartition, read: bool) -> str:
    arrived = view.now.ends[tp] - view.before.ends.get(tp, view.now.ends[tp])
    committed = view.now.committed[tp] - view.before.committed.get(tp, view.now.committed[tp])
    rates = f"in {view.seconds:g} s {arrived} arrived and {committed} were committed"
    if not read:
        return "no member reads it"
    if committed > 0:
        direction = "it grows" if arrived > committed else "it shrinks or stays"
        return f"{direction}, {rates}"
    if view.state != "Stable":
        return f"the group is {view.state}, {rates}"
    return f"its member commits nothing, {rates}: it works on records, or does not commit"
