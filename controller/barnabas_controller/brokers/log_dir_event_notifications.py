"""`/log_dir_event_notification`: a log directory failed and its broker still runs.

A broker that loses one of several log directories writes a notification, and so does a broker that
can open replicas that it could not open before. The controller then sends it LeaderAndIsr for all
its replicas. The broker answers KAFKA_STORAGE_ERROR for the failed ones, and `BrokerChanges`
handles the response.
"""

import logging
from collections.abc import Sequence

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.notifications import Notifications
from barnabas_controller.partitions.replica_state_machine import ReplicaStateMachine
from barnabas_controller.state.states import ReplicaState
from barnabas_controller.store.znodes import LOG_DIR_EVENTS, decode_log_dir_event

logger = logging.getLogger(__name__)

HOSTED_STATES = (ReplicaState.ONLINE, ReplicaState.OFFLINE)


def log_dir_event_notifications(
    term: ControllerTerm, replicas: ReplicaStateMachine
) -> Notifications[int]:
    """The notifications of log directory events; each is the id of a broker."""
    context = term.context

    async def resend_leader_and_isr(broker_ids: Sequence[int]) -> None:
        brokers = [b for b in dict.fromkeys(broker_ids) if b in context.brokers]
        if brokers:
            logger.warning("brokers %s report log directory events", brokers)
            hosted = [
                replica
                for replica in context.replicas_on(brokers)
                if context.replica_state(replica) in HOSTED_STATES
                and not context.is_being_deleted(replica.partition.topic)
            ]
            cause = f"brokers {brokers} report log directory events"
            await replicas.change(hosted, ReplicaState.ONLINE, cause)

    return Notifications(
        term,
        LOG_DIR_EVENTS,
        lambda path, data, _: decode_log_dir_event(path, data),
        resend_leader_and_isr,
    )
