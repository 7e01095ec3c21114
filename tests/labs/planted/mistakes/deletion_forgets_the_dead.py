"""A topic's deletion counts the replicas of dead brokers as deleted."""

from barnabas_controller.state.states import ReplicaState
from barnabas_controller.topics.topic_deletion_manager import TopicDeletionManager

_resume = TopicDeletionManager.resume


async def resume(self: TopicDeletionManager) -> None:
    states = self._context.replica_states
    for replica, state in list(states.items()):
        topic = replica.partition.topic
        if state is ReplicaState.DELETION_INELIGIBLE and self._context.is_being_deleted(topic):
            states[replica] = ReplicaState.DELETION_SUCCESSFUL
    await _resume(self)


TopicDeletionManager.resume = resume  # type: ignore[method-assign]
