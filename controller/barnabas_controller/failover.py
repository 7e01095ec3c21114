"""A broker was just elected controller: it learns the cluster's state and takes charge of it.

The order is Kafka's `onControllerFailover`, and each step leans on the one before: watches are
armed by the reads themselves, so that no change falls between; brokers must know who is alive
before they can follow a leader; replicas are told before partitions elect.
"""

import logging

from barnabas_controller.active_controller import ActiveController

logger = logging.getLogger(__name__)

ISR_CHANGES = "/isr_change_notification"


async def fail_over(active: ActiveController) -> None:
    """Bring a new reign to work; raises ControllerMoved if it is over before that."""
    reign = active.reign
    context = reign.context
    cause = f"broker {reign.broker_id} became controller, epoch {reign.store.epoch.number}"
    # Notes of an older time tell of state that is about to be read anyway.
    await reign.store.delete_children(ISR_CHANGES)
    await active.disks.start()
    await _read_cluster(active)
    wishes = await reign.store.store.topics_to_delete(active.deletion.watch)
    await active.deletion.start(wishes)
    reign.update_metadata(context.registered_brokers())
    await active.replicas.start(cause)
    await active.partitions.start(cause)
    await active.deletion.resume()
    active.start_timers()
    logger.info(
        "%s: brokers %s, %d topics, %d partitions",
        cause,
        context.registered_brokers(),
        len(context.assignments),
        len(context.partitions()),
    )


async def _read_cluster(active: ActiveController) -> None:
    reign = active.reign
    context, store = reign.context, reign.store.store
    context.brokers = await store.brokers(active.brokers.watch)
    topics = await store.topics(active.topics.watch)
    for topic, node in (await active.topics.load(topics)).items():
        context.set_topic(topic, node)
    context.leadership = await store.states(context.partitions())
    for broker in context.brokers.values():
        reign.channels.add(broker)
