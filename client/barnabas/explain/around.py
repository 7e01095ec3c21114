"""Events of a partition's brokers, other events of the partition, and what remains unknown."""

from barnabas_common.events import Event, EventKind

from barnabas.explain.explanation import About, Sentence
from barnabas.explain.history import number
from barnabas.explain.view import PartitionView

LATEST = 6

# Reported by other sections, or too frequent to be reported.
_EXPLAINED_ELSEWHERE = frozenset(
    {
        EventKind.BECAME_LEADER,
        EventKind.BECAME_FOLLOWER,
        EventKind.ELECTION_REFUSED,
        EventKind.FETCH_FAILED,
        EventKind.FETCH_RESUMED,
        EventKind.ISR_CHANGED,
        EventKind.ISR_CHANGE_ACCEPTED,
        EventKind.ISR_CHANGE_PROPOSED,
        EventKind.ISR_CHANGE_REFUSED,
        EventKind.LEADER_ELECTED,
        EventKind.LOG_RECOVERED,
        EventKind.LOG_TRUNCATED,
        EventKind.OFFSETS_MOVED,
        EventKind.REPLICA_STOPPED,
        EventKind.REQUEST_FENCED,
    }
)
# Events of brokers that are routine, or about other partitions.
_ROUTINE = frozenset({EventKind.BROKER_REGISTERED, EventKind.CONTROLLED_SHUTDOWN})


def brokers(view: PartitionView) -> list[Sentence]:
    """The latest events of the brokers with a replica, and of the controller."""
    concerned = {*view.metadata.replicas, view.controller_id}
    found = [
        event
        for event in view.events
        if event.topic_partition is None
        and event.kind not in _EXPLAINED_ELSEWHERE | _ROUTINE
        and not event.details.keys() & {"topic", "group", "transactional_id"}
        and _subject(event) in concerned
        and not event.details.get("first")
        and (event.kind is not EventKind.CONTROLLER_ELECTED or number(event, "previous") >= 0)
    ]
    latest = found[-LATEST:]
    said = [Sentence(About.BROKER, _of_broker(event), event.time_ms) for event in latest]
    if len(found) > len(latest):
        left_out = len(found) - len(latest)
        text = f"{left_out} earlier event{'s are' if left_out > 1 else ' is'} not shown"
        said.insert(0, Sentence(About.BROKER, text))
    return said


def _subject(event: Event) -> int:
    """The broker that an event is about: the controller reports on others."""
    broker = number(event, "broker")
    return event.broker_id if broker < 0 else broker


def _of_broker(event: Event) -> str:
    subject = f"broker {_subject(event)}"
    if event.cause.startswith(subject):
        return f"{event.cause} (seen by broker {event.broker_id})"
    match event.kind:
        case EventKind.BROKER_SUSPECTED:
            return f"{subject} was suspected to be dead: {event.cause}"
        case EventKind.BROKER_STARTED:
            return f"{subject} started: {event.cause}"
        case EventKind.BROKER_STOPPING:
            return f"{subject} began to shut down: {event.cause}"
        case EventKind.SESSION_LOST:
            return f"{subject} was no longer registered: {event.cause}"
        case EventKind.SESSION_REGAINED:
            return f"{subject} rejoined the cluster: {event.cause}"
        case EventKind.LOG_DIRECTORY_FAILED:
            directory = event.details.get("directory")
            return f"{subject} lost its log directory {directory}, which failed: {event.cause}"
        case EventKind.CONTROLLER_ELECTED:
            epoch = event.details.get("epoch")
            return f"{subject} became controller, epoch {epoch}: {event.cause}"
        case EventKind.CONTROLLER_DEPOSED:
            return f"{subject} was removed as controller by broker {event.broker_id}: {event.cause}"
        case _:
            return f"{subject}, {plain(event.kind)}: {event.cause}{_overrides(event)}"


def _overrides(event: Event) -> str:
    """The present settings, if the event is about settings."""
    text = event.details.get("overrides")
    return f" ({text})" if text else ""


def also(view: PartitionView) -> list[Sentence]:
    """The latest other events of this partition or its topic."""
    found = [
        event
        for event in view.events
        if event.kind not in _EXPLAINED_ELSEWHERE
        and (
            event.topic_partition == view.topic_partition
            or event.details.get("topic") == view.topic_partition.topic
        )
    ]
    sentences: dict[str, Sentence] = {}
    for event in found:  # each broker reports a changed setting: once is enough
        text = f"{plain(event.kind)}: {event.cause}{_overrides(event)}"
        sentences.pop(text, None)
        sentences[text] = Sentence(About.ALSO, text, event.time_ms)
    return list(sentences.values())[-LATEST:]


def unknowns(view: PartitionView) -> list[Sentence]:
    """Which brokers could not be asked, and which events were dropped."""
    sentences = [
        Sentence(
            About.DOUBT,
            f"broker {broker} does not answer, so what it knows is missing here: {why}",
        )
        for broker, why in view.errors.items()
    ]
    for broker in view.metadata.replicas:
        if broker not in view.live and broker not in view.errors:
            text = f"broker {broker} is not registered, so what only it knew is missing here"
            sentences.append(Sentence(About.DOUBT, text))
    for broker, until in view.forgotten_ms.items():
        if until:
            text = f"broker {broker} has dropped its events up to this moment"
            sentences.append(Sentence(About.DOUBT, text, until))
    return sentences


def plain(kind: EventKind) -> str:
    """A kind as text."""
    return kind.value.replace("-", " ")
