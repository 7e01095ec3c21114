"""Why each replica outside the ISR left it, and what keeps it out."""

import re

from barnabas_common.events import Event, EventKind

from barnabas.explain.explanation import About, Sentence
from barnabas.explain.history import IsrChange, isr_changes, last_entry, last_exit, number, numbers
from barnabas.explain.view import PartitionView

_BROKER = re.compile(r"\bbroker (\d+)\b")


def in_sync(view: PartitionView) -> list[Sentence]:
    """One sentence if no replica is missing, else some for each; then those that rejoined."""
    changes = isr_changes(view)
    missing = [broker for broker in view.metadata.replicas if broker not in view.isr]
    sentences = []
    if not missing:
        text = f"all replicas are in the ISR {view.isr}"
        sentences.append(Sentence(About.ISR, text))
    for broker in missing:
        sentences += _out(view, broker, last_exit(changes, broker))
    for broker in view.isr:
        entry = last_entry(changes, broker)
        exit_before = last_exit(changes, broker)
        if entry is not None and exit_before is not None:
            text = f"broker {broker} had left the ISR: {_cause_for(broker, exit_before)}"
            sentences.append(Sentence(About.ISR, text, exit_before.time_ms))
            text = f"broker {broker} rejoined the ISR: {entry.cause}"
            sentences.append(Sentence(About.ISR, text, entry.time_ms))
        obstacle = _cannot_fetch(view, broker, 0)
        if obstacle is not None and obstacle.topic_partition is None:
            sentences.append(_obstacle(obstacle, broker))
    return [*sentences, *_cut_from_controller(view)]


def _cut_from_controller(view: PartitionView) -> list[Sentence]:
    """Whether the leader could not reach the controller when it last asked for an ISR."""
    last = None
    kinds = (EventKind.CONTROLLER_UNREACHABLE, EventKind.CONTROLLER_REACHABLE)
    for event in view.broker_events(*kinds):
        if event.broker_id == view.leader_id:
            last = event
    if last is None or last.kind is EventKind.CONTROLLER_REACHABLE:
        return []
    text = (
        f"broker {view.leader_id}, the leader, could not reach the controller at"
        f" {last.details.get('controller_address')}: {last.cause}"
    )
    return [Sentence(About.ISR, text, last.time_ms)]


def _out(view: PartitionView, broker: int, left: IsrChange | None) -> list[Sentence]:
    if left is None:
        text = f"broker {broker} is out of the ISR; when it left is no longer known"
        sentences = [Sentence(About.ISR, text)]
    else:
        text = f"broker {broker} is out of the ISR: {_cause_for(broker, left)}"
        sentences = [Sentence(About.ISR, text, left.time_ms)]
    since = left.time_ms if left is not None else 0
    return [*sentences, *_kept_out(view, broker, since)]


def _cause_for(broker: int, left: IsrChange) -> str:
    """The cause without the parts about others that left together with this broker.

    A part is about the broker that it names first. If none is about this one, all count.
    """
    parts = left.cause.split("; ")
    about = [int(found[1]) if (found := _BROKER.search(part)) else None for part in parts]
    if broker not in about:
        return left.cause
    others = set(left.before) - set(left.after) - {broker}
    return "; ".join(part for part, one in zip(parts, about, strict=True) if one not in others)


def _kept_out(view: PartitionView, broker: int, since: int) -> list[Sentence]:
    """What keeps the broker out of the ISR now."""
    sentences = []
    replica, leader = view.replicas.get(broker), view.leader
    if broker not in view.live:
        sentences.append(Sentence(About.ISR, f"broker {broker} is not registered in ZooKeeper"))
    elif replica is not None and replica.offline:
        sentences.append(Sentence(About.ISR, f"the log directory of broker {broker} has failed"))
    if leader is not None and broker in view.live:
        for follower in leader.followers:
            if follower.broker_id == broker:
                text = f"broker {broker} has not fetched from this leader yet"
                if follower.log_end_offset >= 0:
                    text = (
                        f"broker {broker} has fetched up to offset {follower.log_end_offset};"
                        f" it may rejoin at the high watermark, {leader.high_watermark}"
                    )
                sentences.append(Sentence(About.ISR, text))
    for event in (_refused(view, broker, since), _cannot_fetch(view, broker, since)):
        if event is not None:
            sentences.append(_obstacle(event, broker))
    return sentences


def _obstacle(event: Event, broker: int) -> Sentence:
    if event.kind is EventKind.FETCH_FAILED:
        text = (
            f"broker {broker} could not fetch from broker {number(event, 'leader')}: {event.cause}"
        )
    else:
        text = f"an ISR with broker {broker} was refused: {event.cause}"
    return Sentence(About.ISR, text, event.time_ms)


def _refused(view: PartitionView, broker: int, since: int) -> Event | None:
    """The last refusal of an ISR with the broker, if no change was accepted since."""
    last = None
    for event in view.partition_events(EventKind.ISR_CHANGE_REFUSED, EventKind.ISR_CHANGED):
        asked_for = numbers(event, "asked_for") or numbers(event, "proposed")
        refused = event.kind is EventKind.ISR_CHANGE_REFUSED and broker in asked_for
        last = event if refused and event.time_ms >= since else None
    return last


def _cannot_fetch(view: PartitionView, broker: int, since: int) -> Event | None:
    """Why its fetches from the present leader fail, unless they work again.

    A leader that is unreachable may have been so before the replica left. An error of this
    partition alone counts only since the replica left, because the end of such an error is not
    recorded.
    """
    last = None
    for event in view.events:
        of_this = event.topic_partition in (None, view.topic_partition)
        if event.broker_id != broker or not of_this or number(event, "leader") != view.leader_id:
            continue
        if event.kind is EventKind.FETCH_FAILED:
            if event.topic_partition is None or event.time_ms >= since:
                last = event
        elif event.kind is EventKind.FETCH_RESUMED:
            last = None
    return last
