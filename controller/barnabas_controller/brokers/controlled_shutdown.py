"""Handles ControlledShutdown: moves the leaderships of a broker that will stop."""

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    PartitionError,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.partitions.partition_state_machine import PartitionStateMachine
from barnabas_controller.partitions.replica_state_machine import ReplicaStateMachine
from barnabas_controller.state.context import ControllerContext, Replica
from barnabas_controller.state.states import ReplicaState


class ControlledShutdown:
    """Handles the request (KIP-380); its response is an error if the broker epoch is stale."""

    def __init__(
        self, term: ControllerTerm, partitions: PartitionStateMachine, replicas: ReplicaStateMachine
    ) -> None:
        self._context = term.context
        self._events = term.events
        self._partitions = partitions
        self._replicas = replicas

    async def shut_down(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        """Move the leaderships; the response names the partitions that the broker still leads.

        From now on the broker is shutting down, until its registration is deleted. A partition
        without another replica is not named, because it must not block the shutdown.
        """
        broker = self._context.brokers.get(request.broker_id)
        if broker is None:
            return ControlledShutdownResponse(ErrorCode.BROKER_NOT_AVAILABLE)
        if request.broker_epoch < broker.epoch:
            return ControlledShutdownResponse(ErrorCode.STALE_BROKER_EPOCH)
        broker_id = request.broker_id
        cause = f"broker {broker_id} is shutting down"
        self._context.shutting_down.add(broker_id)
        led, followed = affected_partitions(self._context, broker_id)
        await self._partitions.elect_for_shutdown(led, cause)
        stopped = [Replica(partition, broker_id) for partition in followed]
        await self._replicas.change(stopped, ReplicaState.OFFLINE, cause)
        remaining, _ = affected_partitions(self._context, broker_id)
        self._events.record(
            EventKind.CONTROLLED_SHUTDOWN,
            f"broker {broker_id} requested a controlled shutdown",
            broker=broker_id,
            led=len(led),
            still_led=len(remaining),
        )
        return ControlledShutdownResponse(
            ErrorCode.NONE, [PartitionError(p.topic, p.partition) for p in remaining]
        )


def affected_partitions(
    context: ControllerContext, broker_id: int
) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """The partitions with other replicas that the broker leads, and those that it follows.

    Topics being deleted are left out.
    """
    led: list[TopicPartition] = []
    followed: list[TopicPartition] = []
    for partition, _ in context.replicas_on([broker_id]):
        state = context.leadership.get(partition)
        if state is None or len(context.replicas(partition)) == 1:
            continue
        if context.is_being_deleted(partition.topic):
            continue
        (led if state.leader == broker_id else followed).append(partition)
    return led, followed
