"""What a newly elected controller does, step by step (Kafka's `onControllerFailover`).

The order matters. Each watch is armed by the read it guards or before, so that no change is missed.
Brokers must know which brokers are alive before they can follow a leader. Replicas receive
LeaderAndIsr before partitions hold elections.
"""

import logging
from collections.abc import Mapping, Sequence

from barnabas_common.events import EventKind
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.active_controller import ActiveController
from barnabas_controller.detection.failure_detector import PeerObservation
from barnabas_controller.partitions.state_reading import check_controller_epoch, read_states
from barnabas_controller.state.context import ControllerContext
from barnabas_controller.store.znodes import Broker

logger = logging.getLogger(__name__)


async def fail_over(
    active: ActiveController,
    predecessor: PeerObservation | None = None,
    suspects: Mapping[int, int] | None = None,
) -> None:
    """Start a controller term; raises ControllerMoved if another controller is elected meanwhile.

    `predecessor` is what this broker observed of the previous controller. If that controller is
    suspected, its partitions get other leaders now. `suspects` are the brokers that the previous
    controller suspected, as broker epochs by broker id.
    """
    term = active.term
    context = term.context
    cause = f"broker {term.broker_id} became controller, epoch {term.fenced.epoch.number}"
    # 1. Delete old notifications: the state that they announce is read below.
    await active.isr_notifications.start()
    await active.log_dir_events.start()
    # 2. Read brokers, topics and states; start one channel for each broker.
    written_at = await _initialize_context(active, predecessor)
    absent = _unregistered(context)
    cause += _absence(absent)
    active.brokers.await_registration(absent)
    # 3. Mark suspected brokers. (Kafka does not suspect brokers.)
    _inherit_suspects(context, suspects or {})
    cause += _suspect_predecessor(active, predecessor)
    #    Hold back elections by states that may come from an older copy of ZooKeeper.
    active.unconfirmed.find()
    unknown = active.unconfirmed.unknown_members(written_at)
    # 4. Read which topics are to be deleted.
    await active.deletion.start(await term.store.topics_to_delete(active.deletion.watch))
    # 5. Send all brokers which brokers are alive, and the states as they were read. (Kafka sends no
    #    states yet. A broker that has just started would answer that no topic exists.) Brokers
    #    forget the topics whose deletion the previous controller did not tell them.
    term.send_all_metadata(context.registered_brokers())
    # 6. Remove brokers that lost records, or may not be members, from the ISRs. (In Kafka a broker
    #    registers again only after its old session has expired, and the controller has removed it
    #    from all ISRs.)
    await active.partitions.handle_unclean_shutdown(written_at, cause, unknown)
    # 7. Start the state machines: replicas first, then partitions.
    await active.replicas.start(cause)
    await active.partitions.start(cause)
    # 8. Resume reassignments, topic deletions, and preferred elections requested by a znode.
    await active.reassignment_requests.on_znode_changed()
    await active.reassignments.resume(cause)
    await active.deletion.resume()
    await active.elections.on_znode_changed()
    # 9. Start the timer of the preferred leader rebalance.
    active.start_timers()
    logger.info(
        "%s: brokers %s, %d topics, %d partitions",
        cause,
        context.registered_brokers(),
        len(context.assignments),
        len(context.partitions()),
    )


async def _initialize_context(
    active: ActiveController, predecessor: PeerObservation | None
) -> Mapping[TopicPartition, int]:
    """Fill the context; returns the zxid of the transaction that wrote each partition's state."""
    term = active.term
    context, store = term.context, term.store
    context.brokers = await active.brokers.read()
    topics = await store.topics(active.topics.watch)
    for topic, node in (await active.topics.load(topics)).items():
        context.set_topic(topic, node)
    context.note_unreadable(topics)
    for partition in context.partitions():
        if context.assignment(partition).is_being_reassigned:
            context.reassigning[partition] = None
    states = await read_states(term, context.partitions())
    await check_controller_epoch(term, context.partitions())
    context.leadership = {partition: written.state for partition, written in states.items()}
    for broker in context.brokers.values():
        term.channels.add(broker, had_stream=_had_stream(predecessor, broker))
    return {partition: written.zxid for partition, written in states.items()}


def _had_stream(predecessor: PeerObservation | None, broker: Broker) -> bool:
    """Whether this broker had a stream to that incarnation of the previous controller."""
    return (
        predecessor is not None
        and predecessor.had_stream
        and predecessor.broker.broker_id == broker.broker_id
        and predecessor.broker.epoch == broker.epoch
    )


def _unregistered(context: ControllerContext) -> list[int]:
    """The brokers that have replicas but no registration, sorted."""
    assigned = {broker for p in context.partitions() for broker in context.replicas(p)}
    return sorted(assigned - context.brokers.keys())


def _absence(absent: Sequence[int]) -> str:
    """The part of the cause that names brokers without a registration; empty if there are none."""
    if not absent:
        return ""
    noun = "broker" if len(absent) == 1 else "brokers"
    return f", and {noun} {', '.join(map(str, absent))} had no registration in ZooKeeper"


def _inherit_suspects(context: ControllerContext, suspects: Mapping[int, int]) -> None:
    """A broker that was suspected stays so until it registers again."""
    for broker_id, epoch in suspects.items():
        if broker_id in context.brokers and context.brokers[broker_id].epoch == epoch:
            context.suspects[broker_id] = epoch


def _suspect_predecessor(active: ActiveController, predecessor: PeerObservation | None) -> str:
    """Mark the previous controller as suspected if this broker suspects it.

    Returns the part of the cause that says so, or an empty text.
    """
    if predecessor is None or predecessor.suspicion is None:
        return ""
    context, broker = active.term.context, predecessor.broker
    registered = context.brokers.get(broker.broker_id)
    if registered is None or registered.epoch != broker.epoch:
        context.suspects.pop(broker.broker_id, None)
        return ""
    context.suspects[broker.broker_id] = broker.epoch
    active.term.events.record(
        EventKind.BROKER_SUSPECTED,
        predecessor.suspicion,
        broker=broker.broker_id,
        broker_epoch=broker.epoch,
    )
    return f", and broker {broker.broker_id} is suspected to be dead: {predecessor.suspicion}"
