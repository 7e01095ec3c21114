"""A broker was just elected controller: it learns the cluster's state and takes charge of it.

The order is Kafka's `onControllerFailover`, and each step leans on the one before: watches are
armed by the reads themselves, so that no change falls between; brokers must know who is alive
before they can follow a leader; replicas are told before partitions elect. One step is not Kafka's:
there a broker comes back only when its old session has expired, which takes its seat in every ISR;
here it comes back sooner, and the controller that would have noticed may be gone.
"""

import logging
from collections.abc import Mapping

from barnabas.events import EventKind
from barnabas.topic_partition import TopicPartition

from barnabas_controller.active_controller import ActiveController
from barnabas_controller.context import ControllerContext
from barnabas_controller.lifeline import Testimony
from barnabas_controller.reassignment import in_progress
from barnabas_controller.state_reading import read_states
from barnabas_controller.znodes import Broker

logger = logging.getLogger(__name__)


async def fail_over(
    active: ActiveController,
    predecessor: Testimony | None = None,
    suspects: Mapping[int, int] | None = None,
) -> None:
    """Bring a new reign to work; raises ControllerMoved if it is over before that.

    `predecessor` is what this broker knows of the one that was controller before: if it died, its
    partitions move now. `suspects` are the broker epochs of those it suspected.
    """
    reign = active.reign
    context = reign.context
    cause = f"broker {reign.broker_id} became controller, epoch {reign.store.epoch.number}"
    await active.isr_notifications.start()
    await active.disks.start()
    written_at = await _read_cluster(active, predecessor)
    cause += _absent(context)
    _inherit_suspects(active, suspects)
    cause += _suspected(active, predecessor)
    wishes = await reign.store.store.topics_to_delete(active.deletion.watch)
    await active.deletion.start(wishes)
    reign.update_metadata(context.registered_brokers())
    await active.partitions.dismiss_earlier_lives(written_at, cause)
    await active.replicas.start(cause)
    await active.partitions.start(cause)
    await active.reassignment_requests.on_znode_changed()
    await active.reassignments.resume(cause)
    await active.deletion.resume()
    await active.elections.on_znode_changed()
    active.start_timers()
    logger.info(
        "%s: brokers %s, %d topics, %d partitions",
        cause,
        context.registered_brokers(),
        len(context.assignments),
        len(context.partitions()),
    )


def _absent(context: ControllerContext) -> str:
    """Which brokers have replicas and are not there: the reason of a failover's elections."""
    assigned = {broker for p in context.partitions() for broker in context.replicas(p)}
    absent = sorted(assigned - context.brokers.keys())
    if not absent:
        return ""
    noun = "broker" if len(absent) == 1 else "brokers"
    return f", and {noun} {', '.join(map(str, absent))} had no registration in ZooKeeper"


def _had_stream(predecessor: Testimony | None, broker: Broker) -> bool:
    """Whether this broker, before it was elected, had a stream to that life of the other."""
    if predecessor is None or not predecessor.had_stream:
        return False
    known = predecessor.broker
    return (known.broker_id, known.epoch) == (broker.broker_id, broker.epoch)


def _inherit_suspects(active: ActiveController, suspects: Mapping[int, int] | None) -> None:
    """Who was suspected before stays so until it registers anew."""
    context = active.reign.context
    for broker_id, epoch in (suspects or {}).items():
        if broker_id in context.brokers and context.brokers[broker_id].epoch == epoch:
            context.suspects[broker_id] = epoch


def _suspected(active: ActiveController, predecessor: Testimony | None) -> str:
    """Take over the suspicion, if it is of the life that is registered; says so."""
    if predecessor is None or predecessor.verdict is None:
        return ""
    context, broker = active.reign.context, predecessor.broker
    context.suspects[broker.broker_id] = broker.epoch
    if not context.is_suspected(broker.broker_id):
        del context.suspects[broker.broker_id]
        return ""
    active.reign.events.record(
        EventKind.BROKER_SUSPECTED,
        predecessor.verdict,
        broker=broker.broker_id,
        broker_epoch=broker.epoch,
    )
    return f", and broker {broker.broker_id} is suspected to be dead: {predecessor.verdict}"


async def _read_cluster(
    active: ActiveController, predecessor: Testimony | None
) -> Mapping[TopicPartition, int]:
    """Fill the context; returns the transaction that wrote each partition's state."""
    reign = active.reign
    context, store = reign.context, reign.store.store
    context.brokers = await active.brokers.read()
    topics = await store.topics(active.topics.watch)
    for topic, node in (await active.topics.load(topics)).items():
        context.set_topic(topic, node)
    for partition in context.partitions():
        if in_progress(context.assignment(partition)):
            context.reassigning[partition] = None
    states = await read_states(reign, context.partitions())
    context.leadership = {partition: written.state for partition, written in states.items()}
    for broker in context.brokers.values():
        reign.channels.add(broker, had_stream=_had_stream(predecessor, broker))
    return {partition: written.zxid for partition, written in states.items()}
