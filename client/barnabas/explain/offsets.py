"""Why the high watermark is where it is, what was truncated, and what is refused now."""

from barnabas_common.events import EventKind
from barnabas_common.messages.sentinels import NO_LEADER

from barnabas.explain.explanation import About, Sentence
from barnabas.explain.history import number
from barnabas.explain.view import PartitionView

# How many of the latest events of a kind are reported.
LATEST = 4


def high_watermark(view: PartitionView) -> list[Sentence]:
    """As the leader reports it: only the leader knows which followers it waits for."""
    leader = view.leader
    if leader is None:
        if view.leader_id == NO_LEADER:
            text = "the high watermark cannot move: there is no leader"
        else:
            text = "the high watermark is unknown: "
            text += f"the leader, broker {view.leader_id}, does not answer"
        return [Sentence(About.HIGH_WATERMARK, text)]
    at, end = leader.high_watermark, leader.log_end_offset
    if at >= end:
        text = f"the high watermark is {at}, the end of the leader's log: every member of the ISR"
        return [Sentence(About.HIGH_WATERMARK, f"{text} {view.isr} has every record")]
    text = f"the high watermark is {at}, {end - at} below the end {end} of the leader's log"
    if leader.held_back_because:
        text += f": {leader.held_back_because}"
    sentences = [Sentence(About.HIGH_WATERMARK, text)]
    for follower in leader.followers:
        if follower.broker_id in leader.held_back_by and follower.caught_up_ms_ago > 0:
            seconds = follower.caught_up_ms_ago / 1000
            text = f"broker {follower.broker_id} was last caught up {seconds:.1f} s ago"
            sentences.append(Sentence(About.HIGH_WATERMARK, text))
    return sentences


def truncations(view: PartitionView) -> list[Sentence]:
    """Which logs were truncated, by which rule."""
    sentences = []
    for event in view.partition_events(EventKind.LOG_TRUNCATED, EventKind.LOG_RECOVERED):
        details = event.details
        if event.kind is EventKind.LOG_RECOVERED:
            text = (
                f"broker {event.broker_id} found its log damaged at its start and truncated it to"
                f" {details.get('log_end_offset')}: {event.cause}"
            )
        else:
            text = (
                f"broker {event.broker_id} truncated its log from {details.get('from_offset')} to"
                f" {details.get('to_offset')}, by the rule {details.get('rule')}: {event.cause}"
            )
        sentences.append(Sentence(About.TRUNCATION, text, event.time_ms))
    return sentences[-LATEST:]


def refused(view: PartitionView) -> list[Sentence]:
    """What clients are refused now, and which requests were refused for an old epoch."""
    sentences = []
    leader = view.leader
    if view.leader_id == NO_LEADER:
        text = "all requests are refused with LEADER_NOT_AVAILABLE until there is a leader"
        sentences.append(Sentence(About.REFUSED, text))
    elif leader is not None and len(view.isr) < leader.min_in_sync_replicas:
        text = (
            f"writes with acks=all are refused with NOT_ENOUGH_REPLICAS: the ISR {view.isr} has"
            f" {len(view.isr)} of the {leader.min_in_sync_replicas} members that"
            " min.insync.replicas requires"
        )
        sentences.append(Sentence(About.REFUSED, text))
    fenced = [  # leave out a newer epoch that the broker had not received yet
        event
        for event in view.partition_events(EventKind.REQUEST_FENCED)
        if event.details.get("error") != "UNKNOWN_LEADER_EPOCH"
        or number(event, "requested_epoch") > view.leader_epoch
    ]
    for event in fenced[-LATEST:]:
        text = (
            f"broker {event.broker_id} refused a request with another leader epoch: {event.cause}"
        )
        sentences.append(Sentence(About.REFUSED, text, event.time_ms))
    for event in view.partition_events(EventKind.ISR_CHANGE_REFUSED):
        if "asked_for" in event.details:  # the controller's refusal, not the leader's report of it
            text = f"an ISR change to {event.details['asked_for']} was refused: {event.cause}"
            sentences.append(Sentence(About.REFUSED, text, event.time_ms))
    return [*sentences, *_outdated(view)]


def _outdated(view: PartitionView) -> list[Sentence]:
    """Refused requests of controllers and brokers that did not know they had been replaced."""
    sentences = []
    for event in view.broker_events(EventKind.REQUEST_FENCED):
        sender = event.details.get("broker", event.details.get("controller"))
        if sender in view.metadata.replicas or event.broker_id in view.metadata.replicas:
            text = f"broker {event.broker_id} refused a request of broker {sender}: {event.cause}"
            sentences.append(Sentence(About.REFUSED, text, event.time_ms))
    return sentences[-LATEST:]
