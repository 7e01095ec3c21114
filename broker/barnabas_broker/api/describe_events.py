"""DescribeEvents: the events of this broker; waits for new ones if the request says so."""

from barnabas_common.events import Event, EventLog
from barnabas_common.events.wire import to_record
from barnabas_common.messages.events import DescribeEventsRequest, DescribeEventsResponse
from barnabas_common.runtime import Peer

from barnabas_broker.api.parts import BrokerParts

MAX_EVENTS = 1000
MAX_WAIT_SECONDS = 30.0


async def handle_describe_events(
    parts: BrokerParts, request: DescribeEventsRequest, peer: Peer
) -> DescribeEventsResponse:
    log = parts.events
    if request.after < 0:
        return DescribeEventsResponse(parts.broker_id, log.life, log.last_sequence)
    after, topics = place(request, log), frozenset(request.topics)
    now = parts.runtime.clock.monotonic
    deadline = now() + min(max(request.max_wait_ms, 0) / 1000, MAX_WAIT_SECONDS)
    limit = min(max(request.max_events, 1), MAX_EVENTS)
    missed = 0
    while True:
        excerpt = log.excerpt(after, limit)
        missed += excerpt.missed
        after = excerpt.until
        wanted = [event for event in excerpt.events if is_wanted(event, topics)]
        more = after < log.last_sequence
        if wanted or not (more or await log.wait_beyond(after, deadline - now())):
            return DescribeEventsResponse(
                parts.broker_id,
                excerpt.life,
                after,
                missed,
                excerpt.forgotten_ms,
                [to_record(event) for event in wanted],
            )


def place(request: DescribeEventsRequest, log: EventLog) -> int:
    """The sequence to continue from; one of another incarnation is ignored."""
    same_incarnation = request.life == log.life and request.after <= log.last_sequence
    return request.after if same_incarnation else 0


def is_wanted(event: Event, topics: frozenset[str]) -> bool:
    """Whether an event concerns one of these topics, or a broker. Events of groups and transactions
    do not, because they name no topic."""
    if not topics:
        return True
    if event.topic_partition is not None:
        return event.topic_partition.topic in topics
    if "topic" in event.details:
        return event.details["topic"] in topics
    return not event.details.keys() & {"group", "transactional_id"}
