"""A topic's deletion counts the replicas of dead brokers as deleted."""

from barnabas_controller.states import ReplicaState
from barnabas_controller.topic_deletion import TopicDeletion

_resume = TopicDeletion.resume


async def resume(self: TopicDeletion) -> None:
    states = self._context.replica_states
    for replica, state in list(states.items()):
        topic = replica.partition.topic
        if state is ReplicaState.DELETION_INELIGIBLE and self._context.is_being_deleted(topic):
            states[replica] = ReplicaState.DELETION_SUCCESSFUL
    await _resume(self)


TopicDeletion.resume = resume  # type: ignore[method-assign]
